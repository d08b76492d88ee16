"""The service of each job of a run, as plain data: its figures, and its turns.

They show what the figures of the whole run hide: fairness, and the few slow processes among many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from blklab.domain.histogram import Ints
from blklab.domain.latencies import Latency, Operation, io_seconds, latencies
from blklab.domain.ranges import Number
from blklab.domain.result import DIRECTIONS, Job, Result, Trace

EARLY_NS = 1_000_000_000
"""The length of a job's start phase."""
TURNS_MAX = 4096
"""The maximum number of stored changes between processes."""
_FLUSH = 2


@dataclass(frozen=True)
class JobFigures:
    """One job with its clones."""

    name: str
    start_ns: int
    """The start of the first of them."""
    end_ns: int
    """The end of the last of them."""
    bytes_per_s: float
    ios_per_s: float
    latencies: dict[Operation, Latency]
    """By operation, as :class:`blklab.domain.measurement.Measurement`."""
    early_ns: float | None
    """Mean time from queue to completion of its commands in the first `EARLY_NS`, for the commands
    in the run's overview. None without commands."""
    later_ns: float | None
    """The same for all later commands."""


@dataclass(frozen=True)
class Service:
    """The turns of each process: one row for successive completions of one process."""

    names: tuple[str, ...]
    """The job of each process, by number."""
    start_ns: tuple[Number, ...]
    """The start of each process."""
    end_ns: tuple[Number, ...]
    """The completion of the row's last command."""
    process: tuple[Number, ...]
    bytes: tuple[Number, ...]


def figures_of_jobs(result: Result) -> tuple[JobFigures, ...]:
    """In the order of the job file; empty for a single job."""
    several = {name: list(of) for name, of in groupby(result.jobs, key=lambda job: job.name)}
    if len(several) < 2:  # noqa: PLR2004
        return ()
    number = {name: index for index, name in enumerate(several)}
    of_process = np.array([number[job.name] for job in result.jobs] + [-1], np.int64)
    job_of_command = of_process[np.maximum(result.overview.process, -1)]
    return tuple(
        _figures(name, jobs, result.overview, job_of_command == number[name])
        for name, jobs in several.items()
    )


def _figures(name: str, jobs: Sequence[Job], trace: Trace, mine: Any) -> JobFigures:
    seconds = io_seconds(jobs)
    parts = [job.direction(which) for job in jobs for which in DIRECTIONS]
    start_ns = min(job.start_ns for job in jobs)
    mine = mine & (trace.op != _FLUSH)
    took: Ints = (trace.completed_ns - trace.queued_ns)[mine]
    early = trace.completed_ns[mine] < start_ns + EARLY_NS
    return JobFigures(
        name,
        start_ns,
        max(job.end_ns for job in jobs),
        sum(part.bytes for part in parts) / seconds if seconds else 0.0,
        sum(part.ios for part in parts) / seconds if seconds else 0.0,
        latencies(jobs),
        _mean(took[early]),
        _mean(took[~early]),
    )


def _mean(values: Ints) -> float | None:
    return float(values.mean()) if len(values) else None


def service_of(result: Result) -> Service | None:
    """The turns of a run with several processes, if the overview has every command and there are at
    most `TURNS_MAX` turns; else None."""
    trace = result.overview
    if len(result.jobs) < 2 or trace.stride > 1:  # noqa: PLR2004
        return None
    order = np.argsort(trace.completed_ns, kind="stable")
    order = order[trace.op[order] != _FLUSH]
    process = trace.process[order]
    first = np.flatnonzero(np.diff(process, prepend=np.int64(-2)))
    if not 0 < len(first) <= TURNS_MAX:
        return None
    last = np.append(first[1:], len(order)) - 1
    return Service(
        tuple(job.name for job in result.jobs),
        tuple(job.start_ns for job in result.jobs),
        tuple(trace.completed_ns[order][last].tolist()),
        tuple(process[first].tolist()),
        tuple((np.add.reduceat(trace.sectors[order], first) * 512).tolist()),
    )
