"""`results.json`: the set-up and what every run measured. The same runs give the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from blklab.base.files import text_content
from blklab.base.plain import encode
from blklab.domain import check_runs
from blklab.domain.measurement import Measurement
from blklab.domain.setup import SetupData, SetupDocument
from blklab.errors import InputError

_FORMAT = 1
_BYTES_MAX = 1 << 30


@dataclass(frozen=True)
class Results:
    """A comparison that has run."""

    setup: SetupData
    """The set-up, as `blklab.experiment.describe.describe` makes it."""
    runs: tuple[Measurement, ...]

    @property
    def anytime(self) -> bool:
        """The number of repeats depended on the measurements: see `blklab.experiment.budget`."""
        return bool(self.setup.get("stopping"))


def to_text(results: Results) -> str:
    """As JSON, one line per run."""
    runs = ",\n".join(encode(run).decode() for run in results.runs)
    setup = json.dumps(results.setup, indent=1)
    return f'{{"format": {_FORMAT},\n"setup": {setup},\n"runs": [\n{runs}\n]}}\n'


def load(path: Path) -> Results:
    """Read a results file, or the one in a directory. InputError if it is not valid."""
    file = path / "results.json" if path.is_dir() else path
    try:
        document = json.loads(text_content(file, _BYTES_MAX, "results"))
        if document["format"] != _FORMAT:
            raise InputError(
                f"results of format {document['format']}, expected {_FORMAT}",
                str(file),
                found=str(document["format"]),
                expected=str(_FORMAT),
            )
        found = msgspec.convert(document, _Document)
        if wrong := next(_wrong(found), None):
            raise InputError(wrong, str(file))
        return Results(document["setup"], found.runs)
    except (msgspec.ValidationError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"not the results of 'blklab compare' ({error})", str(file)) from error


@dataclass(frozen=True)
class _Document:
    setup: SetupDocument
    runs: tuple[Measurement, ...]


def _wrong(found: _Document) -> Iterator[str]:
    yield from check_runs.wrong(found.setup, found.runs)
    planned = len(check_runs.expected(found.setup)) * found.setup.repeats
    if len(found.runs) != planned or not planned:
        yield f"$.runs: {len(found.runs)} runs, expected {planned} from the set-up"
