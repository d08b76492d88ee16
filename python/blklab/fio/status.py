"""The data that fio prints: processes merged by ``group_reporting``, in fio's units.

Follows `__show_run_stats`, `sum_thread_stats` and `sum_stat` of fio 3.33's `stat.c`: times
are whole milliseconds, latencies add up by their moments, samples of bandwidth and IOPS
are summed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from blklab.domain.histogram import Histogram, Ints
from blklab.domain.result import (
    DIRECTIONS,
    Direction,
    Job,
    Result,
)
from blklab.domain.stages import Times, times
from blklab.domain.summaries import DiskCounters, LatencySummary, SampleSummary

_NS_PER_MS = 1_000_000
# LATENCY_BOUNDS_NS in result.rs: ten classes below 1 us, ten below 1 ms, the rest.
_NS_CLASSES, _US_CLASSES = 10, 10


@dataclass(frozen=True)
class Moments:
    """fio's `io_stat`: count, extremes, mean, and the sum of squared deviations."""

    count: int = 0
    min: float = 0.0
    max: float = 0.0
    mean: float = 0.0
    squares: float = 0.0

    @property
    def stddev(self) -> float:
        """Sample standard deviation."""
        return math.sqrt(self.squares / (self.count - 1)) if self.count > 1 else 0.0

    def pooled(self, other: Moments) -> Moments:
        """The moments of both sets of samples together (Chan, Golub and LeVeque 1979)."""
        if not self.count or not other.count:
            return self if self.count else other
        count = self.count + other.count
        delta = other.mean - self.mean
        return Moments(
            count,
            min(self.min, other.min),
            max(self.max, other.max),
            (self.mean * self.count + other.mean * other.count) / count,
            self.squares + other.squares + delta * delta * self.count * other.count / count,
        )

    def added(self, other: Moments) -> Moments:
        """fio's `pure_sum`, for rates of processes that ran side by side."""
        return Moments(
            self.count + other.count,
            self.min + other.min,
            self.max + other.max,
            self.mean + other.mean,
            self.squares + other.squares,
        )


@dataclass(frozen=True)
class DirectionStatus:
    """One direction of one printed job."""

    io_bytes: int
    runtime_ms: int
    total_ios: int
    slat: Moments
    clat: Moments
    lat: Moments
    bw: Moments
    """Samples, KiB/s."""
    iops: Moments
    hist: Histogram
    """Completion latencies in fio's buckets."""

    @property
    def bw_bytes(self) -> int:
        """Bytes per second, rounded down."""
        return 1000 * self.io_bytes // self.runtime_ms if self.runtime_ms else 0

    @property
    def iops_rate(self) -> float:
        """I/Os per second."""
        return 1000.0 * self.total_ios / self.runtime_ms if self.runtime_ms else 0.0

    def with_(self, other: DirectionStatus) -> DirectionStatus:
        """Both together, as in one group."""
        return DirectionStatus(
            self.io_bytes + other.io_bytes,
            max(self.runtime_ms, other.runtime_ms),
            self.total_ios + other.total_ios,
            self.slat.pooled(other.slat),
            self.clat.pooled(other.clat),
            self.lat.pooled(other.lat),
            self.bw.added(other.bw),
            self.iops.added(other.iops),
            Histogram.merged([self.hist, other.hist]),
        )


