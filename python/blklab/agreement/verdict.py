"""The bar that the simulator has to meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blklab.agreement.measure import Cell

BAR = {"bytes_per_s": 0.02, "p50_ns": 0.05, "p99_ns": 0.10}
"""How far off a figure may be."""
SHARE = 0.90
"""Of the cells that have to meet it."""
WORST = 0.25
"""No figure of any cell may be further off."""


@dataclass(frozen=True)
class Verdict:
    """How many cells meet the bar, and those that do not."""

    cells: int
    met: int
    missed: tuple[Cell, ...]
    worst: float
    """The largest deviation of any figure of any cell."""

    @property
    def good(self) -> bool:
        """The simulator agrees with the kernel."""
        return self.met >= SHARE * self.cells and self.worst <= WORST


def meets(cell: Cell) -> bool:
    """Every figure of the cell is within the bar."""
    return all(cell.off(what) <= most for what, most in BAR.items())


def judge(cells: Sequence[Cell]) -> Verdict:
    """All cells against the bar."""
    missed = tuple(cell for cell in cells if not meets(cell))
    worst = max((cell.off(what) for cell in cells for what in BAR), default=0.0)
    return Verdict(len(cells), len(cells) - len(missed), missed, worst)
