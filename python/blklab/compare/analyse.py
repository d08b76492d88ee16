"""From measurements to answers: figures per scheduler, and who is best in what."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from blklab.compare.measurement import PERCENTILES, Measurement
from blklab.histogram import Histogram
from blklab.stages import OPERATIONS, Stages, middle
from blklab.statistics import Interval, Verdict, decide, median_interval, spread

OBJECTIVES = ("throughput", "latency", "both")
OBJECTIVE_TEXT = {
    "throughput": "bytes per second, reads and writes together; of programs their own figure",
    "latency": "99th percentile of the latency of reads, else of fsync, else of writes",
    "both": "geometric mean of the two ratios: as much faster as it is quicker to answer",
}
OPERATION_TEXT = {"read": "reads", "sync": "fsyncs", "write": "writes", "trim": "trims",
                  "operation": "operations", "": "-"}  # fmt: skip
# Who waits: a reader for its data, a writer for its fsync, only then for the write call.
_WAITED_FOR = ("read", "sync", "write", "trim", "operation")

MB_S = "MB/s"
"""10^6 bytes per second."""

Runs: TypeAlias = Mapping[str, Sequence[Measurement]]
"""By scheduler, in the order of repeats."""


@dataclass(frozen=True)
class Row:
    """One scheduler on one disk under one load: medians over the repeats."""

    scheduler: str
    rate: Interval
    """Throughput, or a program's figure, in the cell's unit."""
    bytes_per_s: Interval
    ios_per_s: float
    mean_ns: float
    percentiles_ns: tuple[float, ...]
    """At `PERCENTILES`."""
    p99: Interval
    spread: float
    """Of `rate` over the repeats: largest over smallest, less one."""
    histogram: Histogram
    """Of all repeats together."""
    stages: Mapping[str, Stages] = field(default_factory=dict)
    """By operation that every run has seen; empty where requests were not followed."""


@dataclass(frozen=True)
class Cell:
    """One disk under one load."""

    disk: str
    workload: str
    operation: str
    """Whose latency is shown and compared."""
    rows: tuple[Row, ...]
    """Best first, by the objective asked for."""
    verdicts: Mapping[str, Verdict | None]
    """By objective; None where nothing was measured."""
    interval_coverage: float
    """What the intervals of the rows cover."""
    unit: str = MB_S
    """Of the rows' `rate`."""
    higher_is_better: bool = True
    """Of the rows' `rate`."""
    is_program: bool = False
    """Whether the rates are figures of a program that is not fio."""


@dataclass(frozen=True)
class Analysis:
    """All answers."""

    objective: str
    cells: tuple[Cell, ...]
    recommendations: Mapping[str, Mapping[str, Verdict | None]]
    """By disk and objective, over all loads: the geometric mean of their ratios."""
    notes: tuple[str, ...] = ()
    """What was not as it was asked for, a line each, with the scheduler in front."""


def analyse(
    measurements: Sequence[Measurement], objective: str, *, anytime: bool = False
) -> Analysis:
    """Group by disk and load, compare, decide; in the order of the measurements. `anytime` if the
    number of repeats depended on what they measured."""
    cells = []
    recommendations: dict[str, dict[str, Verdict | None]] = {}
    for disk in dict.fromkeys(m.disk for m in measurements):
        per_load: list[tuple[Runs, str]] = []
        for workload in dict.fromkeys(m.workload for m in measurements if m.disk == disk):
            runs = _by_scheduler(measurements, disk, workload)
            operation = waited_for(runs)
            per_load.append((runs, operation))
            cells.append(_cell(disk, workload, operation, runs, objective, anytime))
        recommendations[disk] = {
            name: _decide([_scores(runs, operation, name) for runs, operation in per_load], anytime)
            for name in OBJECTIVES
        }
    return Analysis(objective, tuple(cells), recommendations, _notes(measurements))


