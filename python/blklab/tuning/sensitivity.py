"""How the figures change around chosen settings, with fresh seeds on drawn disks.

The search's own effects are of one seed and the model's own values. Here each tunable goes to both
ends of its range, alone, from the settings to be judged; then the tunables with the largest effects
go there two at a time: two tunables interact where both together do not have the product of their
effects, so that setting one of them depends on the other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from blklab.domain.experiment import SchedulerSpec
from blklab.domain.space import Space
from blklab.experiment import statistics
from blklab.experiment.statistics import Interval
from blklab.tuning.bench import Score

PAIRED = 4
"""Tunables whose pairs are tried: those with the largest effects."""

Scores = Callable[[Sequence[SchedulerSpec]], Sequence[Sequence[Score | None]]]
"""For each scheduler with its settings its score in each repeat, compared with the settings to be
judged; None where the rig refuses them."""


@dataclass(frozen=True)
class Moved:
    """One tunable at one end of its range, all else as in the settings that are judged."""

    tunable: str
    value: int
    usual: int
    """Its value in the settings that are judged."""
    gain: Interval
    """How many times better that is, over all goals and loads: above 1 is better."""
    beyond: int
    """Repeats in which a bound is exceeded."""

    @property
    def size(self) -> float:
        """The effect, up or down, as a ratio of at least 1."""
        return max(self.gain.estimate, 1.0 / self.gain.estimate)


@dataclass(frozen=True)
class Pair:
    """Two tunables at the ends where each has its larger effect."""

    one: Moved
    other: Moved
    together: Interval
    """How many times better both are than the settings that are judged."""
    interaction: Interval
    """That over the product of the two effects: 1 if neither depends on the other."""


@dataclass(frozen=True)
class Sensitivity:
    """The effects around some settings."""

    around: str
    repeats: int
    moved: tuple[Moved, ...]
    """Both ends of each tunable, the largest effect first; without those that the rig refuses."""
    pairs: tuple[Pair, ...]
    """The strongest interaction first."""


def effects_around(space: Space, around: SchedulerSpec, scores: Scores) -> Sensitivity:
    """The effects of all knobs of `space` around these settings of its scheduler."""
    values = space.values(around)
    ends = space.ends(around)
    usable = [
        (name, end, found)
        for (name, end, _), found in zip(ends, scores([spec for *_, spec in ends]), strict=True)
        if _whole(found)
    ]
    level = statistics.joint_level(len(usable))
    gains = {(name, end): _gains(found) for name, end, found in usable}
    moved = sorted(
        (
            Moved(name, end, values[name], _interval(gains[name, end], level), _beyond(found))
            for name, end, found in usable
        ),
        key=lambda one: -one.size,
    )
    pairs = _pairs(space, values, moved, gains, scores)
    repeats = len(usable[0][2]) if usable else 0
    return Sensitivity(around.label, repeats, tuple(moved), pairs)


def _pairs(
    space: Space,
    values: Mapping[str, int],
    moved: Sequence[Moved],
    gains: Mapping[tuple[str, int], Sequence[float]],
    scores: Scores,
) -> tuple[Pair, ...]:
    larger: dict[str, Moved] = {}
    for one in moved:
        if _matters(one):
            larger.setdefault(one.tunable, one)
    asked = list(itertools.combinations(list(larger.values())[:PAIRED], 2))
    specs = [
        space.spec({**values, one.tunable: one.value, other.tunable: other.value})
        for one, other in asked
    ]
    level = statistics.joint_level(len(asked))
    pairs = []
    for (one, other), found in zip(asked, scores(specs), strict=True):
        if not _whole(found):
            continue
        both = _gains(found)
        alone = zip(gains[one.tunable, one.value], gains[other.tunable, other.value], strict=True)
        beyond = [own - (a + b) for own, (a, b) in zip(both, alone, strict=True)]
        pairs.append(Pair(one, other, _interval(both, level), _interval(beyond, level)))
    return tuple(sorted(pairs, key=lambda pair: -abs(math.log(pair.interaction.estimate))))


def _matters(one: Moved) -> bool:
    """Whether its effect is shown and larger than what counts as a difference."""
    return not one.gain.low <= 1.0 <= one.gain.high and one.size >= statistics.MATTERS


def _whole(found: Sequence[Score | None]) -> bool:
    """Whether every repeat has a figure for every goal."""
    return bool(found) and all(
        score is not None and all(map(math.isfinite, score.gains)) for score in found
    )


def _gains(found: Sequence[Score | None]) -> list[float]:
    """The logarithm of the gain over all goals, by repeat."""
    return [score.key[1] for score in found if score is not None]


def _beyond(found: Sequence[Score | None]) -> int:
    return sum(1 for score in found if score is not None and score.excess > 0.0)


def _interval(logs: Sequence[float], level: float) -> Interval:
    return statistics.ratio([math.exp(one) for one in logs], [1.0] * len(logs), level)
