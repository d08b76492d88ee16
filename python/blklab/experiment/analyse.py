"""From measurements to answers: figures per scheduler, and the best scheduler per objective."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from blklab.domain.comparison import OBJECTIVES
from blklab.domain.costs import OperationCosts, of_operations
from blklab.domain.costs import middle as middle_costs
from blklab.domain.histogram import Histogram
from blklab.domain.latencies import OPERATION_TEXT, PERCENTILES, RANKED_BY, Latency
from blklab.domain.measurement import Measurement
from blklab.domain.stages import OPERATIONS, Stages, middle
from blklab.experiment.hinges import Hinge, hinges
from blklab.experiment.samples import needed, resolution, too_few
from blklab.experiment.stability import Stability, stability
from blklab.experiment.statistics import (
    Answer,
    Interval,
    Unranked,
    Verdict,
    decide,
    geometric_mean,
    median_interval,
    spread,
)

# Latencies for which a process waits: of reads, else of fsync, else of writes.
_WAITED_FOR = ("read", "sync", "write", "trim", "operation")

NOT_MEASURED = Unranked("not measured: no run, or no I/O with a latency to compare", "not measured")

MB_S = "MB/s"
"""10^6 bytes per second."""

Runs: TypeAlias = Mapping[str, Sequence[Measurement]]
"""By scheduler, in the order of repeats."""


@dataclass(frozen=True)
class _Scores:
    """A figure of each scheduler's runs, where more is better."""

    of: Mapping[str, Sequence[float]]
    resolution: float
    """The ratio caused by one I/O more or less."""


@dataclass(frozen=True)
class Row:
    """One scheduler on one disk under one workload: medians over the repeats."""

    scheduler: str
    rate: Interval
    """Throughput, or a program's figure, in the cell's unit."""
    bytes_per_s: Interval
    """Reads and writes together."""
    ios_per_s: float
    """Reads and writes together."""
    mean_ns: float
    """The mean latency of all I/Os of the cell's operation."""
    percentiles_ns: tuple[float, ...]
    """At `PERCENTILES`."""
    samples: int
    """The smallest number of latencies in a run, by which `samples` of this package decides which
    percentiles are known."""
    p99: Interval
    """The 99th percentile of the latency in ns."""
    spread: float
    """The spread of `rate` over the repeats: largest over smallest, less one."""
    histogram: Histogram
    """The histogram of all repeats together."""
    stages: Mapping[str, Stages] = field(default_factory=dict)
    """By operation that occurs in every run; empty if requests were not traced."""
    followed: Mapping[str, int] = field(default_factory=dict)
    """By operation, the smallest number of sampled requests in a run."""
    costs: OperationCosts | None = None
    """What an operation of a program costs the disk, or a run whose operations are not reported;
    None on rigs that do not count it."""
    stability: Stability | None = None
    """Drift and pile-ups; None if a run is short, or has no series over time."""

    @property
    def ranked_ns(self) -> float:
        """The percentile `RANKED_BY`; NaN if a run has too few samples for it."""
        known = self.samples >= needed(RANKED_BY)
        return self.percentiles_ns[PERCENTILES.index(RANKED_BY)] if known else math.nan

    def has_few(self, *, requests: bool) -> bool:
        """Whether a displayed percentile, also of its `requests`, has too few samples."""
        counts = [self.samples] if self.histogram.total else []
        counts += self.followed.values() if requests else ()
        return any(count < needed(max(PERCENTILES)) for count in counts)


@dataclass(frozen=True)
class Cell:
    """One disk under one workload."""

    disk: str
    workload: str
    operation: str
    """The operation with the displayed and compared latency."""
    rows: tuple[Row, ...]
    """Best first, by the chosen objective."""
    verdicts: Mapping[str, Answer]
    """By objective."""
    interval_coverage: float
    """The coverage of the rows' intervals."""
    unit: str = MB_S
    """For the rows' `rate`."""
    higher_is_better: bool = True
    """For the rows' `rate`."""
    is_program: bool = False
    """Whether the rates are figures of a program other than fio."""
    hinges: tuple[Hinge, ...] = ()
    """The parameters of the disk that decide the verdict by the chosen objective."""
    disks: int = 0
    """The number of drawn disks; 0 if the disk was always the same."""


