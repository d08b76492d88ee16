"""The agreement of the simulator's figures, slices and order with the reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from blklab.domain.result import Direction
from validation.linux412.reference import NO_DATA, Issued, Row, Slice

IOPS_WITHIN = 0.02
P99_WITHIN = 0.05
SHARE_MET = 0.95
"""The share of the rows that must be within the bounds."""
SLICE_WITHIN = 0.02
"""A slice's length."""


@dataclass(frozen=True)
class Found:
    """One row of the reference, with the simulator's figures."""

    run: str
    row: Row
    iops: float
    p99_us: float

    @property
    def iops_met(self) -> bool:
        """Throughput is within the bound."""
        return _near(self.iops, self.row.iops, IOPS_WITHIN)

    @property
    def p99_met(self) -> bool:
        """The 99th percentile is within the bound."""
        return _near(self.p99_us, self.row.p99_us, P99_WITHIN)

    @property
    def met(self) -> bool:
        """Both are."""
        return self.iops_met and self.p99_met

    def words(self) -> str:
        """One line about a miss."""
        wrong = [name for name, met in (("IOPS", self.iops_met), ("p99", self.p99_met)) if not met]
        return (
            f"{self.run} {self.row.job} {self.row.direction}: {' and '.join(wrong)}: "
            f"{self.iops:.2f} IOPS, p99 {self.p99_us:.0f} us; "
            f"Linux {self.row.iops:.2f}, {self.row.p99_us:.0f}"
        )


def found(run: str, row: Row, simulated: Direction) -> Found:
    """The simulator's figures for `row`, by fio's rules: over whole milliseconds."""
    milliseconds = math.ceil(simulated.runtime_ns / 1e6)
    p99_us = float(simulated.clat_hist.percentiles([99.0])[0]) / 1e3 if simulated.ios else 0.0
    return Found(run, row, simulated.ios * 1e3 / milliseconds if milliseconds else 0.0, p99_us)


def _near(ours: float, real: float, within: float) -> bool:
    return abs(ours - real) <= within * real


def owners_share(ours: Sequence[Slice], real: Sequence[Slice]) -> float:
    """The share of the reference's turns that the same process has in the simulator, in order."""
    return _equal([one.process for one in ours], [one.process for one in real])


def lengths_share(ours: Sequence[Slice], real: Sequence[Slice]) -> float:
    """The share of the processes with the reference's median slice; 1 if the reference has no
    slices."""

    def medians(slices: Sequence[Slice]) -> dict[str, int]:
        by_process: dict[str, list[int]] = {}
        for one in slices:
            if one.slice_ns is not None:
                by_process.setdefault(one.process, []).append(one.slice_ns)
        return {process: sorted(all_)[len(all_) // 2] for process, all_ in by_process.items()}

    mine, theirs = medians(ours), medians(real)
    met = [_near(mine.get(process, 0), ns, SLICE_WITHIN) for process, ns in theirs.items()]
    return sum(met) / len(met) if met else 1.0


def order_share(ours: Sequence[tuple[int, int]], real: Sequence[Issued]) -> float:
    """The share of the first requests that belong to the same process, in the order of issue."""
    theirs = [one.process for one in real if one.op != NO_DATA]
    return _equal([process for _, process in ours], theirs)


def _equal(ours: Sequence[object], real: Sequence[object]) -> float:
    if not real:
        return 1.0
    return sum(mine == theirs for mine, theirs in zip(ours, real, strict=False)) / len(real)
