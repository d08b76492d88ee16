"""The search, in five steps, each of some dozen to some hundred runs. Where short runs tell the
order of whole ones, steps 3 and 4 begin with them (`blklab.tuning.fidelity`).

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
from blklab.tuning.fidelity import PROMISING, SHARE, FurtherSeeds, Levels, ShortRuns
from blklab.tuning.scored import Scored

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
_DESCENTS = 4
"""Descents at most, one for each scheduler, from its best settings: the best of all goes first, as
far as it gets."""
_TURNS = 6
"""Times that estimating and descending take turns, at most: later ones only see what was tried."""
_LINE = 2
"""Whole runs of the values of one tunable, at most, where short ones come first."""
_NO_GAIN = 1e-12
_ONE_LEVEL = Levels()


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
    short: ShortRuns | None
    """What short runs were worth; None if there were none."""
    further: FurtherSeeds | None
    """What further seeds were worth; None if there were none."""
    cost: float
    """All settings that were tried, a short run as its part of one."""


def search(
    bench: Bench,
    spaces: Sequence[Space],
    trials: int,
    seed: int,
    levels: Levels = _ONE_LEVEL,
) -> Found:
    """Try up to `trials` settings after the screening, and some to simplify the best; with short
    runs more of them, for the same cost. Short runs are for one goal."""
    scored = Scored(bench.scores, levels.seeds, bench.question.objective.goals)
    bases = [space.base for space in spaces]
    scored.of(bases)
    screened = _screen(scored, spaces, random.Random(seed))
    enumerated = sum(space.points for space in spaces) <= trials
    if enumerated:
        scored.of([spec for space in spaces for spec in space.all()])
    else:
        judged = scored.judge_seeds()
        if levels.short is not None:
            levels.short.judge(judged)
            scored.fidelity = levels.short
        _alternate(scored, spaces, screened, trials, seed)
    effects = _effects(scored, spaces, screened)
    best = [_simplified(scored, space, scored.best_of(space.name)) for space in spaces]
    ranked = sorted(
        ((spec, scored.one(spec)) for spec in best if scored.usable(spec)),
        key=lambda pair: pair[1].key,
        reverse=True,
    )
    winner = ranked[0][0]
    # That may look at settings that had one seed so far.
    front = _front(scored) if len(bench.question.objective.goals) > 1 else ()
    return Found(
        tuple(ranked),
        tuple((base, scored.one(base)) for base in bases if scored.usable(base)),
        effects,
        _worth(scored, winner, bases),
        front,
        len(scored.scores),
        enumerated,
        scored.fidelity.told(scored.scores) if scored.fidelity is not None else None,
        scored.further,
        scored.cost,
    )


def _screen(
    scored: Scored, spaces: Sequence[Space], chance: random.Random
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
                # Where the base is at an end, such as 0 for the kernel's own choice, the next one.
                others = [value for value in knob.values if value != values[knob.name]]
                steps += [
                    (space, knob.name, base, space.spec({**values, knob.name: end}))
                    for end in dict.fromkeys((others[0], others[-1]))
                ]
    scored.of([spec for _, _, base, other in steps for spec in (base, other)])
    first = scored.first
    most = {(space.name, knob.name): 0.0 for space in spaces for knob in space.knobs}
    for space, name, base, other in steps:
        change = _change(first[base], first[other])
        most[space.name, name] = max(most[space.name, name], change)
    return most


def _alternate(
    scored: Scored,
    spaces: Sequence[Space],
    screened: Mapping[tuple[str, str], float],
    trials: int,
    seed: int,
) -> None:
    """Estimating and descending until `trials` new settings are tried. A descent that soon ends
    where no single change is better leaves trials: then the estimator looks elsewhere, and the next
    descent begins from the best of what it has found there."""
    end = scored.cost + trials
    for turn in range(_TURNS):
        left = end - scored.cost
        if left < _BATCH:
            return
        before = len(scored.scores)
        _estimate(scored, spaces, left * _ESTIMATED, seed + turn)
        new = list(scored.scores)[before:] if turn else list(scored.scores)
        starts = [
            max(ours, key=lambda spec: (*scored.key(spec), -len(spec.settings)))
            for space in spaces
            if (ours := [spec for spec in new if spec.name == space.name])
        ]
        _descend(scored, spaces, screened, starts, end - scored.cost)


def _descend(
    scored: Scored,
    spaces: Sequence[Space],
    screened: Mapping[tuple[str, str], float],
    starts: Sequence[SchedulerSpec],
    runs: float,
) -> None:
    """From the best of `starts`, one tunable after the other, until none gets better or that many
    runs are made."""
    by_name = {space.name: space for space in spaces}
    end = scored.cost + runs
    for start in sorted(starts, key=scored.key, reverse=True)[:_DESCENTS]:
        best, space = start, by_name[start.name]
        # Those with an effect first; of others the order does not matter.
        knobs = sorted(space.knobs, key=lambda knob: -screened[space.name, knob.name])
        is_better = True
        while is_better and scored.cost < end:
            is_better = False
            for knob in knobs:
                values = space.values(best)
                line = [space.spec({**values, knob.name: value}) for value in knob.values]
                new = [spec for spec in line if spec not in scored.scores]
                if new and scored.short and scored.cost < end:
                    new = scored.short.best(new, _LINE)
                scored.of(new[: max(0, math.floor(end - scored.cost))])
                known = [spec for spec in line if spec in scored.scores]
                first = scored.best(known)
                if scored.key(first) > tuple(one + _NO_GAIN for one in scored.key(best)):
                    best, is_better = first, True


def _effects(
    scored: Scored, spaces: Sequence[Space], screened: Mapping[tuple[str, str], float]
) -> tuple[Effect, ...]:
    """Each tunable's largest effect between all settings that were tried and differ in it alone."""
    most, first = dict(screened), scored.first
    for space in spaces:
        tried = [spec for spec in scored.scores if spec.name == space.name]
        for knob in space.knobs:
            alike: dict[SchedulerSpec, list[Score | None]] = {}
            for spec in tried:
                alike.setdefault(spec.without(knob.name), []).append(first[spec])
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


