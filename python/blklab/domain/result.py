"""The typed result of a run. The fields are those of `result.rs`, from every rig."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Protocol

import numpy as np
from msgspec import Meta

from blklab import _core
from blklab.base.units import duration_text, number_text, rate_text
from blklab.domain import summaries
from blklab.domain.conditions import DeviceState
from blklab.domain.costs import Costs
from blklab.domain.histogram import Histogram, Ints
from blklab.domain.ranges import Rate
from blklab.domain.summaries import (
    DirectionSummary,
    DiskCounters,
    JobSummary,
    LatencySummary,
    RunSummary,
    SampleSummary,
)
from blklab.domain.tables import Table

DIRECTIONS = ("read", "write", "trim")
KERNEL_PROCESS = -1
"""``Trace.process`` for the kernel's own writeback."""


class RunData(Protocol):
    """A rig's raw data: scalars as objects, bulk data as little-endian 64-bit columns."""

    @property
    def summary(self) -> RunSummary | _core.RunSummary:
        """The scalars."""

    def columns(self) -> list[str]:
        """Names of all columns, without those of empty histograms."""

    def column(self, name: str) -> bytes:
        """One column."""


@dataclass(frozen=True, eq=False)
class Direction:
    """One direction of one job. Counts only I/O after ``ramp_time``."""

    ios: int
    """I/Os that have completed."""
    bytes: int
    """Bytes of these I/Os."""
    runtime_ns: int
    """The time that divides bandwidth and IOPS."""
    slat: LatencySummary
    """Submission latencies, ns."""
    clat: LatencySummary
    """Completion latencies, ns: from the end of the submission."""
    lat: LatencySummary
    """Total latencies, ns: from the start of the submission."""
    bw: SampleSummary
    """Bandwidth, KiB/s, sampled over time as fio samples it."""
    iops: SampleSummary
    """I/Os per second, sampled in the same way."""
    clat_hist: Histogram
    """Histogram of `clat`."""


@dataclass(frozen=True, eq=False)
class Job:
    """One fio process."""

    name: str
    """The name of its section in the job file."""
    group: int
    """fio's reporting group, from 0."""
    group_reporting: bool
    """Whether fio prints its group as one job."""
    options: tuple[tuple[str, str], ...]
    """Its options as given, with their values."""
    percentiles: tuple[float, ...]
    """The percentiles to print, in percent."""
    start_ns: int
    """From the start of the run."""
    end_ns: int
    """From the start of the run."""
    user_ns: int
    """CPU time in user mode."""
    system_ns: int
    """CPU time in the kernel."""
    context_switches: int
    read: Direction
    write: Direction
    trim: Direction
    sync_lat: LatencySummary
    """Latencies of fsync and its kind, ns."""
    sync_hist: Histogram
    """Histogram of `sync_lat`."""
    depth_levels: tuple[int, ...]
    """I/Os by depth when queued, 7 counts: 1, 2, 4, 8, 16, 32, 64 and more."""
    submit_levels: tuple[int, ...]
    """Submit calls by their number of I/Os, 7 counts: 0, 1 to 4, 5 to 8, 9 to 16, 17 to 32, 33 to
    64, more."""
    complete_levels: tuple[int, ...]
    """The same for calls that reap completions."""
    latency_levels: tuple[int, ...]
    """I/Os by total latency, in fio's classes from 2 ns to 2 s; the last has all longer ones."""

    def direction(self, name: str) -> Direction:
        """``read``, ``write`` or ``trim``."""
        found: Direction = getattr(self, name)
        return found


