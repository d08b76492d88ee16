"""Does a run stay as it is? The slope of a figure over time, with an interval that holds for
figures of neighbouring intervals that are alike.

Figures that follow each other are not independent: a long queue is long in the next interval too.
A test that takes them for independent finds trends that are chance: of series with a correlation of
0.8 between neighbours and no trend, plain Mann-Kendall calls half a trend (`tests/test_drift.py`).
Its usual corrections help in part: of the same series of 300 intervals, 22 % are a trend with the
variance of Hamed and Rao, 52 % with that of Yue and Wang (docs/internals/own-code.md).

Here the series is projected on its `WAVES` slowest cosines, half a wave to three over the run.
Whatever correlation the intervals have at short distances, these projections are nearly
independent and have nearly the same variance. Those of a straight line are known. So the slope is
that of a regression through the origin of `WAVES` points for each run, with Student's t (Mueller
and Watson, "Low-frequency econometrics", 2017; Lazarus, Lewis, Stock and Watson, "HAR inference:
recommendations for practice", Journal of Business and Economic Statistics 36, 2018). All runs of a
scheduler are one regression. In the same simulation it is wrong in 5 to 6 % of all series from 128
intervals on.

The first interval does not count: there, caches fill. Nor do intervals with a pile-up, which are
told apart: a line is drawn between their neighbours; unless they are more than `PILED_UP_MOST` of
all. The figures of one scheduler (throughput and
percentiles) hold together at 95 % (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from blklab.domain.over_time import Floats, OverTime
from blklab.experiment.samples import needed
from blklab.experiment.statistics import (
    CONFIDENCE,
    MATTERS,
    Interval,
    joint_level,
    student_quantile,
)

Bools: TypeAlias = npt.NDArray[np.bool_]

WAVES = 6
_HOUR_NS = 3.6e12
PILED_UP_MOST = 0.2
"""The largest share of intervals that do not count because of pile-ups."""
_GAPS_MOST = 0.05
"""The largest share of intervals with too few I/Os for a percentile; those are interpolated."""
_COARSE_PERCENT = 10.0
"""An interval of the change over the run that reaches further shows nothing."""


@dataclass(frozen=True)
class Figure:
    """A figure of each interval."""

    name: str
    """As in words: ``throughput``, ``p99``."""
    metric: str
    """The metric that it is of, `blklab.experiment.metrics`."""
    of: Callable[[OverTime], Floats]
    """NaN where an interval has too few I/Os; empty if it was not recorded."""


def _rate(course: OverTime) -> Floats:
    return np.array(course.bytes, np.float64)


def _percentile(percent: float, column: str) -> Callable[[OverTime], Floats]:
    def found(course: OverTime) -> Floats:
        values = np.array(getattr(course, column), np.float64)
        if len(values):
            values[np.array(course.ios) < needed(percent)] = math.nan
        return values

    return found


def _mean(course: OverTime) -> Floats:
    values = np.array(course.mean_ns, np.float64)
    values[values == 0] = math.nan
    return values


FIGURES = (
    Figure("throughput", "mb_s", _rate),
    Figure("mean", "mean_us", _mean),
    Figure("p50", "p50_us", _percentile(50.0, "p50_ns")),
    Figure("p99", "p99_us", _percentile(99.0, "p99_ns")),
    Figure("p99.9", "p999_us", _percentile(99.9, "p999_ns")),
)
METRICS = tuple(one.metric for one in FIGURES)
"""The metrics whose drift is measured."""


@dataclass(frozen=True)
class Drift:
    """The drift of one figure over the runs of a scheduler."""

    figure: str
    """The name of `FIGURES`."""
    per_hour: Interval
    """In percent of the figure's mean; ends of the confidence interval."""
    over_run: Interval
    """The same over the whole run."""
    uneven: float
    """The standard deviation of the intervals of a run, in percent of their mean: mean of the
    runs."""

    @property
    def is_shown(self) -> bool:
        """Whether the interval excludes that the figure stays the same, and the change over the
        run matters."""
        excludes = self.over_run.low > 0.0 or self.over_run.high < 0.0
        return excludes and abs(self.over_run.estimate) >= (MATTERS - 1.0) * 100

    @property
    def is_known(self) -> bool:
        """Whether the interval is narrow enough to say that there is no drift."""
        return max(-self.over_run.low, self.over_run.high) <= _COARSE_PERCENT


def drifts(runs: Sequence[OverTime]) -> tuple[Drift, ...]:
    """The drift of each figure that every run has, in the order of `FIGURES`."""
    if not runs:
        return ()
    series = {one.name: [_whole(one.of(run), _piled_up(run)) for run in runs] for one in FIGURES}
    known = {
        name: [column for column in of if column is not None]
        for name, of in series.items()
        if all(column is not None for column in of)
    }
    level = joint_level(len(known))
    return tuple(
        _drift(name, columns, runs[0].interval_ns, level) for name, columns in known.items()
    )


def _piled_up(run: OverTime) -> Bools:
    """The intervals with a pile-up; none if they are too many."""
    marked = np.zeros(run.intervals, bool)
    for one in run.pile_ups.found if run.pile_ups is not None else ():
        first = one.start_ns // run.interval_ns
        marked[first : -(-(one.start_ns + one.duration_ns) // run.interval_ns)] = True
    return marked if marked.mean() <= PILED_UP_MOST else np.zeros(run.intervals, bool)


def _whole(column: Floats, left_out: Bools) -> Floats | None:
    """Without the first interval, and with gaps closed; None with too many, or without figures."""
    if not len(column):
        return None
    column, left_out = column[1:], left_out[1:]
    gaps = np.isnan(column)
    if (gaps & ~left_out).mean() > _GAPS_MOST:
        return None
    gaps |= left_out
    rows = np.arange(len(column))
    whole = np.interp(rows, rows[~gaps], column[~gaps])
    return whole if whole.mean() > 0 else None


def _drift(name: str, columns: Sequence[Floats], width_ns: int, level: float) -> Drift:
    slope = slopes([column / column.mean() * 100 for column in columns], level)
    hours = len(columns[0]) * width_ns / _HOUR_NS
    uneven = [float(column.std(ddof=1) / column.mean()) * 100 for column in columns]
    per_hour = Interval(*(end / hours for end in (slope.estimate, slope.low, slope.high)))
    return Drift(name, per_hour, slope, sum(uneven) / len(uneven))


def slopes(columns: Sequence[Floats], level: float = CONFIDENCE) -> Interval:
    """The common change of several series over their whole length, with its interval at `level`;
    see the head of the file. Each has at least `WAVES` values."""
    points, lines = [], []
    for column in columns:
        at = (np.arange(len(column)) + 0.5) / len(column)
        waves = np.cos(np.pi * np.outer(np.arange(1, WAVES + 1), at)) * math.sqrt(2.0)
        points.append(waves @ column / len(column))
        lines.append(waves @ at / len(column))
    y, x = np.concatenate(points), np.concatenate(lines)
    slope = float(y @ x / (x @ x))
    degrees = len(y) - 1
    error = math.sqrt(float(((y - slope * x) ** 2).sum()) / degrees / float(x @ x))
    reach = student_quantile((1 + level) / 2, degrees) * error
    return Interval(slope, slope - reach, slope + reach)
