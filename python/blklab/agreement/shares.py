"""The share of figures within 2, 5 and 10 per cent, by scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from blklab.agreement.measure import Cell
from blklab.agreement.verdict import BAR

BOUNDS = (0.02, 0.05, 0.10)


@dataclass(frozen=True)
class Shares:
    """The cells of one scheduler on one disk."""

    place: str
    scheduler: str
    cells: int
    within: dict[str, tuple[float, ...]]
    """For each figure, the share of cells with a deviation within each of `BOUNDS`."""
    met: float
    """The share of all figures within their own bar."""
    chance: float | None
    """The same for the simulator against itself on a disturbed disk, if requested."""


def shares(cells: Sequence[Cell]) -> tuple[Shares, ...]:
    """A row for each disk and scheduler, in the order of `cells`."""
    rows: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        rows.setdefault((cell.place, cell.scheduler), []).append(cell)
    return tuple(_of(place, scheduler, those) for (place, scheduler), those in rows.items())


def exported(cells: Sequence[Cell], jobs: Mapping[str, str]) -> dict[str, Any]:
    """As plain data, with the text of each job file by name."""
    return {
        "bounds": BOUNDS,
        "shares": [asdict(row) for row in shares(cells)],
        "jobs": dict(jobs),
    }


def _of(place: str, scheduler: str, cells: Sequence[Cell]) -> Shares:
    def share(what: str, bound: float) -> float:
        return sum(cell.off(what) <= bound for cell in cells) / len(cells)

    chances = [
        (off, bound)
        for cell in cells
        for what, bound in BAR.items()
        if (off := cell.chance(what)) is not None
    ]
    return Shares(
        place=place,
        scheduler=scheduler,
        cells=len(cells),
        within={what: tuple(share(what, bound) for bound in BOUNDS) for what in BAR},
        met=sum(share(what, bound) for what, bound in BAR.items()) / len(BAR),
        chance=sum(off <= bound for off, bound in chances) / len(chances) if chances else None,
    )