@dataclass(frozen=True)
class JobStatus:
    """One entry of fio's ``jobs``: a process, or a group of them."""

    name: str
    group: int
    members: int
    pid: int
    options: tuple[tuple[str, str], ...]
    percentiles: tuple[float, ...]
    runtime_ms: int
    user_ms: float
    system_ms: float
    context_switches: int
    read: DirectionStatus
    write: DirectionStatus
    trim: DirectionStatus
    sync: Moments
    sync_hist: Histogram
    depth_levels: tuple[int, ...]
    submit_levels: tuple[int, ...]
    complete_levels: tuple[int, ...]
    latency_levels: tuple[int, ...]

    @property
    def directions(self) -> dict[str, DirectionStatus]:
        """Read, write and trim, in fio's order."""
        return {name: getattr(self, name) for name in DIRECTIONS}

    @property
    def total_ios(self) -> int:
        """I/Os of all directions, without syncs."""
        return sum(part.total_ios for part in self.directions.values())

    @property
    def iodepth(self) -> int:
        """The option, 1 if not given."""
        text = dict(self.options).get("iodepth", "1")
        return int(text) if text.isdigit() else 1

    def cpu_percent(self) -> tuple[float, float]:
        """User and system time in percent of the run time."""
        if not self.runtime_ms:
            return 0.0, 0.0
        return self.user_ms * 100 / self.runtime_ms, self.system_ms * 100 / self.runtime_ms

    def depth_percent(self) -> list[float]:
        """Share of I/Os per depth level."""
        return _shares(self.depth_levels, self.total_ios, least=0.1)

    def submit_percent(self) -> list[float]:
        """Share of submit calls per size."""
        return _shares(self.submit_levels, sum(self.submit_levels), least=0.1)

    def complete_percent(self) -> list[float]:
        """Share of reaping calls per size."""
        return _shares(self.complete_levels, sum(self.complete_levels), least=0.1)

    def latency_percent(self) -> tuple[list[float], list[float], list[float]]:
        """Share of I/Os per class of latency: below 1 us, below 1 ms, and longer."""
        shares = _shares(self.latency_levels, self.total_ios, least=0.01)
        first, second = _NS_CLASSES, _NS_CLASSES + _US_CLASSES
        return shares[:first], shares[first:second], shares[second:]

    def with_(self, other: JobStatus) -> JobStatus:
        """Both together; name, options and the like are the first one's."""
        return JobStatus(
            self.name,
            self.group,
            self.members + other.members,
            self.pid,
            self.options,
            self.percentiles,
            self.runtime_ms + other.runtime_ms,
            self.user_ms + other.user_ms,
            self.system_ms + other.system_ms,
            self.context_switches + other.context_switches,
            self.read.with_(other.read),
            self.write.with_(other.write),
            self.trim.with_(other.trim),
            self.sync.pooled(other.sync),
            Histogram.merged([self.sync_hist, other.sync_hist]),
            _sums(self.depth_levels, other.depth_levels),
            _sums(self.submit_levels, other.submit_levels),
            _sums(self.complete_levels, other.complete_levels),
            _sums(self.latency_levels, other.latency_levels),
        )


