"""A run as one row of a table, for spreadsheets and data frames."""

from __future__ import annotations

from typing import TypeAlias

from blklab.domain.latencies import OPERATIONS
from blklab.domain.measurement import PERCENTILES, Measurement
from blklab.domain.stages import OPERATIONS as REQUESTS
from blklab.domain.stages import PERCENTILES as STAGE_PERCENTILES
from blklab.domain.stages import Stages

Cell: TypeAlias = str | int | float | bool | list[int] | None
Row: TypeAlias = dict[str, Cell]


def names(run: Measurement) -> Row:
    """The columns that identify the run."""
    return {
        "disk": run.disk,
        "workload": run.workload,
        "scheduler": run.scheduler,
        "repeat": run.repeat,
        # 64 bits unsigned, which few table formats support.
        "seed": str(run.seed),
    }


def figures(run: Measurement, *, histograms: bool = False) -> Row:
    """The measured columns; times in ns; None if not known."""
    row: Row = {
        "duration_ns": run.duration_ns,
        "bytes_per_s": run.bytes_per_s,
        "ios_per_s": run.ios_per_s,
        "figure": run.figure.value if run.figure else None,
        "figure_unit": run.figure.unit if run.figure else None,
        "figure_higher_is_better": run.figure.higher_is_better if run.figure else None,
    }
    row |= _costs(run)
    for operation in OPERATIONS:
        latency = run.latencies.get(operation)
        row[f"{operation}_ios"] = latency.ios if latency else 0
        row[f"{operation}_mean_ns"] = latency.mean_ns if latency else None
        for place, percent in enumerate(PERCENTILES):
            name = f"{operation}_p{percent:g}_ns"
            row[name] = latency.percentiles_ns[place] if latency else None
        if histograms:
            row[f"{operation}_value_ns"] = list(latency.value_ns) if latency else []
            row[f"{operation}_count"] = list(latency.count) if latency else []
    for operation in REQUESTS:
        row |= _requests(operation, run.stages.get(operation))
    return row


COSTS = (
    *(f"{part}_{what}" for part in ("data", "journal", "metadata") for what in ("writes", "bytes")),
    *("disk_read_bytes", "flushes", "fua_writes", "commits", "asked_bytes", "left_bytes"),
    *("cpu_user_ns", "cpu_kernel_ns"),
)
"""The columns of a program's costs, whole numbers: of the run, not of an operation."""


def _costs(run: Measurement) -> Row:
    found = run.costs
    if found is None:
        return dict.fromkeys(COSTS)
    moved, after = found.during, found.after
    parts = (moved.data, moved.journal, moved.metadata)
    left = sum(one.bytes for one in (after.data, after.journal, after.metadata))
    counts = [number for one in parts for number in (one.count, one.bytes)]
    counts += [moved.read.bytes, moved.flushes, moved.fua]
    cpu = found.cpu
    times = [cpu.user_ns, cpu.kernel_ns] if cpu else [None, None]
    every = [*counts, found.commits, found.asked_bytes, left, *times]
    return dict(zip(COSTS, every, strict=True))


def _requests(operation: str, of: Stages | None) -> Row:
    """Queue time and service time."""
    row: Row = {f"{operation}_requests_kept": of.requests if of else 0}
    for stage in ("queue", "disk"):
        spread = getattr(of, stage) if of else None
        name = f"{operation}_in_{stage}"
        row[f"{name}_mean_ns"] = spread.mean_ns if spread else None
        row[f"{name}_stddev_ns"] = spread.stddev_ns if spread else None
        for place, percent in enumerate(STAGE_PERCENTILES):
            row[f"{name}_p{percent:g}_ns"] = spread.percentiles_ns[place] if spread else None
    return row