@dataclass(frozen=True, eq=False, repr=False)
class Series(Table):
    """Counters over equal intervals of ``interval_ns``, from the start of the run.

    A column that the rig did not measure is empty: on the kernel rig with fio, the processes' own
    columns if one of them uses the page cache.
    """

    interval_ns: int
    """The length of an interval. Each column has one number per interval."""
    read_bytes: Ints
    write_bytes: Ints
    read_ios: Ints
    write_ios: Ints
    read_clat_sum_ns: Ints
    """Sum of the completion latencies of reads that completed in the interval."""
    write_clat_sum_ns: Ints
    read_clat_max_ns: Ints
    """The longest of them."""
    write_clat_max_ns: Ints
    waiting_milli: Ints
    """Requests in the scheduler: the mean over the interval, times 1000."""
    in_flight_milli: Ints
    """Commands in flight: the mean over the interval, times 1000."""

    def columns(self) -> dict[str, Ints]:
        """``start_ns`` of each interval, then the counters that were measured."""
        found = _columns(self, skip="interval_ns")
        start_ns = np.arange(self._rows(), dtype=np.int64) * self.interval_ns
        measured = {name: column for name, column in found.items() if len(column) == len(start_ns)}
        return {"start_ns": start_ns} | measured

    def _rows(self) -> int:
        return max(map(len, _columns(self, skip="interval_ns").values()))

    def __repr__(self) -> str:
        return f"Series({self._rows()} x {duration_text(self.interval_ns)})"


@dataclass(frozen=True, eq=False, repr=False)
class Levels(Table):
    """Queue and latency in short equal intervals over the whole run, for pile-ups: 10 ms, in longer
    runs doubled; 65,536 at most. Empty on rigs that do not record them."""

    start_ns: Ints
    ios: Ints
    """I/Os completed to processes."""
    clat_sum_ns: Ints
    """Sum of their completion latencies."""
    depth_milli: Ints
    """Requests waiting or in flight: the mean over the interval, times 1000."""

    def columns(self) -> dict[str, Ints]:
        """One number for each interval."""
        return _columns(self)

    def __repr__(self) -> str:
        return f"Levels({len(self.start_ns)})"


@dataclass(frozen=True, eq=False, repr=False)
class PercentileSeries(Table):
    """Percentiles of the completion latencies, ns, in equal intervals over the whole run: 100 ms,
    in longer runs doubled; 512 at most. Within 6 %; 0 in an interval without I/Os.

    Columns of a direction without I/Os are empty, all of them on rigs that do not record them.
    """

    start_ns: Ints
    bytes: Ints
    """Bytes completed to processes."""
    read_ios: Ints
    read_p50_ns: Ints
    read_p99_ns: Ints
    read_p999_ns: Ints
    write_ios: Ints
    """With trims, as all columns of writes."""
    write_p50_ns: Ints
    write_p99_ns: Ints
    write_p999_ns: Ints

    def columns(self) -> dict[str, Ints]:
        """The columns that are not empty."""
        return {name: column for name, column in _columns(self).items() if len(column)}

    def __repr__(self) -> str:
        return f"PercentileSeries({len(self.start_ns)})"


@dataclass(frozen=True, eq=False, repr=False)
class Trace(Table):
    """Commands as the disk saw them, in order of issue; every ``stride``-th is stored.

    The time at which the disk began each command is stored only for a window; else that column is
    empty.
    """

    stride: int
    queued_ns: Ints
    issued_ns: Ints
    began_ns: Ints
    completed_ns: Ints
    sector: Ints
    sectors: Ints
    op: Ints
    process: Ints

    def columns(self) -> dict[str, Ints]:
        """Times in ns, position and length in sectors, operation, process."""
        found = _columns(self, skip="stride")
        return {name: column for name, column in found.items() if len(column) == len(self.sector)}

    def __repr__(self) -> str:
        return f"Trace({len(self.sector)} commands, one in {self.stride})"


@dataclass(frozen=True, eq=False, repr=False)
class Decisions(Table):
    """A scheduler's decisions in a window, in order of time.

    Earlier decisions come first if their effect still lasts at the start of the window: a turn, a
    raised weight.
    """

    at_ns: Ints
    process: Ints
    """As in ``Trace``; also -1 for decisions about the whole queue."""
    kind: Ints
    """Index into `blklab.domain.core.decision_kinds`."""
    a: Ints
    """The numbers of that kind of decision: see ``decisions.rs``."""
    b: Ints

    def columns(self) -> dict[str, Ints]:
        """A row for each decision."""
        return _columns(self)

    def __repr__(self) -> str:
        return f"Decisions({len(self.at_ns)})"


