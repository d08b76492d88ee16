"""The search, in five steps, each of some dozen to some hundred runs.

1. *Defaults*: each scheduler as it is.
2. *Screening*: which tunables have an effect on this load? From a scheduler's default and from
   some random settings, each tunable goes to both ends of its range, one at a time (Morris,
   "Factorial sampling plans for preliminary computational experiments", Technometrics 33, 1991). It
   says where to look first; a tunable without effect there may have one elsewhere, so all are
   searched.
3. *Estimating*: a tree-structured Parzen estimator (Bergstra et al., "Algorithms for
   hyper-parameter optimization", NIPS 2011; Optuna's), over schedulers and their tunables, bounds
   first. What can be enumerated with as many trials is enumerated instead.
4. *Descending*: from the best settings of the best schedulers, one tunable at a time goes to all
   its values and stays at the best, until nothing gets better. While trials are left, this and the
   step before take turns.
5. *Simplifying*: of the best settings each change that brings less than `WORTH` goes back to its
   default. What remains tells what each setting is worth.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import optuna
from optuna.distributions import CategoricalDistribution, IntDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.trial import TrialState

from blklab.domain.experiment import SchedulerSpec
from blklab.domain.space import Space
from blklab.tuning.bench import Bench, Score

WORTH = math.log(1.005)
"""A change that brings less is not kept: 0.5 %."""
_BASES = 2
"""Random settings from which tunables are screened, beside the default."""
_BATCH = 8
"""Trials at a time: fixed, so that the number of parallel runs does not change the answer."""
_WORST = -1e6
_BEYOND = -100.0
_BEYOND_STEP = 100.0
_FIRST = 20
"""Trials before the estimator, at random."""
_ESTIMATED = 0.5
"""The part of the trials that are the estimator's; the others descend."""
_DESCENTS = 2
"""Schedulers from whose best settings a descent begins."""
_TURNS = 6
"""Times that estimating and descending take turns, at most: later ones only see what was tried."""
_NO_GAIN = 1e-12


@dataclass(frozen=True)
class Effect:
    """A tunable's effect between settings that were tried."""

    scheduler: str
    tunable: str
    most: float
    """The largest change of the score that a change of it alone made, as a ratio of at least 1."""


@dataclass(frozen=True)
class Found:
    """What a search has found."""

    best: tuple[tuple[SchedulerSpec, Score], ...]
    """The best settings of each scheduler, simplified, the best first."""
    defaults: tuple[tuple[SchedulerSpec, Score], ...]
    """Each scheduler as it is."""
    effects: tuple[Effect, ...]
    """The effects of all tunables, the largest first."""
    worth: Mapping[str, float]
    """For each setting of the best: how many times worse the score is without it."""
    front: tuple[tuple[SchedulerSpec, Score], ...]
    """With several goals: the settings of which none is worse than another in all."""
    trials: int
    """Different settings that were tried."""
    enumerated: bool
    """Whether these were all there are."""


def search(bench: Bench, spaces: Sequence[Space], trials: int, seed: int) -> Found:
    """Try up to `trials` settings after the screening, and some to simplify the best."""
    scored = _Scored(bench)
    bases = [space.base for space in spaces]
    scored.of(bases)
    screened = _screen(scored, spaces, random.Random(seed))
    enumerated = sum(space.points for space in spaces) <= trials
    if enumerated:
        scored.of([spec for space in spaces for spec in space.all()])
    else:
        _alternate(scored, spaces, screened, trials, seed)
    effects = _effects(scored, spaces, screened)
    best = [_simplified(scored, space, scored.best_of(space.name)) for space in spaces]
    ranked = sorted(
        ((spec, scored.one(spec)) for spec in best if scored.usable(spec)),
        key=lambda pair: pair[1].key,
        reverse=True,
    )
    winner = ranked[0][0]
    return Found(
        tuple(ranked),
        tuple((base, scored.one(base)) for base in bases if scored.usable(base)),
        effects,
        _worth(scored, winner, bases),
        _front(scored) if len(bench.question.objective.goals) > 1 else (),
        len(scored.scores),
        enumerated,
    )