def _estimate(scored: Scored, spaces: Sequence[Space], runs: float, seed: int) -> None:
    """Optuna asks, the bench answers, in batches; all that was tried before is told first."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        # Of its arguments for conditional parameters; the version is pinned.
        warnings.simplefilter("ignore", ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(
            seed=seed, multivariate=True, group=True, n_startup_trials=_FIRST, constant_liar=True
        )
    study = optuna.create_study(directions=["maximize"] * len(scored.goals), sampler=sampler)
    by_name = {space.name: space for space in spaces}
    short = scored.short
    for spec, score in list(scored.scores.items()):
        _tell_known(study, by_name, spec, score, TrialState.COMPLETE)
    for spec, score in list(short.scores.items()) if short else ():
        if spec not in scored.scores:
            _tell_known(study, by_name, spec, score, TrialState.PRUNED)
    # Of settings that were tried before a run costs nothing.
    each = SHARE + PROMISING if short else 1.0
    end, left = scored.cost + runs, round(runs / each)
    most = 1.0 + SHARE if short else 1.0
    while left > 0 and (room := round((end - scored.cost) / most)) > 0:
        asked = [study.ask() for _ in range(min(_BATCH, left, room))]
        specs = [_suggested(trial, by_name) for trial in asked]
        whole = short.promising(specs) if short else set(specs)
        scored.of([spec for spec in specs if spec in whole])
        for trial, spec in zip(asked, specs, strict=True):
            if short is None or spec in scored.scores:
                study.tell(trial, _values(scored.scores[spec], len(scored.goals)))
            else:
                trial.report(_values(short.scores[spec], 1)[0], 0)
                study.tell(trial, state=TrialState.PRUNED)
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
    study: optuna.Study,
    spaces: Mapping[str, Space],
    spec: SchedulerSpec,
    score: Score | None,
    state: TrialState,
) -> None:
    """Tell the estimator of settings that were tried, if they can be used. Those that had only a
    short run are pruned ones."""
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
    values_told = _values(score, len(score.gains))
    is_whole = state == TrialState.COMPLETE
    study.add_trial(
        optuna.trial.create_trial(
            state=state,
            values=values_told if is_whole else None,
            intermediate_values={} if is_whole else {0: values_told[0]},
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


def _simplified(scored: Scored, space: Space, best: SchedulerSpec) -> SchedulerSpec:
    """Without the changes that bring less than `WORTH`, the least worth first."""
    fixed = dict(space.base.settings)
    while True:
        told = [name for name, _ in best.settings if name not in fixed]
        fewer = [best.without(name) for name in told]
        scores = scored.with_all_seeds([best, *fewer])
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


def _worth(scored: Scored, best: SchedulerSpec, bases: Sequence[SchedulerSpec]) -> dict[str, float]:
    """How many times worse the best settings are without each."""
    [base] = (base for base in bases if base.name == best.name)
    own = scored.one(best)
    worth = {}
    for name, _ in best.settings:
        if name not in dict(base.settings):
            [score] = scored.with_all_seeds([best.without(name)])
            lost = math.inf if score is None else own.key[1] - score.key[1]
            worth[name] = math.exp(lost) if score and score.excess <= own.excess else math.inf
    return worth


def _front(scored: Scored) -> tuple[tuple[SchedulerSpec, Score], ...]:
    """The settings within the bounds that are not worse than others in all goals."""
    while True:
        front = _front_so_far(scored)
        left = [spec for spec, _ in front if not scored.is_full(spec)]
        if not left:
            return front
        scored.with_all_seeds(left)


def _front_so_far(scored: Scored) -> tuple[tuple[SchedulerSpec, Score], ...]:
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