@dataclass(frozen=True)
class Figure:
    """The result of a program other than fio: the figure that ranks it."""

    value: Rate
    unit: Annotated[str, Meta(min_length=1, max_length=40)]
    """``rows/s``, ``s``, ..."""
    higher_is_better: bool


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Everything that one run of one job file on one disk under one scheduler has measured.

    A program other than fio has a `figure` and no `jobs`.
    """

    duration_ns: int
    jobs: tuple[Job, ...]
    disk: DiskCounters
    series: Series
    overview: Trace
    detail: Trace
    decisions: Decisions
    detail_left_out: int = 0
    """The number of commands of the requested window beyond the limit."""
    decisions_left_out: int | None = None
    """The number of decisions of the window beyond the limit; None if the rig records none."""
    notes: tuple[str, ...] = ()
    """Differences from the requested settings, a line each: tunables that the kernel rounded."""
    raw: Mapping[str, bytes] = field(default_factory=dict)
    """Files written by the rig's programs: fio's own ``fio.json``."""
    device_before: DeviceState | None = None
    """The device's settings and state before the run, as plain data; None on disk models."""
    device_after: DeviceState | None = None
    """The same after it."""
    figure: Figure | None = None
    """Only for a program other than fio."""
    operations_ns: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """The time of each of the program's operations; empty if the program does not report it."""
    costs: Costs | None = None
    """What the program's work costs the disk; None for fio, and on rigs that do not count it."""
    levels: Levels = field(default_factory=lambda: _empty(Levels))
    percentiles: PercentileSeries = field(default_factory=lambda: _empty(PercentileSeries))

    def histogram(self, direction: str) -> Histogram:
        """Completion latencies of all jobs in one direction."""
        return Histogram.merged(job.direction(direction).clat_hist for job in self.jobs)

    def _rows(self) -> list[tuple[str, str, str, str, str, str]]:
        rows = []
        for job in self.jobs:
            for name in DIRECTIONS:
                part = job.direction(name)
                if part.ios and part.runtime_ns:
                    p50, p99 = part.clat_hist.percentiles([50.0, 99.0]).tolist()
                    rows.append(
                        (
                            job.name,
                            name,
                            rate_text(part.bytes * 1e9 / part.runtime_ns),
                            f"{part.ios * 1e9 / part.runtime_ns:.0f} IOPS",
                            f"p50 {duration_text(p50)}",
                            f"p99 {duration_text(p99)}",
                        )
                    )
        return rows

    def __repr__(self) -> str:
        what = f"{len(self.jobs)} jobs" if self.figure is None else figure_text(self.figure)
        head = f"Result({what}, {duration_text(self.duration_ns)})"
        return "\n".join([head, *("  " + "  ".join(row) for row in self._rows())])

    def _repr_html_(self) -> str:
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self._rows()
        )
        what = f"{len(self.jobs)} jobs" if self.figure is None else figure_text(self.figure)
        time = "" if self.device_before else " of virtual time"
        caption = html.escape(f"{what}, {duration_text(self.duration_ns)}{time}")
        heads = "".join(
            f"<th>{name}</th>" for name in ("job", "direction", "throughput", "IOPS", "p50", "p99")
        )
        return (
            f"<table><caption>{caption}</caption>"
            f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
        )

    @staticmethod
    def of_program(
        figure: Figure, operations_ns: Ints, duration_ns: int, raw: Mapping[str, bytes]
    ) -> Result:
        """The result of a program other than fio; the rig adds the disk's activity."""
        none = np.zeros(0, np.int64)

        def table(kind: Any, *skip: str) -> dict[str, Ints]:
            return {f.name: none for f in fields(kind) if f.name not in skip}

        trace = Trace(1, **table(Trace, "stride"))
        return Result(
            duration_ns=duration_ns,
            jobs=(),
            disk=DiskCounters(**{f.name: 0 for f in fields(DiskCounters)}),
            series=Series(1, **table(Series, "interval_ns")),
            overview=trace,
            detail=trace,
            decisions=Decisions(**table(Decisions)),
            raw=raw,
            figure=figure,
            operations_ns=operations_ns,
        )

    @staticmethod
    def from_run(run: RunData) -> Result:
        """A rig's raw data as a result; the columns are views of the rig's bytes."""
        told = run.summary
        summary = told if isinstance(told, RunSummary) else summaries.from_core(told)
        known = set(run.columns())

        def column(name: str) -> Ints:
            return np.frombuffer(run.column(name) if name in known else b"", dtype="<i8")

        return Result(
            duration_ns=summary.duration_ns,
            jobs=tuple(
                _job(job, f"jobs.{index}", column) for index, job in enumerate(summary.jobs)
            ),
            disk=summary.disk,
            series=Series(
                summary.series_interval_ns, **_table(Series, "series", "interval_ns", column)
            ),
            overview=Trace(summary.overview_stride, **_table(Trace, "overview", "stride", column)),
            detail=Trace(1, **_table(Trace, "detail", "stride", column)),
            decisions=Decisions(**_table(Decisions, "decisions", None, column)),
            detail_left_out=summary.detail_left_out,
            decisions_left_out=summary.decisions_left_out,
            levels=Levels(**_table(Levels, "levels", None, column)),
            percentiles=PercentileSeries(**_table(PercentileSeries, "percentiles", None, column)),
        )


