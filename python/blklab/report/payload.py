"""The data of the pictures, thinned so that the page stays small.

Distributions keep one point per pixel or so of their tail; series are summed over equal
stretches, so that no I/O is lost; traces keep every n-th command of the whole run and
every command of one stretch. All numbers keep four digits, as a picture does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from blklab.base.units import duration_text, number_text
from blklab.domain.job_figures import Service
from blklab.domain.latencies import OPERATION_TEXT, RANKED_BY
from blklab.domain.measurement import Measurement, Story
from blklab.domain.over_time import OverTime
from blklab.domain.results_file import Results
from blklab.experiment.analyse import Analysis, Cell, Row
from blklab.experiment.samples import needed, too_few
from blklab.experiment.statistics import Verdict
from blklab.experiment.words import over_time_sentence, sentence
from blklab.report.parts import digits, unit_of
from blklab.report.sweeps import curves

Floats: TypeAlias = npt.NDArray[np.float64]

SERIES_POINTS = 150
TRACE_POINTS = 900
PILE_UPS_DRAWN = 300
_TIMES = (("h", 3.6e12), ("min", 6e10))
"""Units of the time of long runs, the longest first."""
_SECTOR_BYTES = 512
# From the median out to one in ten thousand, evenly on the axis of nines.
_NINES = np.concatenate([np.linspace(0.0, 0.5, 20)[1:], 1.0 - np.logspace(-0.33, -4.0, 80)])


def build(results: Results, analysis: Analysis) -> dict[str, Any]:
    """Everything that the page's script draws."""
    stories = {
        (run.disk, run.workload, run.scheduler): run
        for run in results.runs
        if run.story is not None
    }
    schedulers = [info["label"] for info in results.setup["schedulers"]]
    rotational = {
        disk["label"]: bool(disk["limits"].get("rotational")) for disk in results.setup["disks"]
    }
    return {
        "schedulers": schedulers,
        "first": _most_telling(analysis),
        "sweeps": curves(analysis),
        "cells": [
            _cell(cell, analysis.objective, stories, rotational[cell.disk])
            for cell in analysis.cells
        ],
    }


def thinning(results: Results) -> str:
    """The omissions of the pictures, in a sentence."""
    strides = [run.story.overview_stride for run in results.runs if run.story is not None]
    if not strides:
        return ""
    kept = "all" if max(strides) == 1 else f"at least one in {max(strides)} of all"
    return (
        f"Over time and on the disk: the first repeat. Series are summed to at most "
        f"{SERIES_POINTS} stretches; a picture of the disk shows at most {TRACE_POINTS} commands, "
        f"taken evenly of what results.json has, which is {kept}."
    )


def _cell(
    cell: Cell,
    objective: str,
    stories: Mapping[tuple[str, str, str], Measurement],
    rotational: bool,
) -> dict[str, Any]:
    p99s_ns = [row.p99.estimate for row in cell.rows]
    unit, unit_ns = unit_of(float(np.nanmedian(p99s_ns)) if cell.operation else 1e6)
    found = {
        row.scheduler: stories[cell.disk, cell.workload, row.scheduler]
        for row in cell.rows
        if (cell.disk, cell.workload, row.scheduler) in stories
    }
    jobs = next((run.story.jobs for run in found.values() if run.story), ())
    return {
        "disk": cell.disk,
        "workload": cell.workload,
        "operation": OPERATION_TEXT[cell.operation],
        "verdict": sentence(cell.verdicts[objective], objective),
        "unit": unit,
        "rate": f"{'figure' if cell.is_program else 'throughput'}, {cell.unit}: "
        f"{'more' if cell.higher_is_better else 'less'} is better",
        "rotational": rotational,
        "jobs": list(jobs),
        "unmeasured": _unmeasured(found.values()),
        "titles": _titles(cell),
        "steady": _steady(cell, found),
        "rows": [_row(row, unit_ns) for row in cell.rows],
        "cdf": {row.scheduler: _cdf(row, unit_ns) for row in cell.rows if row.histogram.total},
        "stories": {
            name: {
                **_story(run.story, run.duration_ns, unit_ns),
                "service": None if run.service is None else _service(run.service),
            }
            for name, run in found.items()
            if run.story is not None
        },
    }


