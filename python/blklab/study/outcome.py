"""What came of a study that has run, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from blklab.domain.results_file import Results


@dataclass(frozen=True)
class Skipped:
    """Something of a part that does not run."""

    what: str
    """A scheduler, or the part's name for all of it."""
    why: str


@dataclass(frozen=True)
class Outcome:
    """What came of one part."""

    part: str
    rig: str
    results: Results | None
    """None if all of it was left out."""
    skipped: tuple[Skipped, ...]
