"""Comparisons as one JSON document, for other machines, and back.

An imported document is untrusted: every field is checked against the types below, and then the
parts against each other (`blklab.store.document`), before anything is stored. Nothing in it is
executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from blklab.base import plain
from blklab.base.files import content
from blklab.domain.setup import SetupDocument
from blklab.errors import InputError
from blklab.store.document import ComparisonDocument, RunDocument, check
from blklab.store.read import Comparison

FORMAT = "blklab results"
VERSION = 1
_BYTES_MAX = 1 << 30


@dataclass(frozen=True)
class Document:
    """A whole file."""

    format: str
    version: int
    comparisons: tuple[ComparisonDocument, ...]


def to_bytes(several: Sequence[Comparison]) -> bytes:
    """The document of these comparisons."""
    return plain.encode(Document(FORMAT, VERSION, tuple(map(_document, several)))) + b"\n"


def read(path: Path) -> tuple[ComparisonDocument, ...]:
    """The comparisons of a file. InputError with the place in the file if `to_bytes` cannot have
    made it or if its parts do not match."""
    return parse(content(path, _BYTES_MAX, "an export"), str(path))


def parse(text: bytes, name: str) -> tuple[ComparisonDocument, ...]:
    """The same for a file's content; `name` is for messages."""
    try:
        head = msgspec.json.decode(text, type=_Head)
        if (head.format, head.version) != (FORMAT, VERSION):
            found = f"'{head.format:.40}' of version {head.version}"
            expected = f"'{FORMAT}' of version {VERSION}"
            raise InputError(
                f"{found}; expected {expected}, as 'blklab results export' writes it",
                name,
                found=found,
                expected=expected,
            )
        document = msgspec.json.decode(text, type=Document)
        for place, one in enumerate(document.comparisons):
            where = f"$.comparisons[{place}]"
            try:
                setup = msgspec.convert(one.setup, SetupDocument)
            except msgspec.ValidationError as error:
                # msgspec gives the place in its text only.
                told = str(error).replace("`$", f"`{where}.setup", 1)
                raise InputError(told, name) from error
            if wrong := check(one, setup):
                raise InputError(wrong.replace("$", where, 1), name)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError) as error:
        raise InputError(
            "not what 'blklab results export' writes as JSON: "
            f"{error if not isinstance(error, RecursionError) else 'nested too deeply'}",
            name,
        ) from error
    return document.comparisons


@dataclass(frozen=True)
class _Head:
    format: str
    version: int


def _document(one: Comparison) -> ComparisonDocument:
    row = one.listed
    return ComparisonDocument(
        row.uid,
        row.begun_at,
        row.ended_at,
        row.rig,
        row.machine,
        # `begin` has checked it.
        row.objective,  # type: ignore[arg-type]
        row.planned,
        one.setup,
        one.facts,
        tuple(
            RunDocument(
                run.number,
                run.begun_at,
                run.ended_at,
                run.measurement,
                run.device_before,
                run.device_after,
                run.raw,
            )
            for run in one.runs
        ),
        row.study,
        row.part,
    )