class _Scored:
    """Settings with their scores, in the order in which they were tried."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.scores: dict[SchedulerSpec, Score | None] = {}
        self.goals = bench.question.objective.goals

    def of(self, specs: Sequence[SchedulerSpec]) -> list[Score | None]:
        left = [spec for spec in dict.fromkeys(specs) if spec not in self.scores]
        self.scores.update(zip(left, self._bench.scores(left), strict=True))
        return [self.scores[spec] for spec in specs]

    def one(self, spec: SchedulerSpec) -> Score:
        [score] = self.of([spec])
        assert score is not None, "it can be used"
        return score

    def usable(self, spec: SchedulerSpec) -> bool:
        [score] = self.of([spec])
        return score is not None

    def key(self, spec: SchedulerSpec) -> tuple[float, float]:
        """Larger is better, of settings that were tried."""
        score = self.scores[spec]
        return (-math.inf, -math.inf) if score is None else score.key

    def best_of(self, scheduler: str) -> SchedulerSpec:
        """The best of that name: of equal ones, the one with the fewest settings."""

        return max(
            (spec for spec in self.scores if spec.name == scheduler),
            key=lambda spec: (*self.key(spec), -len(spec.settings)),
        )


def _screen(
    scored: _Scored, spaces: Sequence[Space], chance: random.Random
) -> dict[tuple[str, str], float]:
    """The effect of every tunable from the default and from random settings, as the logarithm of a
    ratio, by scheduler and tunable."""
    steps: list[tuple[Space, str, SchedulerSpec, SchedulerSpec]] = []
    for space in spaces:
        drawn = [
            {knob.name: chance.choice(knob.values) for knob in space.knobs} for _ in range(_BASES)
        ]
        for values in [{knob.name: knob.default for knob in space.knobs}, *drawn]:
            base = space.spec(values)
            for knob in space.knobs:
                steps += [
                    (space, knob.name, base, space.spec({**values, knob.name: end}))
                    for end in (knob.values[0], knob.values[-1])
                    if end != values[knob.name]
                ]
    scored.of([spec for _, _, base, other in steps for spec in (base, other)])
    most = {(space.name, knob.name): 0.0 for space in spaces for knob in space.knobs}
    for space, name, base, other in steps:
        change = _change(scored.scores[base], scored.scores[other])
        most[space.name, name] = max(most[space.name, name], change)
    return most


def _alternate(
    scored: _Scored,
    spaces: Sequence[Space],
    screened: Mapping[tuple[str, str], float],
    trials: int,
    seed: int,
) -> None:
    """Estimating and descending until `trials` new settings are tried. A descent that soon ends
    where no single change is better leaves trials: then the estimator looks elsewhere, and the next
    descent begins from the best of what it has found there."""
    end = len(scored.scores) + trials
    for turn in range(_TURNS):
        left = end - len(scored.scores)
        if left < _BATCH:
            return
        before = len(scored.scores)
        _estimate(scored, spaces, round(left * _ESTIMATED), seed + turn)
        new = list(scored.scores)[before:] if turn else list(scored.scores)
        starts = [
            max(ours, key=lambda spec: (*scored.key(spec), -len(spec.settings)))
            for space in spaces
            if (ours := [spec for spec in new if spec.name == space.name])
        ]
        _descend(scored, spaces, screened, starts, end - len(scored.scores))


def _descend(
    scored: _Scored,
    spaces: Sequence[Space],
    screened: Mapping[tuple[str, str], float],
    starts: Sequence[SchedulerSpec],
    trials: int,
) -> None:
    """From the best of `starts`, one tunable after the other, until none gets better or `trials`
    new settings are tried."""
    by_name = {space.name: space for space in spaces}
    end = len(scored.scores) + trials
    for start in sorted(starts, key=scored.key, reverse=True)[:_DESCENTS]:
        best, space = start, by_name[start.name]
        # Those with an effect first; of others the order does not matter.
        knobs = sorted(space.knobs, key=lambda knob: -screened[space.name, knob.name])
        is_better = True
        while is_better and len(scored.scores) < end:
            is_better = False
            for knob in knobs:
                values = space.values(best)
                line = [space.spec({**values, knob.name: value}) for value in knob.values]
                new = [spec for spec in line if spec not in scored.scores]
                scored.of(new[: max(0, end - len(scored.scores))])
                known = [spec for spec in line if spec in scored.scores]
                first = max(known, key=scored.key)
                if scored.key(first) > tuple(one + _NO_GAIN for one in scored.key(best)):
                    best, is_better = first, True


def _effects(
    scored: _Scored, spaces: Sequence[Space], screened: Mapping[tuple[str, str], float]
) -> tuple[Effect, ...]:
    """Each tunable's largest effect between all settings that were tried and differ in it alone."""
    most = dict(screened)
    for space in spaces:
        tried = [spec for spec in scored.scores if spec.name == space.name]
        for knob in space.knobs:
            alike: dict[SchedulerSpec, list[Score | None]] = {}
            for spec in tried:
                alike.setdefault(spec.without(knob.name), []).append(scored.scores[spec])
            for scores in alike.values():
                changes = [_change(scores[0], other) for other in scores[1:]]
                most[space.name, knob.name] = max(most[space.name, knob.name], *changes, 0.0)
    effects = [Effect(scheduler, name, math.exp(one)) for (scheduler, name), one in most.items()]
    return tuple(sorted(effects, key=lambda effect: -effect.most))