@dataclass(frozen=True)
class Report:
    """All that a format needs."""

    jobs: tuple[JobStatus, ...]
    processes: int
    disk_name: str
    disk: DiskCounters
    duration_ms: int
    global_options: Mapping[str, str] = field(default_factory=dict)
    """The options in the file's ``[global]``."""
    requests: Mapping[str, Times] = field(default_factory=dict)
    """By operation, if they are printed; one in `requests_one_in`. Not fio's."""
    requests_one_in: int = 1
    ended_ms: int | None = None
    """Since 1970, by the clock of this machine; None in virtual time, which begins there, so that
    the same run gives the same bytes on any day."""

    @property
    def end_ms(self) -> int:
        """When the run ended, since 1970."""
        return self.duration_ms if self.ended_ms is None else self.ended_ms

    @property
    def end_text(self) -> str:
        """The same as fio writes it: ``Sun Nov 22 23:36:26 2026``, local time."""
        parts = time.gmtime if self.ended_ms is None else time.localtime
        return time.asctime(parts(self.end_ms // 1000))

    @property
    def percentiles(self) -> tuple[float, ...]:
        """The options of the first job, for parts that belong to no job."""
        return self.jobs[0].percentiles if self.jobs else ()

    @property
    def disk_util_percent(self) -> float:
        """Share of the run during which the disk was busy."""
        if not self.duration_ms:
            return 0.0
        return min(100.0, self.disk.io_ticks_ns / _NS_PER_MS * 100 / self.duration_ms)

    def disk_figures(self) -> dict[str, int]:
        """``/proc/diskstats`` as fio prints it: times in ms."""
        disk = self.disk
        return {
            "read_ios": disk.read_ios,
            "write_ios": disk.write_ios,
            "read_merges": disk.read_merges,
            "write_merges": disk.write_merges,
            "read_ticks": disk.read_ticks_ns // _NS_PER_MS,
            "write_ticks": disk.write_ticks_ns // _NS_PER_MS,
            "in_queue": disk.in_queue_ns // _NS_PER_MS,
        }


def report(
    result: Result,
    disk_name: str,
    global_options: Mapping[str, str] | None = None,
    *,
    requests: bool = False,
    ended_at: datetime | None = None,
) -> Report:
    """A result in fio's terms; with `requests` also queue time and service time. `ended_at` is for
    a run in real time."""
    printed: list[JobStatus] = []
    grouped: JobStatus | None = None
    for index, job in enumerate(result.jobs):
        status = _job_status(job, pid=index + 1)
        if job.group_reporting and grouped is not None and grouped.group == job.group:
            grouped = printed[-1] = grouped.with_(status)
        else:
            printed.append(status)
            grouped = status if job.group_reporting else None
    return Report(
        tuple(printed),
        len(result.jobs),
        disk_name,
        result.disk,
        _milliseconds(result.duration_ns),
        dict(global_options or {}),
        times(result) if requests else {},
        result.overview.stride,
        None if ended_at is None else int(ended_at.timestamp() * 1000),
    )


def times_status(took_ns: Ints) -> tuple[Moments, Histogram]:
    """The moments of at least one time, ns."""
    value_ns, count = np.unique(took_ns, return_counts=True)
    mean = float(took_ns.mean())
    squares = float(((took_ns - mean) ** 2).sum())
    moments = Moments(len(took_ns), int(took_ns.min()), int(took_ns.max()), mean, squares)
    return moments, Histogram(value_ns, count.astype(np.int64))


def _milliseconds(span_ns: int) -> int:
    return (span_ns + _NS_PER_MS // 2) // _NS_PER_MS


def _moments(summary: LatencySummary) -> Moments:
    return Moments(
        summary.count,
        summary.min_ns,
        summary.max_ns,
        summary.mean_ns,
        summary.stddev_ns**2 * max(summary.count - 1, 0),
    )


def _sample_moments(summary: SampleSummary) -> Moments:
    squares = summary.stddev**2 * max(summary.count - 1, 0)
    return Moments(summary.count, summary.min, summary.max, summary.mean, squares)


def _direction_status(part: Direction) -> DirectionStatus:
    return DirectionStatus(
        part.bytes,
        # A direction with any I/O took at least fio's smallest time.
        max(_milliseconds(part.runtime_ns), 1 if part.ios else 0),
        part.ios,
        _moments(part.slat),
        _moments(part.clat),
        _moments(part.lat),
        _sample_moments(part.bw),
        _sample_moments(part.iops),
        part.clat_hist.folded(),
    )


def _job_status(job: Job, pid: int) -> JobStatus:
    return JobStatus(
        job.name,
        job.group,
        1,
        pid,
        job.options,
        tuple(sorted(job.percentiles)),
        _milliseconds(job.end_ns - job.start_ns),
        job.user_ns / _NS_PER_MS,
        job.system_ns / _NS_PER_MS,
        job.context_switches,
        _direction_status(job.read),
        _direction_status(job.write),
        _direction_status(job.trim),
        _moments(job.sync_lat),
        job.sync_hist.folded(),
        job.depth_levels,
        job.submit_levels,
        job.complete_levels,
        job.latency_levels,
    )


def _shares(counts: Sequence[int], total: int, least: float) -> list[float]:
    """Percentages; tiny shares above 0 become `least`, as in fio."""
    if not total:
        return [0.0] * len(counts)
    return [max(count * 100.0 / total, least) if count else 0.0 for count in counts]


def _sums(one: Iterable[int], other: Iterable[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


@dataclass(frozen=True)
class GroupStatus:
    """One direction of one group, for the lines below "Run status group"."""

    io_bytes: int
    agg: int
    """Bytes per second of all together."""
    min_bw: int
    max_bw: int
    min_runtime_ms: int
    max_runtime_ms: int


def group_status(jobs: Iterable[JobStatus], direction: str) -> GroupStatus | None:
    """fio's `group_run_stats` for one direction; None if nothing ran in it."""
    parts = [part for job in jobs if (part := job.directions[direction]).runtime_ms]
    if not parts:
        return None
    io_bytes = sum(part.io_bytes for part in parts)
    longest_ms = max(part.runtime_ms for part in parts)
    return GroupStatus(
        io_bytes,
        io_bytes * 1000 // longest_ms,
        min(part.bw_bytes for part in parts),
        max(part.bw_bytes for part in parts),
        min(part.runtime_ms for part in parts),
        longest_ms,
    )
