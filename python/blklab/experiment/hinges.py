"""On which parameter of the disk an answer hangs, where each repeat has a drawn disk.

A parameter is named only if the ratio of the best scheduler to the next one goes with it more
than chance would have it: Spearman's rank correlation against the largest that any of the
parameters reaches when the ratios are dealt out anew (Westfall and Young, "Resampling-Based
Multiple Testing", 1993). So the many parameters and the many comparisons together name a wrong one
in at most 5 % of all reports. And it is named only if the ratio differs by an amount that matters
between the parameter's lower and upper half.
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
"""Fewer disks cannot show it: the strongest order of 8 is one of 40,320."""
_NAMED_MAX = 3
_DEALS = 4000
"""So that a level of 5 % over 200 comparisons can still be reached."""
_SEED = 1993
_SPLIT_MISTAKES_MAX = 0.2
"""So large a share of disks may lie on the wrong side of a threshold."""
_SIDE_LEAST = 3
"""Disks on either side of a threshold, and where the other one is ahead: fewer are luck."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Hinge:
    """A parameter that the answer hangs on."""

    parameter: str
    best: str
    other: str
    """The scheduler next to `best`."""
    low: float
    """How many times better `best` is: the median where the parameter is in its lower half."""
    high: float
    """The same of the upper half."""
    threshold: float | None
    """From here on it turns: on one side `best` is ahead, on the other side `other`; None if `best`
    is ahead on both, or if no threshold tells them apart."""

    @property
    def best_is_ahead_below(self) -> bool:
        """On which side of the threshold."""
        return self.low > self.high


def hinges(
    best: tuple[str, Sequence[float]],
    other: tuple[str, Sequence[float]],
    drawn: Sequence[Mapping[str, float]],
    comparisons: int,
) -> tuple[Hinge, ...]:
    """The parameters, the one first that the ratio goes with most; none if there are too few
    disks. Names with figures of which more is better, in the order of `drawn`; `comparisons` is how
    many are tested in the same report."""
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
        # What is left is looked at apart from what this one explains.
        axis = _standard(ranks[:, [index]])
        target = target - (axis @ (axis.T @ target[:, None]))[:, 0]
        ranks = ranks - axis @ (axis.T @ ranks)
        left = [one for one in left if np.ptp(ranks[:, one]) > _ROUNDING]
        if np.ptp(target) < _ROUNDING:
            break
    return tuple(found)


def _hinge(name: str, best: str, other: str, values: Floats, logs: Floats) -> Hinge | None:
    """None if it changes the ratio by less than matters."""
    middle = np.median(values)
    low, high = logs[values <= middle], logs[values >= middle]
    ends = float(np.median(low)), float(np.median(high))
    if abs(ends[0] - ends[1]) < math.log(MATTERS):
        return None
    threshold = _threshold(values, logs, rising=ends[1] > ends[0])
    return Hinge(name, best, other, math.exp(ends[0]), math.exp(ends[1]), threshold)


def _threshold(values: Floats, logs: Floats, *, rising: bool) -> float | None:
    """Where the sign of `logs` turns, if it does so by amounts that matter."""
    matters = math.log(MATTERS)
    if min((logs >= matters).sum(), (logs <= -matters).sum()) < _SIDE_LEAST:
        return None
    order = np.argsort(values, kind="stable")
    ahead = (logs[order] > 0.0) == rising
    # Of a cut behind so many disks: those below that are ahead and those above that are not.
    mistakes = np.cumsum(ahead)[:-1] + np.cumsum(~ahead[::-1])[-2::-1]
    cut = int(np.argmin(mistakes[_SIDE_LEAST - 1 : len(values) - _SIDE_LEAST])) + _SIDE_LEAST - 1
    if mistakes[cut] > _SPLIT_MISTAKES_MAX * len(values):
        return None
    below, above = values[order][cut], values[order][cut + 1]
    return float(below + above) / 2.0


def _ranks(values: Floats) -> Floats:
    """From 1; equal values share the mean of their ranks."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(count)
    return np.asarray((ends - (count - 1) / 2.0)[place], np.float64)


def _standard(columns: Floats) -> Floats:
    """Each with mean 0 and length 1."""
    centred = columns - columns.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    return np.asarray(centred / np.where(length > 0.0, length, 1.0), np.float64)
