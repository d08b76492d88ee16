"""Whether two series of figures put schedulers in the same order.

Figures that are close are ties: the best begins a group, which holds all that are within the
tolerance of it; the next one begins another group. Kendall's tau-b of the groups (Kendall, "The
treatment of ties in ranking problems", 1945) is 1 for the same order and -1 for the opposite one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence


def groups(figures: Sequence[float], tolerance: float, *, more_is_better: bool) -> list[int]:
    """The group of each figure: 0 is the best one's. `tolerance` is relative."""
    order = sorted(range(len(figures)), key=lambda place: figures[place], reverse=more_is_better)
    found, number, first = [0] * len(figures), -1, math.nan
    for place in order:
        apart = max(figures[place] / first, first / figures[place])
        if not apart <= 1.0 + tolerance:
            number, first = number + 1, figures[place]
        found[place] = number
    return found


def tau(one: Sequence[int], other: Sequence[int]) -> float:
    """Kendall's tau-b of two series of ranks; NaN if one of them has no order."""
    pairs = [
        ((a > b) - (a < b), (x > y) - (x < y))
        for (a, x), (b, y) in itertools.combinations(zip(one, other, strict=True), 2)
    ]
    both = sum(a * x for a, x in pairs)
    untied = math.sqrt(sum(a * a for a, _ in pairs) * sum(x * x for _, x in pairs))
    return both / untied if untied else math.nan
