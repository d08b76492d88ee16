"""The bar for the simulator, the verdict, and both as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from blklab.agreement.measure import Cell, Uncompared
from blklab.base.plain import plain
from blklab.domain import core

BAR = {"bytes_per_s": 0.01, "p50_ns": 0.03, "p99_ns": 0.05}
"""The largest allowed deviation of each figure."""
SHARE = 0.95
"""The share of cells that must meet it."""
WORST = 0.15
"""The largest allowed deviation of any figure of any cell."""
WIDE = {"bytes_per_s": 0.02, "p50_ns": 0.05, "p99_ns": 0.10}
"""A wider bar, which is counted and does not decide."""


@dataclass(frozen=True)
class Verdict:
    """How many cells meet the bar, and those that do not."""

    cells: int
    met: int
    missed: tuple[Cell, ...]
    worst: float
    """The largest deviation of any figure of any cell."""
    uncompared: int = 0
    """Cells without figures, of which a run has failed; `cells` does not count them."""
    widely: int = 0
    """Cells that meet the wider bar."""
    equal: int = 0
    """Cells in which all figures are equal to the last digit."""

    @property
    def good(self) -> bool:
        """The simulator agrees with the kernel in what was asked for."""
        return self.met >= SHARE * self.cells and self.worst <= WORST and not self.uncompared

    def text(self, kernel: str) -> str:
        """In one sentence; `kernel` is the kernel's name in it."""
        if not self.cells:
            return f"Nothing could be compared with {kernel}."
        agrees = self.met >= SHARE * self.cells and self.worst <= WORST
        word = "agrees" if agrees else "does not agree"
        left = f"; {self.uncompared} more could not be compared" if self.uncompared else ""
        return (
            f"The simulator {word} with {kernel}: {self.met} of {self.cells} cells are within "
            f"{_words(BAR)} (the bar: {SHARE:.0%} of them); the worst figure is "
            f"{percent(self.worst)} off (the bar: {WORST:.0%}){left}. {self.widely} cells "
            f"are within {_words(WIDE)}; in {self.equal} all figures are the same."
        )


def percent(part: float) -> str:
    """``4.2 %``."""
    return f"{100 * part:.1f} %"


def _words(bar: Mapping[str, float]) -> str:
    rate, middle, high = (f"{bar[what]:.0%}" for what in ("bytes_per_s", "p50_ns", "p99_ns"))
    return f"{rate} of throughput, {middle} of p50 and {high} of p99"


def meets(cell: Cell, bar: Mapping[str, float] = BAR) -> bool:
    """Every figure of the cell is within the bar."""
    return all(cell.off(what) <= most for what, most in bar.items())


def judge(cells: Sequence[Cell], uncompared: Sequence[Uncompared] = ()) -> Verdict:
    """All cells against the bar."""
    missed = tuple(cell for cell in cells if not meets(cell))
    worst = max((cell.off(what) for cell in cells for what in BAR), default=0.0)
    return Verdict(
        len(cells),
        len(cells) - len(missed),
        missed,
        worst,
        len(uncompared),
        sum(meets(cell, WIDE) for cell in cells),
        sum(cell.sim == cell.kernel for cell in cells),
    )


def exported(
    cells: Sequence[Cell],
    uncompared: Sequence[Uncompared],
    verdict: Verdict,
    kernel: str,
    host: Mapping[str, int],
    seed: int,
    layouts: Sequence[object],
) -> dict[str, Any]:
    """Everything in the table, and the bar: `kernel` is the kernel's name, `host` that of cells on
    bare disks; `layouts` are of `blklab.agreement.laid_out`."""
    rows = [
        asdict(cell)
        | {"off": {what: round(cell.off(what), 6) for what in BAR}, "meets_bar": meets(cell)}
        for cell in cells
    ]
    return {
        "version": core.version(),
        "kernel": kernel,
        "host": dict(host),
        "seed": seed,
        "bar": {"off": BAR, "share": SHARE, "worst": WORST},
        "good": verdict.good,
        "met": verdict.met,
        "equal": verdict.equal,
        "wide": {"off": WIDE, "met": verdict.widely},
        "worst": round(verdict.worst, 6),
        **({"layouts": plain(layouts)} if layouts else {}),
        "cells": rows,
        "uncompared": [asdict(cell) for cell in uncompared],
    }


def text(data: Mapping[str, Any]) -> str:
    """As a file."""
    return json.dumps(data, indent=1) + "\n"
