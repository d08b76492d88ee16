"""Is A better than B, by how much, and does it matter?

The unit of comparison is the run, never the I/O: I/Os of one run share its seed, its
cache and its head position, and are not independent.

Runs are paired: every scheduler meets the same seeds, so the ratio A/B of one seed is
free of the seed's effect on both. The logarithms of these ratios are compared with zero.

*Few runs* (fewer than `BOOTSTRAP_FROM`): Student's t on the log ratios; the estimate is
the geometric mean ratio. A bootstrap cannot reach beyond the smallest and the largest
ratio seen, so with five runs it covers the true median with at most 1 - 2/2^5 = 93.75 %
whatever the requested level, and it cannot reach the stricter levels that several comparisons need;
an exact sign-flip test of five pairs cannot go below p = 2/2^5 either. Ratios of run totals are
close to lognormal, as totals over thousands of I/Os are, and t is robust to the remaining deviation
(Georges, Buytaert and Eeckhout, "Statistically rigorous Java performance evaluation", OOPSLA 2007;
Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013).

*Many runs*: the median ratio with a percentile bootstrap interval (Efron and Tibshirani,
"An Introduction to the Bootstrap", 1993, ch. 13), seeded, so that the same measurements
give the same interval. It assumes nothing about the distribution.

*Independent runs*, of other seeds or at another time: nothing pairs them, and two samples of
logarithms are compared: by Welch's t with degrees of freedom rounded down ("The generalization of
'Student's' problem when several different population variances are involved", Biometrika 34, 1947),
or the bootstrap of both medians.

*Best of k*: choosing the best of several and then testing it against the rest finds
differences by luck, all the more between the best and the worst. All statements about k schedulers
(the winner, those behind) must hold together at 1 - a, whichever scheduler is best, so each
interval is taken at 1 - a/(k(k - 1)/2), Bonferroni over all pairs (Miller, "Simultaneous
Statistical Inference", 1981, ch. 2). Every disk and workload is a separate question, without
correction for the others.

*Stopping early*: a check after each repeat, with an interval made for a single check, names a false
winner sooner or later. If a comparison stops depending on its measurements, its intervals hold at
all numbers of runs at once: a confidence sequence. It is the t test with a normal prior on the
effect in standard deviations (`ANYTIME_SCALE`). Without a difference, its Bayes factor is a
martingale for the scale-free data, so that it exceeds 1/a at any time with a probability of at most
a (Ville's inequality; Lai, "On confidence sequences", Annals of Statistics 4, 1976; Perez-Ortiz et
al., "E-statistics, group invariance and anytime-valid testing", Annals of Statistics 52, 2024). The
price is an interval half as wide again or more.

*Relevance*: a difference is named only if its interval excludes a tie, and its estimate is at least
`MATTERS` and larger than the resolution of the figures (module `samples`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]

CONFIDENCE = 0.95
MATTERS = 1.02
"""A ratio below this is too small to change a scheduler for: an update of the drive's
firmware or another partition of the same disk moves more."""
BOOTSTRAP_FROM = 12
"""The number of pairs from which the bootstrap has its nominal coverage, also at the stricter
levels of several comparisons; `tests/test_statistics.py` measures it."""
ANYTIME_SCALE = 2.0
"""How many standard deviations of the log ratio a difference between schedulers is expected to
be, by order of magnitude. Any value is valid; a larger one decides large differences sooner, in
three repeats and more, and small ones later."""
_RESAMPLES = 4000
_DISKS_AHEAD = 0.05
"""The largest share of drawn disks on which a winner may be behind."""
_DISKS_KNOWN = 5
"""The least number of drawn disks on which another scheduler is ahead that settles the answer: with
40 disks and a true share of 5 %, so many occur once in twenty comparisons."""
_ROUNDING = 1e-9
_DRAWS_MAX = 1 << 20
"""The number of a bootstrap's samples that are in memory at a time."""
_T_MAX = 1e15
"""Beyond it, a float cannot distinguish the probability from 1."""


