"""What settings are to reach: a figure, or one after bounds of others.

``throughput``, ``p99``, ``both``, ``p99(startup) < 300ms, throughput(copy)``: what comes first are
bounds, the last part is the goal. ``p99 + throughput`` has two goals: the answer is a front, of
which no member is worse than another in both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from blklab.domain.measurement import Measurement
from blklab.errors import InputError, nearest
from blklab.experiment.metrics import METRICS, Metric, Scope

FIGURES: Mapping[str, str] = {
    "throughput": "mb_s",
    "iops": "iops",
    "mean": "mean_us",
    "p50": "p50_us",
    "p99": "p99_us",
    "p99.9": "p999_us",
    "duration": "duration_s",
    "fairness": "jain",
    "lag": "lag_mib",
}
"""Names in an objective, and the metrics that they stand for."""
_AT_THE_END = "duration"
"""The figure that a run has when it has ended."""
BOTH = ("throughput", "p99")
"""The figures of ``both``, of which it is the geometric mean."""
_UNITS: Mapping[str, Mapping[str, float]] = {
    "us": {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6, "": 1.0},
    "s": {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "": 1.0},
    "MB/s": {"kB/s": 1e-3, "MB/s": 1.0, "GB/s": 1e3, "": 1.0},
    "IOPS": {"": 1.0, "k": 1e3},
    "MiB": {"MiB": 1.0, "": 1.0},
    "of 1": {"": 1.0},
}
_BOUND = re.compile(r"(.+?)\s*([<>])\s*([0-9.]+)\s*([A-Za-z/]*)")
_FIGURE = re.compile(r"([a-z0-9.]+)\s*(?:\(\s*(.+?)\s*\))?")
_WAITED_FOR = ("read", "sync", "write", "trim", "operation")
_EXPECTED = "a figure such as p99 or throughput(JOB), after bounds such as p99(JOB) < 20ms"


@dataclass(frozen=True)
class Figure:
    """A figure of a run, or of one of its jobs."""

    name: str
    metric: Metric
    job: str | None = None

    @property
    def text(self) -> str:
        """As the user writes it."""
        return self.name if self.job is None else f"{self.name}({self.job})"

    def of(self, run: Measurement) -> float | None:
        """Its value in the metric's unit; None if the run has none above zero."""
        jobs = {job.name: job.latencies for job in run.jobs}
        latencies = run.latencies if self.job is None else jobs.get(self.job)
        if latencies is None:
            return None
        operation = next((name for name in _WAITED_FOR if name in latencies), "")
        try:
            value = self.metric.of(run, Scope(operation, self.job))
        except KeyError:
            return None
        return value if value > 0 and math.isfinite(value) else None


@dataclass(frozen=True)
class Bound:
    """A figure that must be below a value, or above it."""

    figure: Figure
    below: bool
    limit: float
    """In the metric's unit."""
    text: str
    """As the user wrote it."""

    def excess(self, value: float) -> float:
        """How far a value is beyond the limit, as the logarithm of a ratio; 0 if it is not."""
        beyond = math.log(value / self.limit)
        return max(0.0, beyond if self.below else -beyond)


@dataclass(frozen=True)
class Goal:
    """Figures whose geometric mean is to be as good as possible."""

    text: str
    figures: tuple[Figure, ...]

    def value(self, run: Measurement) -> float | None:
        """Larger is better; None if the run lacks a figure."""
        total = 0.0
        for figure in self.figures:
            value = figure.of(run)
            if value is None:
                return None
            total += math.log(value) if figure.metric.more_is_better else -math.log(value)
        return math.exp(total / len(self.figures))


@dataclass(frozen=True)
class Objective:
    """All of it."""

    text: str
    bounds: tuple[Bound, ...]
    goals: tuple[Goal, ...]
    """One, or two and more of a front."""

    def values(self, run: Measurement) -> tuple[float | None, ...]:
        """The figures of the bounds, then the values of the goals; None for one that the run does
        not have."""
        bounds = [bound.figure.of(run) for bound in self.bounds]
        return (*bounds, *(goal.value(run) for goal in self.goals))

    @property
    def is_known_early(self) -> bool:
        """Whether the beginning of a run has all of its figures."""
        figures = [bound.figure for bound in self.bounds]
        figures += [figure for goal in self.goals for figure in goal.figures]
        return all(figure.name != _AT_THE_END for figure in figures)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of `values`."""
        return (*(bound.figure.text for bound in self.bounds), *(goal.text for goal in self.goals))


def parse(text: str) -> Objective:
    """An objective. InputError for anything else."""
    *bounds, last = [part.strip() for part in text.split(",")]
    goals = tuple(_goal(part.strip(), text) for part in last.split("+"))
    names = [goal.text for goal in goals]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"--objective: '{name}' is a goal twice")
    return Objective(text, tuple(map(_bound, bounds)), goals)


def _goal(text: str, whole: str) -> Goal:
    if _BOUND.fullmatch(text):
        raise InputError(f"--objective: '{whole}' ends with a bound; expected {_EXPECTED}")
    if text == "both":
        return Goal(text, tuple(map(_figure, BOTH)))
    figure = _figure(text)
    return Goal(figure.text, (figure,))


def _bound(text: str) -> Bound:
    found = _BOUND.fullmatch(text)
    if found is None:
        raise InputError(f"--objective: '{text}': expected a bound such as p99 < 20ms")
    figure, unit = _figure(found[1]), found[4]
    units = _UNITS.get(figure.metric.unit, {"": 1.0})
    if unit not in units:
        known = ", ".join(filter(None, units)) or "none"
        raise InputError(f"--objective: '{text}': no unit '{unit}' of {figure.name}; {known}")
    try:
        limit = float(found[3]) * units[unit]
    except ValueError:
        limit = 0.0
    if not 0 < limit < math.inf:
        raise InputError(f"--objective: '{text}': expected a number above 0, found '{found[3]}'")
    return Bound(figure, found[2] == "<", limit, text)


def _figure(text: str) -> Figure:
    found = _FIGURE.fullmatch(text)
    if found is None or not text:
        raise InputError(f"--objective: expected {_EXPECTED}, found '{text}'")
    name, job = found[1], found[2]
    if name not in FIGURES:
        wrong = nearest(name, [*FIGURES, "both"])
        raise InputError(f"--objective: no figure '{name}'{wrong}")
    metric = METRICS[FIGURES[name]]
    if job is not None and not metric.of_a_job:
        raise InputError(f"--objective: {name} is a figure of all jobs together, not of '{job}'")
    return Figure(name, metric, job)
