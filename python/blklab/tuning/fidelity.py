"""Levels of a search: short runs tell which settings are worth a whole one, and further seeds tell
which of the best were only lucky.

A short run is the beginning of the whole run, `SHARE` of the time that the reference takes, and
costs that part of it. After the screening some settings of it, from the best to the worst, have a
short run as well. Only if these come in the same order, the search goes on with short runs: of all
settings that it then tries the best third have a whole run (successive halving: Jamieson and
Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization", AISTATS 2016).

Of hundreds of whole runs with one seed the best may be the luckiest: one percentile of a run of
some seconds hangs on few I/Os. So there are `SEEDS` further seeds, each on a disk drawn from
the ranges of the model's estimates. Some settings of the screening have all of them, which tells
how many it takes for the same order: every setting then has so many. Whatever is the best so far,
for each scheduler, has all, and their mean is its score (racing, as of Hutter, Hoos and
Leyton-Brown, "Sequential model-based optimization for general algorithm configuration", LION 2011).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from blklab.domain.experiment import SchedulerSpec
from blklab.experiment.statistics import kendall_tau
from blklab.tuning.bench import Score

SHARE = 1 / 8
"""The part of the reference's time that a short run has."""
AGREES = 0.7
"""Kendall's tau from which on short runs are used."""
PROMISING = 1 / 3
"""The part of the settings that have a whole run, the best by their short ones."""
_JUDGED = 16
"""Settings by which short runs and single seeds are judged, at most."""
_JUDGED_MIN = 8
_DIGITS = 9
"""Scores that are equal to so many digits come in no order."""

SEEDS = 4
"""Further seeds of settings that are the best so far."""

Scores: TypeAlias = Callable[[Sequence[SchedulerSpec]], list[Score | None]]


@dataclass(frozen=True)
class Levels:
    """Runs of a search beside whole ones with its seed."""

    short: Fidelity | None = None
    seeds: tuple[Scores, ...] = ()
    """Whole runs with further seeds."""


@dataclass(frozen=True)
class FurtherSeeds:
    """What further seeds were worth to a search."""

    seeds: int
    """All, the search's own among them: of settings that were the best so far."""
    each: int
    """Those that every setting had, after the screening."""
    settings: int
    """Settings that had all."""
    judged: int
    """Settings of the screening, from the best to the worst, that had all for this."""
    agreement: float | None
    """Kendall's tau of their order by one seed and by all; None if too few differ."""


@dataclass(frozen=True)
class ShortRuns:
    """What short runs were worth to a search."""

    share: float
    """The part of a whole run's time."""
    settings: int
    """Settings that had one."""
    spared: int
    """Those of them that had no whole run."""
    judged: int
    """Settings of the screening that had both, from the best to the worst."""
    agreement: float | None
    """Kendall's tau of their order by short and by whole runs; None if too few differ."""
    used: bool
    """Whether the search went on with short runs."""


class Fidelity:
    """Tells by short runs which settings are worth a whole one."""

    def __init__(self, short: Scores) -> None:
        self._short = short
        self.scores: dict[SchedulerSpec, Score | None] = {}
        """The scores of short runs, in the order in which these were made."""
        self.judged = 0
        self.agreement: float | None = None
        self.used = False

    @property
    def cost(self) -> float:
        """In whole runs."""
        return SHARE * len(self.scores)

    def judge(self, whole: Mapping[SchedulerSpec, Score | None]) -> None:
        """Compare the orders by whole and by short runs, of some settings that have whole ones."""
        judged = spread_out(whole)
        self._run(judged)
        self.judged = len(judged)
        keys = [_rounded(self.key(spec)) for spec in judged]
        self.agreement = agreement_of([((0.0, place), key) for place, key in enumerate(keys)])
        self.used = self.agreement is not None and self.agreement >= AGREES

    def promising(self, specs: Sequence[SchedulerSpec]) -> set[SchedulerSpec]:
        """Those that are among the best of all that had short runs."""
        self._run(specs)
        every = sorted(map(self.key, self.scores), reverse=True)
        bar = every[int(PROMISING * len(every))]
        return {spec for spec in specs if self.key(spec) >= bar and self.scores[spec] is not None}

    def best(self, specs: Sequence[SchedulerSpec], count: int) -> list[SchedulerSpec]:
        """The best `count` of these."""
        self._run(specs)
        return sorted(specs, key=self.key, reverse=True)[:count]

    def key(self, spec: SchedulerSpec) -> tuple[float, float]:
        """Larger is better, of settings that had a short run."""
        score = self.scores[spec]
        return (-math.inf, -math.inf) if score is None else score.key

    def told(self, whole: Mapping[SchedulerSpec, Score | None]) -> ShortRuns:
        """What they were worth; `whole`: all settings that had whole runs."""
        spared = sum(spec not in whole for spec in self.scores)
        return ShortRuns(SHARE, len(self.scores), spared, self.judged, self.agreement, self.used)

    def _run(self, specs: Iterable[SchedulerSpec]) -> None:
        left = [spec for spec in dict.fromkeys(specs) if spec not in self.scores]
        if left:
            self.scores.update(zip(left, self._short(left), strict=True))


def spread_out(scores: Mapping[SchedulerSpec, Score | None]) -> list[SchedulerSpec]:
    """Up to `_JUDGED` settings with different scores, from the worst to the best of all; none if
    too few differ."""
    distinct = {
        _rounded(score.key): spec for spec, score in scores.items() if score and _finite(score)
    }
    ranked = [distinct[key] for key in sorted(distinct)]
    if len(ranked) < _JUDGED_MIN:
        return []
    step = max(1.0, (len(ranked) - 1) / (_JUDGED - 1))
    return [ranked[round(step * place)] for place in range(int((len(ranked) - 1) / step) + 1)]


def mean(scores: Sequence[Score | None]) -> Score | None:
    """Over seeds; None if one cannot be used."""
    usable = [score for score in scores if score is not None]
    if len(usable) < len(scores):
        return None
    columns = zip(*(score.gains for score in usable), strict=True)
    return Score(
        sum(score.excess for score in usable) / len(usable),
        tuple(sum(column) / len(usable) for column in columns),
    )


def agreement_of(pairs: Sequence[tuple[tuple[float, float], tuple[float, float]]]) -> float | None:
    """Kendall's tau of the orders of two keys; None below two pairs."""
    one, other = ([pair[side] for pair in pairs] for side in (0, 1))
    places = [{key: place for place, key in enumerate(sorted(set(keys)))} for keys in (one, other)]
    return kendall_tau([places[0][key] for key in one], [places[1][key] for key in other])


def _rounded(key: tuple[float, float]) -> tuple[float, float]:
    return round(key[0], _DIGITS), round(key[1], _DIGITS)


def _finite(score: Score) -> bool:
    return all(map(math.isfinite, score.key))
