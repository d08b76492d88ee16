"""From two results of one run to a cell: figures of both, and how far they are apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

import numpy as np
import numpy.typing as npt

from blklab.domain.histogram import Histogram
from blklab.domain.result import Result, Trace
from blklab.errors import RunError

RIGS = ("sim", "kernel")
SHORTEST_NS = 1000
"""A deviation of a latency is relative to at least this."""
_ORDER_ROWS = 4000


@dataclass(frozen=True)
class Figures:
    """What one rig measured, over all processes and directions.

    Latencies are the processes', or the disk's where a page cache stands between.
    """

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
    driver: str
    sim: Figures
    kernel: Figures
    latency_of: str
    """Where latencies are measured: in the ``processes`` or at the ``disk``."""
    order: float | None
    """Share of the first commands that both dispatch in the same order; None where the rigs
    were not given the same sequence, or there are too few."""
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
    driver: str
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


def figures_at_disk(ours: Result, real: Result) -> tuple[Figures, Figures]:
    """The figures with the disk's latencies in place of the processes': of the first commands that
    ended while processes ran, as many as both rigs have seen. RunError if there are more than the
    simulator keeps.

    For workloads that use the page cache. A process that writes into memory mostly does not wait,
    so that its median says nothing about scheduler or disk; only the pauses at the dirty limit
    depend on them.
    """
    if ours.overview.stride != 1:
        raise RunError("verify: the disk had more commands than the simulator keeps; run shorter")
    # After the processes have ended, the kernel writes back their dirty pages and completes the
    # commands in flight.
    end_ns = min(max(job.end_ns for job in run.jobs) for run in (ours, real))
    first, second = (
        np.flatnonzero(trace.completed_ns <= end_ns) for trace in (ours.overview, real.detail)
    )
    count = min(len(first), len(second))
    return (
        _disk_side(ours, ours.overview, first[:count]),
        _disk_side(real, real.detail, second[:count]),
    )


def _disk_side(run: Result, trace: Trace, rows: npt.NDArray[np.intp]) -> Figures:
    latency_ns = (trace.completed_ns - trace.issued_ns)[rows]
    if not len(latency_ns):
        return replace(figures(run), p50_ns=0, p99_ns=0)
    p50_ns, p99_ns = np.quantile(latency_ns, (0.5, 0.99), method="inverted_cdf").tolist()
    return replace(figures(run), p50_ns=p50_ns, p99_ns=p99_ns)


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