def _unmeasured(runs: Collection[Measurement]) -> dict[str, str]:
    """The reason if there are no series of the processes or of the queue."""

    def missing(name: str) -> bool:
        return any(
            run.disk_counters["read_ios"] + run.disk_counters["write_ios"] > 0
            and not run.story.series.get(name)
            for run in runs
            if run.story is not None
        )

    reasons = {}
    if any(run.figure is not None for run in runs):
        reasons["processes"] = "Not measured: a program other than fio is not traced over time."
    elif missing("read_bytes"):
        reasons["processes"] = "Not measured: with fio itself, only direct I/O is traced over time."
    if missing("in_flight_milli"):
        reasons["queue"] = "Not measured: the buffer for events of the block layer overflowed."
    return reasons


def _most_telling(analysis: Analysis) -> int:
    """The cell to show first: the one in which the choice of scheduler matters most."""

    def gap(cell: Cell) -> float:
        verdict = cell.verdicts[analysis.objective]
        behind = verdict.behind.values() if isinstance(verdict, Verdict) and verdict.winner else ()
        return min((interval.estimate for interval in behind), default=1.0)

    gaps = [gap(cell) for cell in analysis.cells]
    return gaps.index(max(gaps))


def _titles(cell: Cell) -> dict[str, str]:
    """The title of a picture: its result in a sentence."""
    titles = {}
    by_rate = sorted(cell.rows, key=lambda row: row.rate.estimate)
    low, high = (number_text(row.rate.estimate) for row in (by_rate[0], by_rate[-1]))
    name = "Figure" if cell.is_program else "Throughput"
    titles["throughput"] = (
        f"{name}: {high} {cell.unit}, with any scheduler"
        if low == high
        else f"{name}: from {low} ({by_rate[0].scheduler}) to {high} {cell.unit} "
        f"({by_rate[-1].scheduler})"
    )
    name = OPERATION_TEXT[cell.operation]
    if not cell.operation:
        titles["latency"] = "No latency was measured"
    elif few := too_few(RANKED_BY, min(row.samples for row in cell.rows), name):
        titles["latency"] = few[0].upper() + few[1:]
    else:
        by_p99 = sorted(cell.rows, key=lambda row: row.p99.estimate)
        quick, slow = (duration_text(row.p99.estimate) for row in (by_p99[0], by_p99[-1]))
        titles["latency"] = (
            f"99 % of {name} end within {quick}, with any scheduler"
            if quick == slow
            else f"99 % of {name} end within {quick} ({by_p99[0].scheduler}) "
            f"to {slow} ({by_p99[-1].scheduler})"
        )
    return titles


def _steady(cell: Cell, runs: Mapping[str, Measurement]) -> dict[str, Any] | None:
    """The curves of the first repeat over its intervals, with its pile-ups; None of short runs."""
    courses = {name: run.over_time for name, run in runs.items() if run.over_time is not None}
    if not courses or len(courses) < len(runs):
        return None
    # A percentile that an interval has too few I/Os for says no more than its maximum.
    name, columns = "p99", {name: _p99_ns(course) for name, course in courses.items()}
    if not all(map(len, columns.values())):
        name, columns = "mean", {name: course.mean_ns for name, course in courses.items()}
    middle = [float(np.median(column)) for column in columns.values() if len(column)]
    if len(middle) < len(columns):
        return None
    unit, unit_ns = unit_of(max(middle))
    length_ns = max(course.interval_ns * course.intervals for course in courses.values())
    time, time_ns = next((pair for pair in _TIMES if length_ns >= 2 * pair[1]), ("s", 1e9))
    lines = [
        f"{row.scheduler}: {over_time_sentence(row.stability)}"
        for row in cell.rows
        if row.stability is not None
    ]
    return {
        "figure": name,
        "unit": unit,
        "time": time,
        "lines": lines,
        "curves": {
            scheduler: {
                "t": digits(np.arange(len(columns[scheduler])) * course.interval_ns / time_ns, 5),
                "y": digits(np.array(columns[scheduler], np.float64) / unit_ns),
                "pileUps": [
                    digits([one.start_ns / time_ns, (one.start_ns + one.duration_ns) / time_ns], 7)
                    for one in (course.pile_ups.found if course.pile_ups else ())[:PILE_UPS_DRAWN]
                ],
            }
            for scheduler, course in courses.items()
        },
    }


