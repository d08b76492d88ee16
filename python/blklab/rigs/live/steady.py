"""Whether a written disk is in a steady state, by the definition in SNIA's Solid State Storage
Performance Test Specification.

Idle or new flash writes faster than it can sustain, until its spare blocks are used up. Over a
window of five rounds, here the runs of one scheduler, the rate is steady if no two differ by more
than 20 % of their mean, and a straight line fitted to them rises or falls by no more than 10 % of
it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

WINDOW = 5
RANGE_MAX = 0.20
SLOPE_MAX = 0.10


def unsteady(rates: Sequence[float]) -> str | None:
    """The reason why `rates`, in order of time, do not end in a steady state; None if they do, or
    if there are fewer than `WINDOW`."""
    last = np.array(rates[-WINDOW:], np.float64)
    if len(last) < WINDOW or last.mean() <= 0.0:
        return None
    rise = float(np.polyfit(np.arange(WINDOW), last, 1)[0]) * (WINDOW - 1) / float(last.mean())
    of = f"not in a steady state: its last {WINDOW} runs"
    if abs(rise) > SLOPE_MAX:
        return f"{of} became {'slower' if rise < 0 else 'faster'} by more than {SLOPE_MAX:.0%}"
    if float(np.ptp(last)) > RANGE_MAX * float(last.mean()):
        return f"{of} differ by more than {RANGE_MAX:.0%}"
    return None
