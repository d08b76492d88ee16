"""A result that a Rust program left as ``run.json`` and ``run.i64``, for
:mod:`blklab.domain.result`.

A guest is hostile: scalars are checked by their types, and the columns must match the file's
length.
"""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias, TypedDict

import msgspec
import numpy as np
from msgspec import Meta

from blklab.base.text import shown
from blklab.domain.summaries import Count, RunSummary
from blklab.errors import RunError

SCALARS, COLUMNS = "run.json", "run.i64"
"""The files' names."""
SCALARS_BYTES_MAX = 64 << 20
_VALUE_BYTES = 8
_HISTOGRAM = "_hist"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

_Name: TypeAlias = Annotated[str, Meta(pattern=r"\A[a-z0-9_.]+\Z")]


class _Scalars(TypedDict):
    summary: RunSummary
    columns: list[tuple[_Name, Count]]


_DECODER = msgspec.json.Decoder(_Scalars)


class WrittenRun:
    """See :class:`blklab.domain.result.RunData`.

    `owner`, for messages, is what left the files: ``the guest``, for example. RunError if
    blklab's program cannot have written them.
    """

    def __init__(self, scalars: bytes, columns: bytes, owner: str) -> None:
        self._owner = owner
        try:
            found = _DECODER.decode(scalars)
        except (ValueError, RecursionError) as error:
            raise RunError(
                f"{owner}'s {SCALARS} does not have the expected format: {shown(str(error))}"
            ) from error
        self.summary = found["summary"]
        self._check_texts()
        self._bulk = columns
        self._places: dict[str, slice] = {}
        begin = 0
        for name, length in found["columns"]:
            end = begin + length * _VALUE_BYTES
            self._places[name] = slice(begin, end)
            begin = end
        if begin != len(self._bulk) or len(self._places) != len(found["columns"]):
            raise RunError(f"{owner}'s {COLUMNS} has {len(self._bulk)} bytes, not {begin}")
        self._check_histograms()

    def _check_texts(self) -> None:
        for job in self.summary.jobs:
            texts = (job.name, *(text for pair in job.options for text in pair))
            if any(map(_CONTROL.search, texts)):
                raise RunError(
                    f"{self._owner}'s {SCALARS} does not have the expected format: control "
                    "characters"
                )

    def _check_histograms(self) -> None:
        for histogram in {name.rpartition(".")[0] for name in self._places}:
            if not histogram.endswith(_HISTOGRAM):
                continue
            values, counts = (
                np.frombuffer(self.column(f"{histogram}.{one}"), dtype="<i8")
                for one in ("value_ns", "count")
            )
            if len(values) != len(counts) or (counts < 0).any() or (np.diff(values) <= 0).any():
                raise RunError(f"{self._owner}'s {histogram} is not a histogram")

    def columns(self) -> list[str]:
        """Their names."""
        return list(self._places)

    def column(self, name: str) -> bytes:
        """One column; empty if it is missing."""
        return self._bulk[self._places[name]] if name in self._places else b""