@dataclass(frozen=True)
class Analysis:
    """All answers."""

    objective: str
    cells: tuple[Cell, ...]
    recommendations: Mapping[str, Mapping[str, Answer]]
    """By disk and objective, over all workloads: the geometric mean of their ratios."""
    notes: tuple[str, ...] = ()
    """Differences from the requested settings, a line each, with the scheduler in front."""


def analyse(
    measurements: Sequence[Measurement], objective: str, *, anytime: bool = False
) -> Analysis:
    """Group by disk and workload, compare, decide; in the order of the measurements. `anytime` if
    the number of repeats depended on the measurements."""
    cells: list[Cell] = []
    comparisons = len({(m.disk, m.workload) for m in measurements})
    recommendations: dict[str, dict[str, Answer]] = {}
    for disk in dict.fromkeys(m.disk for m in measurements):
        per_load: dict[str, tuple[Runs, str]] = {}
        for workload in dict.fromkeys(m.workload for m in measurements if m.disk == disk):
            runs = _by_scheduler(measurements, disk, workload)
            operation = waited_for(runs)
            per_load[workload] = (runs, operation)
            cells.append(_cell(disk, workload, operation, runs, objective, anytime, comparisons))
        recommendations[disk] = {
            name: _decide(
                {load: _scores(*of, name) for load, of in per_load.items()},
                anytime,
                any(drawn_of(runs) for runs, _ in per_load.values()),
            )
            for name in OBJECTIVES
        }
    return Analysis(objective, tuple(cells), recommendations, _notes(measurements))


def _notes(measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """Each note once, with the schedulers of its runs."""
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


def drawn_of(runs: Runs) -> list[dict[str, float]]:
    """The drawn values of the disk, by repeat; empty if the disk was always the same."""
    drawn = [measurement.drawn for measurement in next(iter(runs.values()), ())]
    return drawn if any(drawn) else []


def waited_for(runs: Runs) -> str:
    """The first kind of operation that occurs in every run; empty if there is none."""
    everything = [measurement for several in runs.values() for measurement in several]
    for name in _WAITED_FOR:
        if all(name in measurement.latencies for measurement in everything):
            return name
    return ""


def _scores(runs: Runs, operation: str, objective: str) -> _Scores | Unranked:
    """The figures that rank schedulers, or the reason if there are none."""

    def score(measurement: Measurement) -> float:
        figure = measurement.figure
        rate = measurement.bytes_per_s if figure is None else figure.value
        if figure is not None and not figure.higher_is_better:
            rate = 1.0 / rate if rate > 0 else 0.0
        if objective == "throughput":
            return rate
        p99_ns = measurement.latencies[operation].percentiles_ns[PERCENTILES.index(RANKED_BY)]
        # A latency of zero is one below the clock's nanosecond.
        quick = 1.0 / max(p99_ns, 1)
        # Root by root: the product may be too small for a float.
        return quick if objective == "latency" else math.sqrt(rate) * math.sqrt(quick)

    # For a program without latencies, both is its figure.
    if not operation and objective == "both":
        objective = "throughput"
    if not operation and (objective == "latency" or not _are_programs(runs)):
        return NOT_MEASURED
    if objective != "throughput" and (why := _too_few(runs, operation)):
        return Unranked(why, "not known")
    scores = {name: [score(m) for m in several] for name, several in runs.items()}
    if not all(0 < s < math.inf for several in scores.values() for s in several):
        return NOT_MEASURED
    every = [measurement for several in runs.values() for measurement in several]
    return _Scores(scores, max(map(rate_resolution, every)) if objective == "throughput" else 1.0)


def _too_few(runs: Runs, operation: str) -> str:
    """The reason if the run with the fewest latencies has too few to rank by the percentile; else
    empty."""
    every = [m.latencies[operation].ios for several in runs.values() for m in several]
    return too_few(RANKED_BY, min(every), OPERATION_TEXT[operation])


def rate_resolution(run: Measurement) -> float:
    """The factor by which one I/O more or less changes its throughput; for a program's figure one
    operation, if the program reports and counts them."""
    figure, latencies = run.figure, run.latencies
    if figure is not None:
        operations = latencies.get("operation")
        return resolution(operations.ios) if operations and figure.higher_is_better else 1.0
    return resolution_of(latencies)


def resolution_of(latencies: Mapping[str, Latency]) -> float:
    """The same for I/Os with these latencies, by operation."""
    ios = sum(latencies[name].ios for name in ("read", "write", "trim") if name in latencies)
    return resolution(ios) if ios else 1.0


def rate_of(measurement: Measurement) -> float:
    """Throughput in `MB_S`, or a program's figure in its own unit."""
    figure = measurement.figure
    return measurement.bytes_per_s / 1e6 if figure is None else figure.value


def _are_programs(runs: Runs) -> bool:
    return all(one.figure is not None for several in runs.values() for one in several)


def _decide(per_load: Mapping[str, _Scores | Unranked], anytime: bool, drawn: bool) -> Answer:
    """One verdict over several workloads of equal weight."""
    known = [scores for scores in per_load.values() if isinstance(scores, _Scores)]
    for load, scores in per_load.items():
        if isinstance(scores, Unranked):
            where = f"under {load}, " if len(per_load) > 1 else ""
            return replace(scores, why=f"{where}{scores.why}")
    return decide(
        {
            name: [geometric_mean(runs) for runs in zip(*(s.of[name] for s in known), strict=True)]
            for name in known[0].of
        },
        anytime=anytime,
        resolution=geometric_mean([scores.resolution for scores in known]),
        drawn=drawn,
    )


def _cell(
    disk: str,
    workload: str,
    operation: str,
    runs: Runs,
    objective: str,
    anytime: bool,
    comparisons: int,
) -> Cell:
    rows = [_row(name, several, operation) for name, several in runs.items()]
    scores = _scores(runs, operation, objective)
    if isinstance(scores, _Scores):
        centre = {name: sum(map(math.log, several)) for name, several in scores.of.items()}
        rows.sort(key=lambda row: -centre[row.scheduler])
    _, coverage = median_interval([m.bytes_per_s for m in next(iter(runs.values()))])
    drawn = drawn_of(runs)
    verdicts = {
        name: _decide({workload: _scores(runs, operation, name)}, anytime, bool(drawn))
        for name in OBJECTIVES
    }
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
        _hinges(scores, verdicts[objective], drawn, comparisons),
        len(drawn),
    )