@dataclass(frozen=True)
class Interval:
    """An estimate and the ends of its confidence interval: for ratios `low` may be 0 and `high`
    infinite, if there is no bound on that side; the estimate is neither."""

    estimate: float
    low: float
    high: float

    @property
    def visible(self) -> float:
        """The minimum detectable ratio: the width of the interval, as a factor."""
        if self.low == 0.0:
            return math.inf
        return max(self.high / self.estimate, self.estimate / self.low)


@dataclass(frozen=True)
class Verdict:
    """The best of several schedulers, in one objective."""

    best: str
    """The best estimate; a winner only if no other scheduler `leads`."""
    leads: tuple[str, ...]
    """`best` and all schedulers that are not demonstrably worse by a relevant amount."""
    behind: Mapping[str, Interval]
    """For every other scheduler: how many times better `best` is, with its interval."""
    visible: float
    """The minimum detectable ratio among those that lead."""
    resolution: float = 1.0
    """The ratio by which figures differ if one I/O more or less is counted."""
    disks: int = 0
    """The number of drawn disks; 0 if the disk was always the same."""
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    """For each other scheduler, the number of drawn disks on which it is ahead of `best` by an
    amount that matters."""

    def depends_on_disk(self, name: str) -> bool:
        """Whether the scheduler is behind `best` on average, but ahead on too many of the drawn
        disks."""
        ahead = self.elsewhere.get(name, 0) > _DISKS_AHEAD * self.disks
        return ahead and is_shown(self.behind[name], self.resolution)

    @property
    def winner(self) -> str | None:
        """The only one that leads, or None."""
        return self.best if len(self.leads) == 1 else None

    @property
    def is_settled(self) -> bool:
        """Whether the answer for each scheduler is known: behind, or as good as the best within the
        relevant difference."""
        others = [name for name in self.leads if name != self.best]
        known = [n for n in others if self.depends_on_disk(n) and self.elsewhere[n] >= _DISKS_KNOWN]
        ties = [self.behind[name] for name in others if name not in known]
        # More repeats do not improve the resolution of the figures.
        limit = max(MATTERS, self.resolution * (1.0 + _ROUNDING))
        return all(gap.high < limit and gap.low > 1.0 / limit for gap in ties)


@dataclass(frozen=True)
class Unranked:
    """No verdict is possible, whatever the number of repeats."""

    why: str
    """The reason as a sentence."""
    short: str
    """The reason in a table."""
    winner: None = None
    """As of a `Verdict`."""
    is_settled: bool = True
    """Always true: more repeats would not change it."""


Answer: TypeAlias = Verdict | Unranked


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
    if len(better) != len(worse):
        raise ValueError(f"ratios need pairs, found {len(better)} and {len(worse)} figures")
    logs = _logs(better) - _logs(worse)
    if anytime:
        return _interval(*_anytime(logs, level))
    if np.ptp(logs) == 0.0:
        # No chance involved: every seed gave this ratio. A single run cannot show this.
        same = float(logs[0])
        ends = (same, same) if len(logs) > 1 else (-math.inf, math.inf)
        return _interval(same, *ends)
    return _interval(*(_bootstrap if len(logs) >= BOOTSTRAP_FROM else _t)(logs, level))


def independent_ratio(
    one: Sequence[float], other: Sequence[float], level: float = CONFIDENCE
) -> Interval:
    """How many times larger `one` is than `other`, of runs that have nothing in common.

    All are positive; the two may be of different length. ValueError if they are not, or if
    there is none.
    """
    ours, theirs = _logs(one), _logs(other)
    fewest = min(len(ours), len(theirs))
    if fewest == 1:
        # One run has no spread to judge the other side by.
        return _interval(float(ours.mean() - theirs.mean()), -math.inf, math.inf)
    return _interval(*(_bootstrap_two if fewest >= BOOTSTRAP_FROM else _welch)(ours, theirs, level))