def _change(one: Score | None, other: Score | None) -> float:
    """The largest difference of two scores in a goal or in the bounds."""
    if one is None or other is None:
        return 0.0
    pairs = [(one.excess, other.excess), *zip(one.gains, other.gains, strict=True)]
    return max(abs(a - b) if math.isfinite(a - b) else 0.0 for a, b in pairs)


def _estimate(scored: _Scored, spaces: Sequence[Space], trials: int, seed: int) -> None:
    """Optuna asks, the bench answers, in batches; all that the screening has seen is told first."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        # Of its arguments for conditional parameters; the version is pinned.
        warnings.simplefilter("ignore", ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(
            seed=seed, multivariate=True, group=True, n_startup_trials=_FIRST, constant_liar=True
        )
    study = optuna.create_study(directions=["maximize"] * len(scored.goals), sampler=sampler)
    by_name = {space.name: space for space in spaces}
    for spec, score in list(scored.scores.items()):
        _tell_known(study, by_name, spec, score)
    left = trials
    while left > 0:
        asked = [study.ask() for _ in range(min(_BATCH, left))]
        specs = [_suggested(trial, by_name) for trial in asked]
        for trial, score in zip(asked, scored.of(specs), strict=True):
            study.tell(trial, _values(score, len(scored.goals)))
        left -= len(asked)


def _suggested(trial: optuna.Trial, spaces: Mapping[str, Space]) -> SchedulerSpec:
    space = spaces[trial.suggest_categorical("scheduler", list(spaces))]
    return space.spec(
        {
            knob.name: knob.values[
                trial.suggest_int(f"{space.name}.{knob.name}", 0, len(knob.values) - 1)
            ]
            for knob in space.knobs
        }
    )


def _tell_known(
    study: optuna.Study, spaces: Mapping[str, Space], spec: SchedulerSpec, score: Score | None
) -> None:
    """Tell the estimator of settings that were tried, if they can be used."""
    space = spaces[spec.name]
    values = space.values(spec)
    if space.spec(values) != spec or score is None:
        return
    parameters: dict[str, object] = {"scheduler": spec.name}
    distributions: dict[str, optuna.distributions.BaseDistribution] = {
        "scheduler": CategoricalDistribution(list(spaces))
    }
    for knob in space.knobs:
        name = f"{space.name}.{knob.name}"
        parameters[name] = knob.values.index(values[knob.name])
        distributions[name] = IntDistribution(0, len(knob.values) - 1)
    study.add_trial(
        optuna.trial.create_trial(
            state=TrialState.COMPLETE,
            values=_values(score, len(score.gains)),
            params=parameters,
            distributions=distributions,
        )
    )


def _values(score: Score | None, goals: int) -> list[float]:
    """For each goal, larger is better: any excess of a bound is worse than no gain at all."""
    if score is None or not all(map(math.isfinite, score.gains)):
        return [_WORST] * goals
    if score.excess > 0.0:
        return [_BEYOND - _BEYOND_STEP * score.excess] * goals
    return list(score.gains)


def _simplified(scored: _Scored, space: Space, best: SchedulerSpec) -> SchedulerSpec:
    """Without the changes that bring less than `WORTH`, the least worth first."""
    fixed = dict(space.base.settings)
    while True:
        told = [name for name, _ in best.settings if name not in fixed]
        fewer = [best.without(name) for name in told]
        scores = scored.of([best, *fewer])
        own = scores[0]
        kept = [
            (score.key, spec)
            for score, spec in zip(scores[1:], fewer, strict=True)
            if own is not None
            and score is not None
            and score.excess <= own.excess
            and all(a - b < WORTH for a, b in zip(own.gains, score.gains, strict=True))
        ]
        if not kept:
            return best
        best = max(kept, key=lambda pair: pair[0])[1]


def _worth(
    scored: _Scored, best: SchedulerSpec, bases: Sequence[SchedulerSpec]
) -> dict[str, float]:
    """How many times worse the best settings are without each."""
    [base] = (base for base in bases if base.name == best.name)
    own = scored.one(best)
    worth = {}
    for name, _ in best.settings:
        if name not in dict(base.settings):
            [score] = scored.of([best.without(name)])
            lost = math.inf if score is None else own.key[1] - score.key[1]
            worth[name] = math.exp(lost) if score and score.excess <= own.excess else math.inf
    return worth


def _front(scored: _Scored) -> tuple[tuple[SchedulerSpec, Score], ...]:
    """The settings within the bounds that are not worse than others in all goals."""
    usable = [
        (spec, score)
        for spec, score in scored.scores.items()
        if score is not None and score.excess == 0.0
    ]
    front: list[tuple[SchedulerSpec, Score]] = []
    for spec, score in sorted(usable, key=lambda pair: pair[1].gains, reverse=True):
        beaten = any(
            all(a >= b for a, b in zip(other.gains, score.gains, strict=True)) for _, other in front
        )
        if not beaten:
            front.append((spec, score))
    return tuple(front)