def _notes(measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """Each once, with the schedulers whose runs it is about."""
    about: dict[str, dict[str, None]] = {}
    for measured in measurements:
        for note in measured.notes:
            about.setdefault(note, {})[measured.scheduler] = None
    return tuple(f"{', '.join(schedulers)}: {note}" for note, schedulers in about.items())


def _by_scheduler(measurements: Sequence[Measurement], disk: str, workload: str) -> Runs:
    runs: dict[str, list[Measurement]] = {}
    for measurement in sorted(measurements, key=lambda m: m.repeat):
        if (measurement.disk, measurement.workload) == (disk, workload):
            runs.setdefault(measurement.scheduler, []).append(measurement)
    return runs


def waited_for(runs: Runs) -> str:
    """The first kind of operation that every run has seen; empty if there is none."""
    everything = [measurement for several in runs.values() for measurement in several]
    for name in _WAITED_FOR:
        if all(name in measurement.latencies for measurement in everything):
            return name
    return ""


def _scores(runs: Runs, operation: str, objective: str) -> dict[str, list[float]] | None:
    """Per scheduler and run, a figure of which more is better; None if there is none."""

    def score(measurement: Measurement) -> float:
        figure = measurement.figure
        rate = measurement.bytes_per_s if figure is None else figure.value
        if figure is not None and not figure.higher_is_better:
            rate = 1.0 / rate if rate > 0 else 0.0
        if objective == "throughput" or not operation:
            return rate
        p99_ns = measurement.latencies[operation].percentiles_ns[PERCENTILES.index(99.0)]
        # A latency of zero is one below the clock's nanosecond.
        quick = 1.0 / max(p99_ns, 1)
        return quick if objective == "latency" else math.sqrt(rate * quick)

    if not operation and (objective == "latency" or not _are_programs(runs)):
        return None
    scores = {name: [score(m) for m in several] for name, several in runs.items()}
    return scores if all(s > 0 for several in scores.values() for s in several) else None


def rate_of(measurement: Measurement) -> float:
    """Throughput in `MB_S`, or a program's figure in its own unit."""
    figure = measurement.figure
    return measurement.bytes_per_s / 1e6 if figure is None else figure.value


def _are_programs(runs: Runs) -> bool:
    return all(one.figure is not None for several in runs.values() for one in several)


def _decide(per_load: Sequence[dict[str, list[float]] | None], anytime: bool) -> Verdict | None:
    """One verdict over several loads, each of the same weight whatever its size."""
    known = [scores for scores in per_load if scores is not None]
    if not known or len(known) < len(per_load):
        return None
    return decide(
        {
            name: [
                math.exp(sum(map(math.log, runs)) / len(runs))
                for runs in zip(*(scores[name] for scores in known), strict=True)
            ]
            for name in known[0]
        },
        anytime=anytime,
    )


def _cell(
    disk: str, workload: str, operation: str, runs: Runs, objective: str, anytime: bool
) -> Cell:
    rows = [_row(name, several, operation) for name, several in runs.items()]
    scores = _scores(runs, operation, objective)
    if scores is not None:
        centre = {name: sum(map(math.log, several)) for name, several in scores.items()}
        rows.sort(key=lambda row: -centre[row.scheduler])
    _, coverage = median_interval([m.bytes_per_s for m in next(iter(runs.values()))])
    verdicts = {name: _decide([_scores(runs, operation, name)], anytime) for name in OBJECTIVES}
    figure = next(iter(runs.values()))[0].figure
    return Cell(
        disk,
        workload,
        operation,
        tuple(rows),
        verdicts,
        coverage,
        MB_S if figure is None else figure.unit,
        figure is None or figure.higher_is_better,
        figure is not None,
    )


def _row(scheduler: str, runs: Sequence[Measurement], operation: str) -> Row:
    latencies = [run.latencies[operation] for run in runs] if operation else []

    def inner(values: Sequence[float]) -> Interval:
        return median_interval(values)[0] if values else Interval(math.nan, math.nan, math.nan)

    columns = [[latency.percentiles_ns[i] for latency in latencies] for i in range(3)]
    rates = [rate_of(run) for run in runs]
    return Row(
        scheduler,
        inner(rates),
        inner([run.bytes_per_s for run in runs]),
        inner([run.ios_per_s for run in runs]).estimate,
        inner([latency.mean_ns for latency in latencies]).estimate,
        tuple(inner(column).estimate for column in columns),
        inner(columns[PERCENTILES.index(99.0)]),
        spread(rates),
        Histogram.merged(latency.histogram() for latency in latencies),
        {
            name: middle([run.stages[name] for run in runs])
            for name in OPERATIONS
            if all(name in run.stages for run in runs)
        },
    )
