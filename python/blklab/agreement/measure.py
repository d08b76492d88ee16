"""From two results of one run to a cell: figures of both, and how far they are apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from blklab.domain.histogram import Histogram
from blklab.domain.result import Result, Trace

RIGS = ("sim", "kernel")
SHORTEST_NS = 1000
"""A deviation of a latency is relative to at least this."""
_ORDER_ROWS = 4000


@dataclass(frozen=True)
class Figures:
    """What one rig measured, over all processes and directions; latencies are the processes'."""

    ios: int
    bytes_per_s: float
    p50_ns: int
    p99_ns: int


@dataclass(frozen=True)
class Cell:
    """One run on both rigs."""

    place: str
    disk: str
    scheduler: str
    load: str
    sim: Figures
    kernel: Figures
    order: float | None
    """Share of the first commands that both dispatch in the same order; None if there are none, or
    more than the simulator keeps."""
    disturbed: Figures | None = None
    """The simulator's figures on a disk that is slower by almost nothing, if requested."""
    file_system: str | None = None
    """The file system that has the job's files; None is a bare disk, where they are partitions."""

    def chance(self, what: str) -> float | None:
        """The deviation of the disturbed simulator from the simulator, relative to the latter."""
        if self.disturbed is None:
            return None
        other, ours = getattr(self.disturbed, what), getattr(self.sim, what)
        return float(abs(other - ours) / ours) if ours else float(other != ours)

    def off(self, what: str) -> float:
        """The deviation of `sim` from `kernel` in this figure, relative to the kernel's."""
        return deviation(what, getattr(self.sim, what), getattr(self.kernel, what))


@dataclass(frozen=True)
class Uncompared:
    """A run without figures: it has failed on one of the rigs."""

    place: str
    disk: str
    scheduler: str
    load: str
    reason: str
    """The error, one line."""
    file_system: str | None = None

    @property
    def text(self) -> str:
        """For a person."""
        return f"{self.load}, {self.scheduler}, {self.place}: not compared: {self.reason}"


def deviation(what: str, ours: float, real: float) -> float:
    """The deviation of a figure from the kernel's, relative to the latter; to a microsecond if a
    latency is shorter.

    A write into memory takes no time where CPU work takes none, and some nanoseconds where a
    command ends meanwhile; on any machine it takes about a microsecond.
    """
    base = max(real, SHORTEST_NS) if what.endswith("_ns") else real
    return float(abs(ours - real) / base) if base else float(ours != real)


def figures(result: Result) -> Figures:
    """Throughput over the whole run; latency of all I/Os together."""
    sides = [side for job in result.jobs for side in (job.read, job.write, job.trim)]
    # The longest side's time: processes run side by side.
    runtime_ns = max(side.runtime_ns for side in sides)
    latency = Histogram.merged(side.clat_hist for side in sides)
    return Figures(
        ios=sum(side.ios for side in sides),
        bytes_per_s=sum(side.bytes for side in sides) * 1e9 / runtime_ns if runtime_ns else 0.0,
        p50_ns=latency.percentile(50),
        p99_ns=latency.percentile(99),
    )


def order(ours: Result, real: Result) -> float | None:
    """The share of commands that both dispatch in the same order."""
    first, second = _first(ours.overview), _first(real.detail)
    length = min(len(first), len(second))
    if ours.overview.stride != 1 or not length:
        return None
    matcher = SequenceMatcher(None, first[:length], second[:length], autojunk=False)
    same: int = sum(block.size for block in matcher.get_matching_blocks())
    return same / length


def _first(trace: Trace) -> Sequence[tuple[int, int]]:
    rows = slice(0, _ORDER_ROWS)
    return list(zip(trace.sector[rows].tolist(), trace.op[rows].tolist(), strict=True))