def _hinges(
    scores: _Scores | Unranked,
    verdict: Answer,
    drawn: Sequence[Mapping[str, float]],
    comparisons: int,
) -> tuple[Hinge, ...]:
    """The parameters that the ratio of the best scheduler to the second best depends on."""
    if not isinstance(scores, _Scores) or not isinstance(verdict, Verdict):
        return ()
    if not drawn or not verdict.behind:
        return ()
    other = min(verdict.behind, key=lambda name: verdict.behind[name].estimate)
    return hinges(
        (verdict.best, scores.of[verdict.best]), (other, scores.of[other]), drawn, comparisons
    )


def _row(scheduler: str, runs: Sequence[Measurement], operation: str) -> Row:
    latencies = [run.latencies[operation] for run in runs] if operation else []

    def inner(values: Sequence[float]) -> Interval:
        return median_interval(values)[0] if values else Interval(math.nan, math.nan, math.nan)

    columns = [[latency.percentiles_ns[i] for latency in latencies] for i in range(3)]
    rates = [rate_of(run) for run in runs]
    followed = [name for name in OPERATIONS if all(name in run.stages for run in runs)]
    return Row(
        scheduler,
        inner(rates),
        inner([run.bytes_per_s for run in runs]),
        inner([run.ios_per_s for run in runs]).estimate,
        inner([latency.mean_ns for latency in latencies]).estimate,
        tuple(inner(column).estimate for column in columns),
        min((latency.ios for latency in latencies), default=0),
        inner(columns[PERCENTILES.index(RANKED_BY)]),
        spread(rates),
        Histogram.merged(latency.histogram() for latency in latencies),
        {name: middle([run.stages[name] for run in runs]) for name in followed},
        {name: min(run.stages[name].requests for run in runs) for name in followed},
        middle_costs([of_operations(run.costs, _operations(run)) for run in runs if run.costs]),
        stability([run.over_time for run in runs]),
    )


def _operations(run: Measurement) -> int:
    found = run.latencies.get("operation")
    return found.ios if found else 0
