"""Settings with their scores, by as many seeds as it takes to tell the good from the lucky."""

from __future__ import annotations

import math
from collections.abc import Sequence

from blklab.domain.experiment import SchedulerSpec
from blklab.tuning.bench import Score
from blklab.tuning.fidelity import (
    AGREES,
    Fidelity,
    FurtherSeeds,
    Scores,
    agreement_of,
    mean,
    spread_out,
)
from blklab.tuning.goal import Goal

_ALIKE = 2
"""Seeds by which settings without a difference are known."""


class Scored:
    """Settings with their scores, in the order in which they were tried.

    A setting has some seeds: the search's own, or several if one tells little (`judge_seeds`). The
    best so far has all of them, so that it is not only the luckiest. Settings with the same figures
    by two seeds, to the last digit, have the score of the one of them that has all: what differs
    has no effect. By one seed that may be chance.
    """

    def __init__(self, own: Scores, further: Sequence[Scores], goals: Sequence[Goal]) -> None:
        self._by_seed = (own, *further)
        self._scores: dict[SchedulerSpec, list[Score | None]] = {}
        """By seed, as far as the settings had them."""
        self._shifts: dict[int, tuple[float, ...]] = {}
        """By the number of seeds: what all seeds would add to a score, for each goal. The reference
        has luck as well."""
        self._alike: dict[tuple[str, tuple[Score | None, ...]], SchedulerSpec] = {}
        """The settings that have all seeds, by the name and the first scores that others share."""
        self._each = 1
        """Seeds that every setting has."""
        self._judged = 0
        """Settings by which single seeds were judged."""
        self._agreement: float | None = None
        self.scores: dict[SchedulerSpec, Score | None] = {}
        """The best known of each; None for settings that cannot be used."""
        self.goals = goals
        self.fidelity: Fidelity | None = None

    @property
    def first(self) -> dict[SchedulerSpec, Score | None]:
        """The scores by the search's own seed: two of them differ because the settings do."""
        return {spec: scores[0] for spec, scores in self._scores.items()}

    @property
    def short(self) -> Fidelity | None:
        """Short runs, if they are used."""
        return self.fidelity if self.fidelity is not None and self.fidelity.used else None

    @property
    def cost(self) -> float:
        """All settings so far, a short run as its part of one."""
        return len(self._scores) + (self.fidelity.cost if self.fidelity is not None else 0.0)

    @property
    def further(self) -> FurtherSeeds | None:
        """What further seeds were worth; None if there are none."""
        if len(self._by_seed) == 1:
            return None
        full = sum(map(self.is_full, self._scores))
        return FurtherSeeds(len(self._by_seed), self._each, full, self._judged, self._agreement)

    def of(self, specs: Sequence[SchedulerSpec]) -> list[Score | None]:
        """The scores of settings; then the best of each scheduler has all seeds."""
        left = [spec for spec in dict.fromkeys(specs) if spec not in self._scores]
        self._extend(left, self._each)
        for name in {spec.name: None for spec in left}:
            self.best_of(name)
        return [self.scores[spec] for spec in specs]

    def with_all_seeds(self, specs: Sequence[SchedulerSpec]) -> list[Score | None]:
        """The scores of settings over all seeds, so that they can be compared closely."""
        self._extend(specs, len(self._by_seed))
        return [self.scores[spec] for spec in specs]

    def one(self, spec: SchedulerSpec) -> Score:
        """The score of a usable setting, over all seeds."""
        [score] = self.with_all_seeds([spec])
        assert score is not None, "it can be used"
        return score

    def usable(self, spec: SchedulerSpec) -> bool:
        """Whether the rig takes it."""
        [score] = self.of([spec])
        return score is not None

    def is_full(self, spec: SchedulerSpec) -> bool:
        """Whether it has all seeds, or cannot be used."""
        return self._is_whole(spec) or self.scores[spec] is None

    def _is_whole(self, spec: SchedulerSpec) -> bool:
        return len(self._scores[spec]) == len(self._by_seed)

    def key(self, spec: SchedulerSpec) -> tuple[float, float]:
        """Larger is better, of settings that were tried."""
        score = self.scores[spec]
        return (-math.inf, -math.inf) if score is None else score.key

    def best_of(self, scheduler: str) -> SchedulerSpec:
        """The best of that name."""
        return self.best([spec for spec in self.scores if spec.name == scheduler])

    def best(self, specs: Sequence[SchedulerSpec]) -> SchedulerSpec:
        """The best of these, of settings that were tried, over all seeds: of equal ones, the one
        with the fewest settings of those that had all."""
        while True:
            best = max(
                specs, key=lambda one: (*self.key(one), self.is_full(one), -len(one.settings))
            )
            if self.is_full(best):
                return best
            had = len(self._scores[best])
            self._extend([best], _ALIKE if had < _ALIKE else len(self._by_seed))

    def judge_seeds(self) -> dict[SchedulerSpec, Score | None]:
        """Give all seeds to some settings, from the best to the worst, and see how many of them it
        takes for the same order: from then on every setting has so many. Those settings."""
        judged = spread_out(self.first)
        self._extend(judged, len(self._by_seed))
        judged = [spec for spec in judged if self.scores[spec] is not None]
        every = len(self._by_seed)
        whole = [_mean(self._scores[spec]) for spec in judged]
        agreements = {}
        for seeds in range(1, every):
            few = [_mean(self._scores[spec][:seeds]) for spec in judged]
            keys = [(one.key, full.key) for one, full in zip(few, whole, strict=True)]
            agreements[seeds] = agreement_of(keys)
            self._shifts[seeds] = _shift(few, whole, len(self.goals))
        if judged:
            enough = [n for n, tau in agreements.items() if tau is not None and tau >= AGREES]
            self._each = min(enough, default=every)
        self._judged, self._agreement = len(judged), agreements.get(1)
        for spec in self._scores:
            self._tell(spec)
        return {spec: self.scores[spec] for spec in judged}

    def _extend(self, specs: Sequence[SchedulerSpec], count: int) -> None:
        """Give settings their seeds up to the `count`th."""
        for number, scores in enumerate(self._by_seed[:count]):
            left = [
                spec
                for spec in dict.fromkeys(specs)
                if len(found := self._scores.get(spec, [])) == number and None not in found
            ]
            if left:
                for spec, score in zip(left, scores(left), strict=True):
                    self._scores.setdefault(spec, []).append(score)
        for spec in specs:
            self._tell(spec)
        # What is like one of them.
        for spec in self._scores if count == len(self._by_seed) else ():
            if not self._is_whole(spec):
                self._tell(spec)

    def _tell(self, spec: SchedulerSpec) -> None:
        scores = self._scores[spec]
        if self._is_whole(spec):
            for count in range(_ALIKE, len(scores)):
                self._alike.setdefault((spec.name, tuple(scores[:count])), spec)
        elif (alike := self._alike.get((spec.name, tuple(scores)))) is not None:
            self.scores[spec] = self.scores[alike]
            return
        score = mean(scores)
        shift = self._shifts.get(len(scores))
        if score is not None and shift is not None:
            gains = tuple(one + other for one, other in zip(score.gains, shift, strict=True))
            score = Score(score.excess, gains)
        self.scores[spec] = score


def _mean(scores: Sequence[Score | None]) -> Score:
    score = mean(scores)
    assert score is not None, "it can be used"
    return score


def _shift(few: Sequence[Score], whole: Sequence[Score], goals: int) -> tuple[float, ...]:
    """What all seeds add to scores by a few, for each goal: the mean."""
    changes = [
        [
            change
            for one, full in zip(few, whole, strict=True)
            if math.isfinite(change := full.gains[goal] - one.gains[goal])
        ]
        for goal in range(goals)
    ]
    return tuple(sum(column) / len(column) if column else 0.0 for column in changes)
