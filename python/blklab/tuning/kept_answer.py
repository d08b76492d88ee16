"""``tuned.json``: the answer of a search, beside the results of its confirmation.

``blklab apply --from DIRECTORY`` takes it. A comparison cannot give it: the objective of a search
may be one that comparisons do not have, and Linux itself or the real disk may have contradicted.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import msgspec

from blklab.base.files import text_content, write_whole
from blklab.base.plain import encode
from blklab.errors import InputError
from blklab.tuning.answer import Tuned
from blklab.tuning.words import sentence

FILE = "tuned.json"
_RESULTS = "results.json"
_BYTES_MAX = 1 << 20


@dataclass(frozen=True)
class KeptAnswer:
    """What `blklab apply` needs of an answer."""

    disk: str
    objective: str
    reference: str
    """The settings in use."""
    best: str
    """The recommended ones."""
    said: str
    """The answer in a sentence."""
    confirmation: str
    """SHA-256 of ``results.json`` beside it."""


def save(directory: Path, answer: Tuned) -> None:
    """Write it beside ``results.json``, which is there."""
    kept = KeptAnswer(
        answer.disk,
        answer.objective,
        answer.reference,
        answer.best,
        sentence(answer),
        _hash(directory),
    )
    write_whole(directory / FILE, encode(kept).decode() + "\n")


def load(directory: Path) -> KeptAnswer | None:
    """None if there is none, or if the directory has got other results since. InputError if it is
    not valid."""
    file = directory / FILE
    if not file.is_file():
        return None
    try:
        kept = msgspec.json.decode(text_content(file, _BYTES_MAX, "an answer"), type=KeptAnswer)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"not an answer of 'blklab tune' ({error})", str(file)) from error
    return kept if kept.confirmation == _hash(directory) else None


def _hash(directory: Path) -> str:
    try:
        return hashlib.sha256((directory / _RESULTS).read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(
            f"the confirmation of {FILE} is missing: {error.strerror}", str(directory / _RESULTS)
        ) from error