def _p99_ns(course: OverTime) -> Sequence[int]:
    """Empty if the median interval has too few I/Os for it."""
    enough = len(course.p99_ns) and np.median(course.ios) >= needed(RANKED_BY)
    return course.p99_ns if enough else ()


def _row(row: Row, unit_ns: float) -> dict[str, Any]:
    rate = row.rate
    return {
        "scheduler": row.scheduler,
        "rate": digits([rate.estimate, rate.low, rate.high]),
        "p99": digits([v / unit_ns for v in (row.p99.estimate, row.p99.low, row.p99.high)]),
    }


def _cdf(row: Row, unit_ns: float) -> dict[str, Any]:
    """Latency at evenly spaced nines; `tail` is the share that took longer."""
    latency = row.histogram.percentiles(_NINES * 100.0) / unit_ns
    return {"latency": digits(latency), "tail": digits(1.0 - _NINES)}


def _story(story: Story, duration_ns: int, unit_ns: float) -> dict[str, Any]:
    series = {name: np.array(column, np.float64) for name, column in story.series.items()}
    intervals = max(map(len, series.values()), default=0)
    group = max(1, -(-intervals // SERIES_POINTS))
    starts = np.arange(0, intervals, group)
    # The run may end inside the last interval.
    ends_ns = np.minimum((starts + group) * story.interval_ns, max(duration_ns, 1))
    widths_ns = np.maximum(ends_ns - starts * story.interval_ns, 1)

    def total(name: str) -> Floats:
        # A figure that was not measured is a gap, not 0.
        measured = len(series.get(name, ())) == intervals
        if not intervals or not measured:
            return np.full(len(starts), np.nan)
        return np.add.reduceat(series[name], starts)

    ios = total("read_ios") + total("write_ios")
    latency = total("read_clat_sum_ns") + total("write_clat_sum_ns")
    counts = np.minimum(group, intervals - starts)
    return {
        "t": digits(starts * story.interval_ns / 1e9),
        "rate": digits((total("read_bytes") + total("write_bytes")) / widths_ns * 1e3),
        "latency": digits(
            np.divide(latency, ios, where=ios > 0, out=np.full(len(ios), np.nan)) / unit_ns
        ),
        "waiting": digits(total("waiting_milli") / counts / 1000.0),
        "inFlight": digits(total("in_flight_milli") / counts / 1000.0),
        "overview": _trace(story.overview, 1e9, unit_ns, spread=True),
        "detail": _trace(story.detail, 1e6, unit_ns, spread=False),
    }


def _service(served: Service) -> list[dict[str, Any]]:
    """The bytes that each process had received at the ends of its turns, thinned."""
    process, end_ns = np.array(served.process), np.array(served.end_ns)
    count = np.array(served.bytes)
    lines = []
    for number, start_ns in enumerate(served.start_ns):
        mine = process == number
        t = np.append(start_ns, end_ns[mine]) / 1e9
        received = np.append(0, count[mine].cumsum()) / 1e6
        kept = np.unique(np.linspace(0, len(t) - 1, SERIES_POINTS).astype(int))
        lines.append({"t": digits(t[kept], 6), "mb": digits(received[kept])})
    return lines


def _trace(
    trace: Mapping[str, list[int]], time_ns: float, unit_ns: float, *, spread: bool
) -> dict[str, Any]:
    """Commands with an address; `spread` over the whole trace or the first ones of it. Times are
    in `time_ns`, from queue to completion in `unit_ns`."""
    columns = {name: np.array(column, np.int64) for name, column in trace.items()}
    rows = np.flatnonzero(columns["op"] != 2)  # noqa: PLR2004 (a flush has no address)
    if spread:
        rows = rows[:: max(1, -(-len(rows) // TRACE_POINTS))]
    else:
        rows = rows[:TRACE_POINTS]
    issued = columns["issued_ns"][rows]
    start_ns = 0 if spread or not len(issued) else int(issued[0])
    return {
        "t": digits((issued - start_ns) / time_ns),
        "took": digits((columns["completed_ns"] - columns["queued_ns"])[rows] / unit_ns),
        "gb": digits(columns["sector"][rows] * (_SECTOR_BYTES / 1e9), 7),
        "op": columns["op"][rows].tolist(),
        "process": columns["process"][rows].tolist(),
        "start": float(start_ns / 1e9),
    }