def decide(
    figures: Mapping[str, Sequence[float]],
    *,
    anytime: bool = False,
    resolution: float = 1.0,
    drawn: bool = False,
) -> Verdict:
    """The best of several by a figure where more is better, given for each run in order of seeds;
    see `ratio` for `anytime`. A difference up to `resolution` counts as none.

    `drawn` if each seed has its own disk: then the interval of the ratio is that of the mean over
    disks, and the best on average leads alone only if no other scheduler is ahead, by a relevant
    amount, on more than 5 % of the disks.
    """
    names = list(figures)
    centre = {name: float(_logs(figures[name]).mean()) for name in names}
    best = max(names, key=lambda name: centre[name])
    level = joint_level(math.comb(len(names), 2))
    behind = {
        name: ratio(figures[best], figures[name], level, anytime=anytime)
        for name in names
        if name != best
    }
    disks = len(figures[best]) if drawn else 0
    enough = max(MATTERS, resolution)
    elsewhere = {
        name: sum(b * enough <= w for b, w in zip(figures[best], figures[name], strict=True))
        for name in (behind if drawn else ())
    }
    ties = tuple(
        name
        for name, gap in behind.items()
        if not is_shown(gap, resolution) or elsewhere.get(name, 0) > _DISKS_AHEAD * disks
    )
    visible = max((max(behind[name].visible, resolution) for name in ties), default=1.0)
    return Verdict(best, (best, *ties), behind, visible, resolution, disks, elsewhere)


def turned(gap: Interval) -> Interval:
    """How many times larger the other one is."""
    return Interval(1.0 / gap.estimate, 1.0 / gap.high, 1.0 / gap.low if gap.low else math.inf)


def joint_level(count: int) -> float:
    """The level of each of so many intervals that hold together at `CONFIDENCE` (Bonferroni)."""
    return 1.0 - (1.0 - CONFIDENCE) / max(1, count)


def is_shown(gap: Interval, resolution: float = 1.0) -> bool:
    """Whether the one is better by more than chance, by a relevant amount and by more than the
    resolution of the figures."""
    # Through logarithms, a ratio of whole numbers may become a little larger.
    counted = gap.estimate > resolution * (1.0 + _ROUNDING)
    return gap.low > 1.0 and gap.estimate >= MATTERS and counted


