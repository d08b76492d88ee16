"""One run as plain data: everything that analysis and report need, nothing else.

Kept in `results.json`, so that a report can be made again without running again.
"""

from __future__ import annotations

from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any

import numpy as np

from blklab.compare.plan import Planned
from blklab.histogram import Histogram, Ints
from blklab.result import DIRECTIONS, Result, Series, Trace
from blklab.tables import Table

PERCENTILES = (50.0, 99.0, 99.9)
TRACE_COMMANDS = 2000
"""Commands of each trace that are kept: as many as a picture has room for."""


@dataclass(frozen=True)
class Latency:
    """Latencies of one kind of operation, ns."""

    ios: int
    mean_ns: float
    percentiles_ns: tuple[int, ...]
    """At `PERCENTILES`."""
    value_ns: tuple[int, ...]
    """Histogram in fio's buckets (64 per power of two)."""
    count: tuple[int, ...]

    def histogram(self) -> Histogram:
        """As a histogram again."""
        return Histogram(np.array(self.value_ns, np.int64), np.array(self.count, np.int64))


@dataclass(frozen=True)
class Story:
    """What happened over time, of one run of each kind."""

    jobs: tuple[str, ...]
    interval_ns: int
    series: dict[str, list[int]]
    """Columns that were not measured are left out."""
    overview: dict[str, list[int]]
    """Commands over the whole run, one in ``overview_stride``."""
    overview_stride: int
    detail: dict[str, list[int]]
    """Every command of one stretch."""


@dataclass(frozen=True)
class Measurement:
    """What one run measured."""

    disk: str
    workload: str
    scheduler: str
    repeat: int
    seed: int
    duration_ns: int
    bytes_per_s: float
    ios_per_s: float
    latencies: dict[str, Latency]
    """By operation: ``read``, ``sync`` (fsync and fdatasync), ``write``, ``trim``."""
    disk_counters: dict[str, int]
    story: Story | None
    """Of the first repeat only."""
    notes: tuple[str, ...] = ()
    """See :class:`blklab.result.Result`."""


def measure(planned: Planned, result: Result) -> Measurement:
    """The plain data of a run."""
    seconds = _io_seconds(result)
    parts = [job.direction(name) for job in result.jobs for name in DIRECTIONS]
    return Measurement(
        planned.disk.label,
        planned.workload.name,
        planned.scheduler,
        planned.repeat,
        planned.experiment.seed,
        result.duration_ns,
        sum(part.bytes for part in parts) / seconds if seconds else 0.0,
        sum(part.ios for part in parts) / seconds if seconds else 0.0,
        _latencies(result),
        asdict(result.disk),
        _story(result) if planned.repeat == 0 else None,
        result.notes,
    )


def from_json(document: dict[str, Any]) -> Measurement:
    """A measurement as `store` has written it. KeyError or TypeError if
    it is none."""
    # Results of earlier versions have no notes.
    kept = {field.name: document[field.name] for field in fields(Measurement)
            if field.name in document or field.default is MISSING}  # fmt: skip
    kept["notes"] = tuple(kept.get("notes", ()))
    kept["latencies"] = {
        name: Latency(**{key: _tuple(value) for key, value in latency.items()})
        for name, latency in document["latencies"].items()
    }
    story = document["story"]
    kept["story"] = None if story is None else Story(**story | {"jobs": tuple(story["jobs"])})
    return Measurement(**kept)


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _io_seconds(result: Result) -> float:
    """The time that throughput is divided by: as fio does, that of the slowest direction of
    jobs that ran side by side; stretches that followed each other (`stonewall`) add up."""
    total_ns = longest_ns = end_ns = 0
    for job in sorted(result.jobs, key=lambda job: job.start_ns):
        if job.start_ns >= end_ns:
            total_ns += longest_ns
            longest_ns = 0
        longest_ns = max(longest_ns, *(job.direction(name).runtime_ns for name in DIRECTIONS))
        end_ns = max(end_ns, job.end_ns)
    return (total_ns + longest_ns) / 1e9


def _latencies(result: Result) -> dict[str, Latency]:
    found = {}
    for name in ("read", "sync", "write", "trim"):
        if name == "sync":
            summaries = [job.sync_lat for job in result.jobs]
            hist = Histogram.merged(job.sync_hist for job in result.jobs)
        else:
            summaries = [job.direction(name).clat for job in result.jobs]
            hist = result.histogram(name)
        count = sum(summary.count for summary in summaries)
        if count:
            folded = hist.folded()
            found[name] = Latency(
                count,
                sum(summary.mean_ns * summary.count for summary in summaries) / count,
                tuple(hist.percentiles(PERCENTILES).tolist()),
                tuple(folded.value_ns.tolist()),
                tuple(folded.count.tolist()),
            )
    return found


def _story(result: Result) -> Story:
    commands = len(result.overview.sector)
    step = max(1, -(-commands // TRACE_COMMANDS))
    return Story(
        tuple(job.name for job in result.jobs),
        result.series.interval_ns,
        _lists(result.series, Series, slice(None)),
        _lists(result.overview, Trace, slice(None, None, step)),
        result.overview.stride * step,
        _lists(result.detail, Trace, slice(0, TRACE_COMMANDS)),
    )


def _lists(table: Table, kind: Any, rows: slice) -> dict[str, list[int]]:
    names = {field.name for field in fields(kind)}
    columns: dict[str, Ints] = dict(table.columns())
    return {name: column[rows].tolist() for name, column in columns.items() if name in names}
