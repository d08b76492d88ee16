"""One run as plain data: everything that analysis and report need, and no more.

`results.json` contains it, so that a report can be made again without running again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, Any

import msgspec

from blklab.domain.costs import Costs
from blklab.domain.experiment import Experiment
from blklab.domain.histogram import Ints
from blklab.domain.job_figures import JobFigures, Service, figures_of_jobs, service_of
from blklab.domain.latencies import (
    PERCENTILES,
    Latency,
    Operation,
    io_seconds,
    latencies,
    latency_of,
)
from blklab.domain.over_time import OverTime, over_time
from blklab.domain.ranges import AtLeastOne, Count, Duration, Number, Rate
from blklab.domain.result import DIRECTIONS, Figure, Result, Series, Trace
from blklab.domain.stages import Operation as StagedOperation
from blklab.domain.stages import Stages, stages
from blklab.domain.tables import Table

__all__ = ["PERCENTILES", "Latency", "Measurement", "Story", "from_json", "measure"]

TRACE_COMMANDS = 2000
"""Maximum number of stored commands of each trace: as many as a picture has room for."""
_SECTOR_BYTES = 512
_DRAWN_MAX = 1e15


@dataclass(frozen=True)
class Story:
    """The course of a run over time, stored for one run of each kind."""

    jobs: tuple[str, ...]
    interval_ns: AtLeastOne
    series: dict[str, list[Number]]
    """Without columns that were not measured."""
    overview: dict[str, list[Number]]
    """One in ``overview_stride`` commands of the whole run."""
    overview_stride: AtLeastOne
    detail: dict[str, list[Number]]
    """Every command of a part of the run."""


@dataclass(frozen=True)
class Measurement:
    """The measurement of one run."""

    disk: str
    workload: str
    scheduler: str
    repeat: int
    seed: Annotated[int, msgspec.Meta(ge=0)]
    duration_ns: Duration
    bytes_per_s: Rate
    """Bytes per second of the jobs; for a program other than fio, of the disk meanwhile."""
    ios_per_s: Rate
    """I/Os per second, likewise."""
    latencies: dict[Operation, Latency]
    """By operation: ``read``, ``sync`` (fsync and fdatasync), ``write``, ``trim``; ``operation``
    for a program other than fio."""
    disk_counters: dict[str, Count]
    story: Story | None
    """Only for the first repeat."""
    notes: tuple[str, ...] = ()
    """See :class:`blklab.domain.result.Result`."""
    jobs: tuple[JobFigures, ...] = ()
    """Only for several jobs."""
    service: Service | None = None
    """See :func:`blklab.domain.job_figures.service_of`."""
    figure: Figure | None = None
    """For a program other than fio: the figure that ranks it."""
    stages: dict[StagedOperation, Stages] = field(default_factory=dict)
    """By operation (`blklab.domain.stages.OPERATIONS`); empty if requests were not traced."""
    drawn: dict[str, Annotated[float, msgspec.Meta(ge=-_DRAWN_MAX, le=_DRAWN_MAX)]] = field(
        default_factory=dict
    )
    """The drawn values of its disk, by parameter; empty if the disk was not drawn."""
    costs: Costs | None = None
    """See :class:`blklab.domain.result.Result`."""
    over_time: OverTime | None = None
    """None for a short run, and where no series was recorded."""


def measure(experiment: Experiment, result: Result, *, repeat: int) -> Measurement:
    """The plain data of a run, the given `repeat` of its comparison."""
    bytes_per_s, ios_per_s = _rates(result)
    own = result.operations_ns
    return Measurement(
        experiment.disk.label,
        experiment.job.name,
        experiment.scheduler.label,
        repeat,
        experiment.seed,
        result.duration_ns,
        bytes_per_s,
        ios_per_s,
        latencies(result.jobs) | ({"operation": latency_of(own)} if len(own) else {}),
        asdict(result.disk),
        _story(result) if repeat == 0 else None,
        result.notes,
        figures_of_jobs(result),
        service_of(result),
        result.figure,
        stages(result),
        dict(experiment.disk.drawn),
        result.costs,
        over_time(result),
    )


def _rates(result: Result) -> tuple[float, float]:
    """Bytes and I/Os per second."""
    if result.figure is None:
        seconds = io_seconds(result.jobs)
        parts = [job.direction(name) for job in result.jobs for name in DIRECTIONS]
        moved, ios = sum(part.bytes for part in parts), sum(part.ios for part in parts)
    else:
        seconds, disk = result.duration_ns / 1e9, result.disk
        moved = (disk.read_sectors + disk.write_sectors) * _SECTOR_BYTES
        ios = disk.read_ios + disk.write_ios
    return (moved / seconds, ios / seconds) if seconds else (0.0, 0.0)


def from_json(document: Any) -> Measurement:
    """A measurement that `store` has written, also by a version with fewer fields.
    msgspec.ValidationError with the place if it is not valid."""
    return msgspec.convert(document, Measurement)


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
    names = {one.name for one in fields(kind)}
    columns: dict[str, Ints] = dict(table.columns())
    return {name: column[rows].tolist() for name, column in columns.items() if name in names}