def median_interval(values: Sequence[float]) -> tuple[Interval, float]:
    """The median, the narrowest interval of two order statistics that covers the true median
    with at least 95 %, and its actual coverage; below six runs the whole range, which covers less.
    Exact for every distribution (Conover, "Practical Nonparametric Statistics", 3.2).
    """
    ordered = sorted(values)
    count = len(ordered)
    best, covered = 0, 0.0
    # Of all 2^count ways in which values may lie below and above the median, those with `cut` at
    # most on a given side: as whole numbers, since of a thousand values no float holds them.
    ways, outside = 1, 0
    for cut in range((count + 1) // 2):
        outside += ways
        coverage = 1.0 - 2 * outside / (1 << count)
        if cut and coverage < CONFIDENCE:
            break
        best, covered = cut, coverage
        ways = ways * (count - cut) // (cut + 1)
    middle = (ordered[(count - 1) // 2], ordered[count // 2])
    # Halved before they are added, so that the sum is no larger than a float can be.
    estimate = middle[0] if middle[0] == middle[1] else middle[0] / 2 + middle[1] / 2
    return Interval(float(estimate), ordered[best], ordered[count - 1 - best]), covered


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of positive values, at least one."""
    return math.exp(sum(map(math.log, values)) / len(values))


def kendall_tau(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Whether two series of figures rank the same things alike: 1 in the same order, -1 in the
    reverse one; pairs that are equal in one count for neither (tau-a). None below two figures."""
    pairs = [(a - b, c - d) for (a, c), (b, d) in combinations(zip(one, other, strict=True), 2)]
    if not pairs:
        return None
    agreed = sum(
        (x > 0) - (x < 0) if y > 0 else (x < 0) - (x > 0) if y < 0 else 0 for x, y in pairs
    )
    return agreed / len(pairs)


def spread(values: Sequence[float]) -> float:
    """Largest over smallest, less one: the possible error of a single run."""
    return max(values) / min(values) - 1.0 if min(values) > 0 else math.inf


def student_quantile(probability: float, degrees: int) -> float:
    """The quantile of Student's t for whole degrees of freedom, by bisection."""
    reach = 1.0
    # For one degree of freedom and a thousand schedulers it is in the millions.
    while _student_cdf(reach, degrees) < max(probability, 1 - probability) and reach < _T_MAX:
        reach *= 2.0
    low, high = -reach, reach
    for _ in range(100):
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
    """Replaces Student's quantile in an interval of `count` runs, if the intervals of all counts
    must hold together; infinite if there are too few runs."""
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
    """The minimum detectable ratio of `count` runs each of `candidates` schedulers, if the
    logarithms of one scheduler's runs have the standard deviation `spread_between`."""
    if count < 2:  # noqa: PLR2004
        return math.inf
    level = joint_level(math.comb(candidates, 2))
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


def _logs(values: Sequence[float]) -> Floats:
    """ValueError if one has none."""
    figures = np.array(values, dtype=np.float64)
    if not len(figures) or not (np.isfinite(figures) & (figures > 0)).all():
        raise ValueError("ratios need positive figures, at least one on each side")
    return np.log(figures)


def _interval(middle: float, low: float, high: float) -> Interval:
    """The interval of a ratio, from logarithms. An end outside the range of floats is 0 or
    infinite, an estimate the least or largest float; rounding puts no end on the wrong side of
    it."""
    estimate = min(max(_exp(middle), sys.float_info.min), sys.float_info.max)
    return Interval(estimate, min(_exp(low), estimate), max(_exp(high), estimate))


def _exp(value: float) -> float:
    """Infinite where it is too large for a number."""
    return math.exp(value) if value < _LOG_MAX else math.inf


_LOG_MAX = math.log(sys.float_info.max)


def _welch(one: Floats, other: Floats, level: float) -> tuple[float, float, float]:
    middle = float(one.mean() - other.mean())
    errors = [float(logs.var(ddof=1)) / len(logs) for logs in (one, other)]
    error = sum(errors)
    if error == 0.0:
        return middle, middle, middle
    # As shares of the whole, so that the squares do not underflow.
    weights = (
        (e / error) ** 2 / (len(logs) - 1) for e, logs in zip(errors, (one, other), strict=True)
    )
    degrees = max(1, math.floor(1.0 / sum(weights)))
    reach = student_quantile((1 + level) / 2, degrees) * math.sqrt(error)
    return middle, middle - reach, middle + reach


def _bootstrap_two(one: Floats, other: Floats, level: float) -> tuple[float, float, float]:
    random = np.random.default_rng(len(one) + len(other))
    medians = [_medians(logs, random) for logs in (one, other)]
    low, high = np.quantile(medians[0] - medians[1], [(1 - level) / 2, (1 + level) / 2])
    return float(np.median(one) - np.median(other)), float(low), float(high)


def _bootstrap(logs: Floats, level: float) -> tuple[float, float, float]:
    medians = _medians(logs, np.random.default_rng(len(logs)))
    low, high = np.quantile(medians, [(1 - level) / 2, (1 + level) / 2])
    return float(np.median(logs)), float(low), float(high)


def _medians(logs: Floats, random: np.random.Generator) -> Floats:
    """The medians of `_RESAMPLES` samples with replacement."""
    count = len(logs)
    at_once = max(1, _DRAWS_MAX // count)
    return np.concatenate(
        [
            np.median(
                logs[random.integers(0, count, (min(at_once, _RESAMPLES - begun), count))], axis=1
            )
            for begun in range(0, _RESAMPLES, at_once)
        ]
    )
