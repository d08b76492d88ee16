"""The simulator's rates beside fresh measurements, and the verdict on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from blklab.calibration.load import Load

BAR = 0.15
"""The largest error of a rate."""
_TIE = 0.03
"""Rates that differ by less have no order."""


@dataclass(frozen=True)
class Prediction:
    """One load under one scheduler."""

    scheduler: str
    load: Load
    measured: tuple[float, ...]
    """IOPS of each run."""
    simulated: float
    """IOPS."""

    @property
    def rate(self) -> float:
        """The IOPS of the fastest run: whatever else happens on the machine only slows one down."""
        return max(self.measured)

    @property
    def error(self) -> float:
        """How far the simulator is off; 0.1 is 10 % too fast."""
        return self.simulated / self.rate - 1

    @property
    def is_off(self) -> bool:
        """Beyond the bar."""
        return abs(self.error) > BAR


@dataclass(frozen=True)
class Swap:
    """Two schedulers in another order than measured."""

    load: Load
    faster: str
    """As measured."""
    slower: str

    @property
    def text(self) -> str:
        """One line."""
        return (
            f"{self.load.text}: {self.faster} was faster than {self.slower}, not in the simulator"
        )


def swaps(rows: Sequence[Prediction]) -> list[Swap]:
    """Pairs of schedulers with all runs of one faster than all of the other, beyond a tie, of which
    the simulator has the other order."""
    found = []
    for load in dict.fromkeys(row.load for row in rows):
        of_load = [row for row in rows if row.load == load]
        for one, other in combinations(of_load, 2):
            fast, slow = (one, other) if one.rate > other.rate else (other, one)
            is_clear = min(fast.measured) > max(slow.measured) * (1 + _TIE)
            if is_clear and fast.simulated < slow.simulated:
                found.append(Swap(load, fast.scheduler, slow.scheduler))
    return found
