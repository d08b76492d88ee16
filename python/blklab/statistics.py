"""Is A better than B, by how much, and does it matter?

The unit of comparison is the run, never the I/O: I/Os of one run share its seed, its
cache and its head position, and are not independent.

Runs are paired: every scheduler meets the same seeds, so the ratio A/B of one seed is
free of what the seed did to both. The logarithms of these ratios are compared with zero.

*Few runs* (fewer than `BOOTSTRAP_FROM`): Student's t on the log ratios; the estimate is
the geometric mean ratio. A bootstrap cannot reach beyond the smallest and the largest
ratio seen, so with five runs it covers the true median with at most 1 - 2/2^5 = 93.75 %
whatever level is asked for, and the stricter levels that several comparisons need are out
of its reach; an exact sign-flip test of five pairs cannot go below p = 2/2^5 either.
Ratios of run totals are close to lognormal, as totals over thousands of I/Os are, and t is
robust to what is left (Georges, Buytaert and Eeckhout, "Statistically rigorous Java
performance evaluation", OOPSLA 2007; Kalibera and Jones, "Rigorous benchmarking in
reasonable time", ISMM 2013).

*Many runs*: the median ratio with a percentile bootstrap interval (Efron and Tibshirani,
"An Introduction to the Bootstrap", 1993, ch. 13), seeded, so that the same measurements
give the same interval. It assumes nothing about the distribution.

*Independent runs*, of other seeds or at another time: nothing pairs them, and two samples of
logarithms are compared: Welch's t, whose degrees of freedom are rounded down ("The
generalization of 'Student's' problem when several different population variances are
involved", Biometrika 34, 1947), or the bootstrap of both medians.

*Best of k*: choosing the best of several and then testing it against the rest finds
differences by luck, all the more between the best and the worst. Everything said about k
schedulers (who wins, who is behind) must hold together at 1 - a, whichever turned out
best, so each interval is taken at 1 - a/(k(k - 1)/2), Bonferroni over all pairs (Miller,
"Simultaneous Statistical Inference", 1981, ch. 2). Every disk and workload is a question
of its own and is not corrected for the others.

*Stopping early*: looking after each repeat whether it is decided, with an interval made for
one look, names a false winner sooner or later. Where a comparison stops by what it has seen, its
intervals hold at all numbers of runs at once: a confidence sequence. It is the t test with a
normal prior on the effect in standard deviations (`ANYTIME_SCALE`), whose Bayes factor under no
difference is a martingale for the scale-free data, so that it exceeds 1/a at any time with a
chance of at most a (Ville's inequality; Lai, "On confidence sequences", Annals of Statistics 4,
1976; Perez-Ortiz et al., "E-statistics, group invariance and anytime-valid testing", Annals of
Statistics 52, 2024). The price is an interval half as wide again or more.

*What matters*: a difference is named only if its interval excludes a tie and its estimate
is at least `MATTERS`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]

CONFIDENCE = 0.95
MATTERS = 1.02
"""A ratio below this is too small to change a scheduler for: an update of the drive's
firmware or another partition of the same disk moves more."""
BOOTSTRAP_FROM = 12
"""Pairs from which the bootstrap's coverage is as claimed also at the stricter levels of
several comparisons; `tests/test_statistics.py` measures it."""
ANYTIME_SCALE = 2.0
"""How many standard deviations of the log ratio a difference between schedulers is expected to
be, by order of magnitude. Any value is valid; a larger one decides large differences sooner, in
three repeats and more, and small ones later."""
_RESAMPLES = 4000


@dataclass(frozen=True)
class Interval:
    """An estimate and the ends of its confidence interval."""

    estimate: float
    low: float
    high: float

    @property
    def visible(self) -> float:
        """The smallest true ratio that would have shown: how wide the interval is, as a factor."""
        if self.low == 0.0:
            return math.inf
        return max(self.high / self.estimate, self.estimate / self.low)


@dataclass(frozen=True)
class Verdict:
    """Who is best among several, in one objective."""

    best: str
    """The best estimate; a winner only if nobody else `leads`."""
    leads: tuple[str, ...]
    """`best` and all that were not shown to be worse by an amount that matters."""
    behind: Mapping[str, Interval]
    """Every other one: how many times better `best` is, with its interval."""
    visible: float
    """The smallest ratio that would have shown, among those that lead."""

    @property
    def winner(self) -> str | None:
        """The only one that leads, or None."""
        return self.best if len(self.leads) == 1 else None

    @property
    def is_settled(self) -> bool:
        """Of each it is known whether it is behind, or as good as the best for all that matters."""
        ties = [self.behind[name] for name in self.leads if name != self.best]
        return all(gap.high < MATTERS and gap.low > 1.0 / MATTERS for gap in ties)


def ratio(
    better: Sequence[float],
    worse: Sequence[float],
    level: float = CONFIDENCE,
    *,
    anytime: bool = False,
) -> Interval:
    """How many times larger `better` is than `worse`, run by run.

    If `anytime`, the intervals after all numbers of runs hold the true ratio together. Both are
    positive and in the order of the same seeds. ValueError if they are not, or if there is none.
    """
    pairs = np.array([better, worse], dtype=np.float64)
    if pairs.shape[1] == 0 or not (np.isfinite(pairs) & (pairs > 0)).all():
        raise ValueError("ratios need positive figures, at least one pair")
    logs = np.log(pairs[0]) - np.log(pairs[1])
    if anytime:
        middle, low, high = _anytime(logs, level)
        return Interval(math.exp(middle), math.exp(low), _exp(high))
    if np.ptp(logs) == 0.0:
        # Not a matter of chance: every seed gave this ratio.
        same = math.exp(logs[0])
        return Interval(same, same, same) if len(logs) > 1 else Interval(same, 0.0, math.inf)
    middle, low, high = _bootstrap(logs, level) if len(logs) >= BOOTSTRAP_FROM else _t(logs, level)
    return Interval(math.exp(middle), math.exp(low), math.exp(high))


def independent_ratio(
    one: Sequence[float], other: Sequence[float], level: float = CONFIDENCE
) -> Interval:
    """How many times larger `one` is than `other`, of runs that have nothing in common.

    All are positive; the two may be of different length. ValueError if they are not, or if
    there is none.
    """
    samples = [np.array(values, dtype=np.float64) for values in (one, other)]
    if not all(len(values) and (np.isfinite(values) & (values > 0)).all() for values in samples):
        raise ValueError("ratios need positive figures, at least one on each side")
    ours, theirs = (np.log(values) for values in samples)
    fewest = min(len(ours), len(theirs))
    if fewest >= BOOTSTRAP_FROM:
        middle, low, high = _bootstrap_two(ours, theirs, level)
    elif fewest > 1:
        middle, low, high = _welch(ours, theirs, level)
    else:
        # One run has no spread to judge the other side by.
        return Interval(math.exp(ours.mean() - theirs.mean()), 0.0, math.inf)
    return Interval(math.exp(middle), math.exp(low), math.exp(high))


def decide(figures: Mapping[str, Sequence[float]], *, anytime: bool = False) -> Verdict:
    """The best of several by a figure of which more is better, each run's in order of seeds; see
    `ratio` for `anytime`."""
    names = list(figures)
    centre = {name: float(np.mean(np.log(figures[name]))) for name in names}
    best = max(names, key=lambda name: centre[name])
    level = 1.0 - (1.0 - CONFIDENCE) / max(math.comb(len(names), 2), 1)
    behind = {
        name: ratio(figures[best], figures[name], level, anytime=anytime)
        for name in names
        if name != best
    }
    ties = tuple(name for name, gap in behind.items() if gap.low <= 1.0 or gap.estimate < MATTERS)
    visible = max((behind[name].visible for name in ties), default=1.0)
    return Verdict(best, (best, *ties), behind, visible)


def median_interval(values: Sequence[float]) -> tuple[Interval, float]:
    """The median, the narrowest interval of two order statistics that covers the true median
    with at least 95 %, and what it does cover; below six runs the whole range, which covers
    less. Exact for every distribution (Conover, "Practical Nonparametric Statistics", 3.2).
    """
    ordered = sorted(values)
    count = len(ordered)
    best, covered = 0, _order_coverage(count, 0)
    for cut in range(1, (count + 1) // 2):
        coverage = _order_coverage(count, cut)
        if coverage < CONFIDENCE:
            break
        best, covered = cut, coverage
    middle = float(np.median(ordered))
    return Interval(middle, ordered[best], ordered[count - 1 - best]), covered


def spread(values: Sequence[float]) -> float:
    """Largest over smallest, less one: what a single run might have said instead."""
    return max(values) / min(values) - 1.0 if min(values) > 0 else math.inf


def student_quantile(probability: float, degrees: int) -> float:
    """The quantile of Student's t for whole degrees of freedom, by bisection."""
    low, high = -1e6, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        if _student_cdf(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _student_cdf(t: float, degrees: int) -> float:
    """Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.7.3 and 26.7.4."""
    angle = math.atan2(t, math.sqrt(degrees))
    cos2 = math.cos(angle) * math.cos(angle)
    odd = degrees % 2 == 1
    term, total = (math.cos(angle) if odd else 1.0), 0.0
    for power in range(1 if odd else 0, degrees - 1, 2):
        total += term
        term *= cos2 * (power + 1) / (power + 2)
    inside = 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
    return 0.5 + inside / 2


def _t(logs: Floats, level: float) -> tuple[float, float, float]:
    middle = float(logs.mean())
    error = float(logs.std(ddof=1)) / math.sqrt(len(logs))
    reach = student_quantile((1 + level) / 2, len(logs) - 1) * error
    return middle, middle - reach, middle + reach


def anytime_quantile(count: int, level: float) -> float:
    """What takes the place of Student's quantile in an interval of `count` runs, if those of all
    counts shall hold together; infinite where so few runs can show nothing."""
    if count < 2:  # noqa: PLR2004
        return math.inf
    degrees, wider = count - 1, 1.0 + count * ANYTIME_SCALE**2
    # The Bayes factor against no difference is, with t of `degrees`,
    # wider^(-1/2) ((1 + t^2/degrees) / (1 + t^2/(wider degrees)))^(count/2);
    # solved for the t at which it is 1/(1 - level).
    grown = (math.sqrt(wider) / (1.0 - level)) ** (2.0 / count)
    if grown >= wider:
        return math.inf
    return math.sqrt(degrees * (grown - 1.0) / (1.0 - grown / wider))


def visible(count: int, spread_between: float, candidates: int, *, anytime: bool = False) -> float:
    """The smallest ratio that `count` runs each of `candidates` schedulers will show, if the
    logarithms of one scheduler's runs have the standard deviation `spread_between`."""
    if count < 2:  # noqa: PLR2004
        return math.inf
    level = 1.0 - (1.0 - CONFIDENCE) / max(math.comb(candidates, 2), 1)
    wide = (
        anytime_quantile(count, level) if anytime else student_quantile((1 + level) / 2, count - 1)
    )
    return max(_exp(wide * spread_between * math.sqrt(2.0 / count)), MATTERS)


def _anytime(logs: Floats, level: float) -> tuple[float, float, float]:
    middle, wide = float(logs.mean()), anytime_quantile(len(logs), level)
    if math.isinf(wide):
        return middle, -math.inf, math.inf
    reach = wide * float(logs.std(ddof=1)) / math.sqrt(len(logs))
    return middle, middle - reach, middle + reach


def _exp(value: float) -> float:
    """Infinite where it is too large for a number."""
    return math.exp(value) if value < 700.0 else math.inf  # noqa: PLR2004


def _welch(one: Floats, other: Floats, level: float) -> tuple[float, float, float]:
    middle = float(one.mean() - other.mean())
    errors = [float(logs.var(ddof=1)) / len(logs) for logs in (one, other)]
    error = sum(errors)
    if error == 0.0:
        return middle, middle, middle
    weights = (e * e / (len(logs) - 1) for e, logs in zip(errors, (one, other), strict=True))
    degrees = max(1, math.floor(error * error / sum(weights)))
    reach = student_quantile((1 + level) / 2, degrees) * math.sqrt(error)
    return middle, middle - reach, middle + reach


def _bootstrap_two(one: Floats, other: Floats, level: float) -> tuple[float, float, float]:
    random = np.random.default_rng(len(one) + len(other))
    medians = [
        np.median(logs[random.integers(0, len(logs), (_RESAMPLES, len(logs)))], axis=1)
        for logs in (one, other)
    ]
    low, high = np.quantile(medians[0] - medians[1], [(1 - level) / 2, (1 + level) / 2])
    return float(np.median(one) - np.median(other)), float(low), float(high)


def _bootstrap(logs: Floats, level: float) -> tuple[float, float, float]:
    random = np.random.default_rng(len(logs))
    draws = random.integers(0, len(logs), (_RESAMPLES, len(logs)))
    medians = np.median(logs[draws], axis=1)
    low, high = np.quantile(medians, [(1 - level) / 2, (1 + level) / 2])
    return float(np.median(logs)), float(low), float(high)


def _order_coverage(count: int, cut: int) -> float:
    """Chance that the median lies between the order statistics `cut` from either end."""
    outside = sum(math.comb(count, below) for below in range(cut + 1))
    return 1.0 - 2.0 * outside / float(1 << count)
