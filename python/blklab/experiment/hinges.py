"""The parameters of a drawn disk that an answer depends on.

A parameter is named only if the ratio of the best scheduler to the next one correlates with it
significantly: its rank correlation (Spearman) is compared with the largest of any parameter after
random permutations of the ratios (Westfall and Young, "Resampling-Based Multiple Testing", 1993).
So at most 5 % of all reports name a wrong parameter, over all parameters and comparisons of the
report. The ratio must also differ by at least `MATTERS` between the lower and the upper half of the
parameter's values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from blklab.experiment.statistics import CONFIDENCE, MATTERS

Floats: TypeAlias = npt.NDArray[np.float64]

DISKS_LEAST = 8
"""Fewer disks cannot reach significance; a perfect order of 8 disks is one of 40,320."""
_NAMED_MAX = 3
_DEALS = 4000
"""Enough permutations to reach a level of 5 % over 200 comparisons."""
_SEED = 1993
_SPLIT_MISTAKES_MAX = 0.2
"""The largest share of disks on the wrong side of a threshold."""
_SIDE_LEAST = 3
"""The least number of disks on each side of a threshold, and where each scheduler is ahead."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Hinge:
    """A parameter that the answer depends on."""

    parameter: str
    best: str
    other: str
    """The second best scheduler."""
    low: float
    """How many times better `best` is: the median over the lower half of the parameter's values."""
    high: float
    """The median over the upper half."""
    threshold: float | None
    """On one side of this value `best` is ahead, on the other side `other`; None if `best` is ahead
    on both sides or if no threshold separates them."""

    @property
    def best_is_ahead_below(self) -> bool:
        """Whether `best` is ahead below the threshold."""
        return self.low > self.high


def hinges(
    best: tuple[str, Sequence[float]],
    other: tuple[str, Sequence[float]],
    drawn: Sequence[Mapping[str, float]],
    comparisons: int,
) -> tuple[Hinge, ...]:
    """The parameters, the strongest first; none with too few disks. `best` and `other` are names
    with figures in the order of `drawn`, higher is better; `comparisons` is the number of
    comparisons in the report."""
    if len(drawn) < DISKS_LEAST:
        return ()
    logs = np.log(np.array(best[1], np.float64)) - np.log(np.array(other[1], np.float64))
    names = [name for name in drawn[0] if len({disk[name] for disk in drawn}) > 1]
    if not names or np.ptp(logs) == 0.0:
        return ()
    values = np.array([[disk[name] for name in names] for disk in drawn], np.float64)
    ranks = np.apply_along_axis(_ranks, 0, values)
    left, target = list(range(len(names))), _ranks(logs)
    level = (1.0 - CONFIDENCE) / max(comparisons, 1)
    random = np.random.default_rng(_SEED)
    found: list[Hinge] = []
    while left and len(found) < _NAMED_MAX:
        columns = _standard(ranks[:, left])
        strength = np.abs(columns.T @ _standard(target))
        first = int(np.argmax(strength))
        dealt = random.permuted(np.tile(target, (_DEALS, 1)), axis=1)
        most = np.abs(_standard(dealt.T).T @ columns).max(axis=1)
        chance = (1 + int((most >= strength[first] - _ROUNDING).sum())) / (_DEALS + 1)
        if chance > level:
            break
        index = left.pop(first)
        hinge = _hinge(names[index], best[0], other[0], values[:, index], logs)
        if hinge is not None:
            found.append(hinge)
        # Remove the effect of this parameter from the ratios and from the other parameters.
        axis = _standard(ranks[:, [index]])
        target = target - (axis @ (axis.T @ target[:, None]))[:, 0]
        ranks = ranks - axis @ (axis.T @ ranks)
        left = [one for one in left if np.ptp(ranks[:, one]) > _ROUNDING]
        if np.ptp(target) < _ROUNDING:
            break
    return tuple(found)


def _hinge(name: str, best: str, other: str, values: Floats, logs: Floats) -> Hinge | None:
    """None if the parameter changes the ratio by less than `MATTERS`."""
    middle = np.median(values)
    low, high = logs[values <= middle], logs[values >= middle]
    ends = float(np.median(low)), float(np.median(high))
    if abs(ends[0] - ends[1]) < math.log(MATTERS):
        return None
    threshold = _threshold(values, logs, rising=ends[1] > ends[0])
    return Hinge(name, best, other, math.exp(ends[0]), math.exp(ends[1]), threshold)


def _threshold(values: Floats, logs: Floats, *, rising: bool) -> float | None:
    """The value at which the sign of `logs` changes, if both signs occur by at least `MATTERS`."""
    matters = math.log(MATTERS)
    if min((logs >= matters).sum(), (logs <= -matters).sum()) < _SIDE_LEAST:
        return None
    order = np.argsort(values, kind="stable")
    ahead = (logs[order] > 0.0) == rising
    # For a cut after each disk: the disks below it that are ahead plus those above it that are not.
    mistakes = np.cumsum(ahead)[:-1] + np.cumsum(~ahead[::-1])[-2::-1]
    cut = int(np.argmin(mistakes[_SIDE_LEAST - 1 : len(values) - _SIDE_LEAST])) + _SIDE_LEAST - 1
    if mistakes[cut] > _SPLIT_MISTAKES_MAX * len(values):
        return None
    below, above = values[order][cut], values[order][cut + 1]
    return float(below + above) / 2.0


def _ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of their ranks."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(count)
    return np.asarray((ends - (count - 1) / 2.0)[place], np.float64)


def _standard(columns: Floats) -> Floats:
    """Each column with mean 0 and length 1."""
    centred = columns - columns.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    return np.asarray(centred / np.where(length > 0.0, length, 1.0), np.float64)