def figure_text(figure: Figure) -> str:
    """``412 rows/s``."""
    return f"{number_text(figure.value)} {figure.unit}"


class _Column(Protocol):
    def __call__(self, name: str) -> Ints: ...


def _columns(table: Any, skip: str | None = None) -> dict[str, Ints]:
    return {f.name: getattr(table, f.name) for f in fields(table) if f.name != skip}


def _empty(kind: Any) -> Any:
    return kind(**{f.name: np.zeros(0, np.int64) for f in fields(kind)})


def _table(kind: Any, prefix: str, skip: str | None, column: _Column) -> dict[str, Ints]:
    return {f.name: column(f"{prefix}.{f.name}") for f in fields(kind) if f.name != skip}


def _histogram(prefix: str, column: _Column) -> Histogram:
    return Histogram(column(f"{prefix}.value_ns"), column(f"{prefix}.count"))


def _direction(summary: DirectionSummary, prefix: str, column: _Column) -> Direction:
    return Direction(
        ios=summary.ios,
        bytes=summary.bytes,
        runtime_ns=summary.runtime_ns,
        slat=summary.slat,
        clat=summary.clat,
        lat=summary.lat,
        bw=summary.bw,
        iops=summary.iops,
        clat_hist=_histogram(f"{prefix}.clat_hist", column),
    )


def _job(summary: JobSummary, prefix: str, column: _Column) -> Job:
    return Job(
        name=summary.name,
        group=summary.group,
        group_reporting=summary.group_reporting,
        options=summary.options,
        percentiles=summary.percentiles,
        start_ns=summary.start_ns,
        end_ns=summary.end_ns,
        user_ns=summary.user_ns,
        system_ns=summary.system_ns,
        context_switches=summary.context_switches,
        read=_direction(summary.read, f"{prefix}.read", column),
        write=_direction(summary.write, f"{prefix}.write", column),
        trim=_direction(summary.trim, f"{prefix}.trim", column),
        sync_lat=summary.sync_lat,
        sync_hist=_histogram(f"{prefix}.sync_hist", column),
        depth_levels=summary.depth_levels,
        submit_levels=summary.submit_levels,
        complete_levels=summary.complete_levels,
        latency_levels=summary.latency_levels,
    )
