"""Whether the runs of a scheduler stay as they are: drift and pile-ups of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blklab.domain.over_time import OverTime, PileUps
from blklab.experiment.drift import Drift, drifts


@dataclass(frozen=True)
class Stability:
    """All runs of a scheduler."""

    interval_ns: int
    intervals: int
    """The number in each run, without an incomplete last one."""
    drifts: tuple[Drift, ...]
    pile_ups: tuple[PileUps, ...]
    """One for each run; empty if a run has recorded neither queue nor latencies."""

    @property
    def lasts_ns(self) -> int:
        """The time that the intervals of a run cover."""
        return self.interval_ns * self.intervals

    @property
    def longest_ns(self) -> int:
        """The longest pile-up of all runs; 0 if there are none."""
        return max((one.longest_ns for one in self.pile_ups), default=0)

    def drift(self, figure: str) -> Drift | None:
        """None if the figure was not recorded, or of too few I/Os in an interval."""
        return next((one for one in self.drifts if one.figure == figure), None)


def stability(runs: Sequence[OverTime | None]) -> Stability | None:
    """None if a run is shorter than a minute, or without a series over time."""
    courses = [run for run in runs if run is not None]
    if not courses or len(courses) < len(runs):
        return None
    found = [run.pile_ups for run in courses if run.pile_ups is not None]
    return Stability(
        max(run.interval_ns for run in courses),
        min(run.intervals for run in courses),
        drifts(courses),
        tuple(found) if len(found) == len(courses) else (),
    )
