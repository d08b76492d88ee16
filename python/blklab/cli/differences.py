"""The first difference between two runs, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blklab.base.text import shown
from blklab.base.units import size_text
from blklab.cli import console
from blklab.timelines.decisions import SECTOR_BYTES

if TYPE_CHECKING:
    from blklab.timelines.difference import Difference
    from blklab.timelines.timeline import Request


def print_difference(difference: Difference, one: str, other: str) -> None:
    """Print the requests around it under the two runs' names."""
    out = console.console()
    table = console.table("", one, other)
    first = difference.index - len(difference.before) + 1
    for number, pair in enumerate((*difference.before, *difference.after), first):
        mark = ">" if number == difference.index + 1 else ""
        table.add_row(f"{mark}{number}", *map(_words, pair))
    out.print(table)
    out.print("Time of issue, operation, size, sector.")


def _words(request: Request | None) -> str:
    if request is None:
        return "-"
    place = f" at {request.sector}" if request.sectors else ""
    size = f" {size_text(request.sectors * SECTOR_BYTES)}" if request.sectors else ""
    # To the nanosecond: two times may differ by as little.
    return shown(f"{request.issued_ns / 1000:,.3f} us: {request.op}{size}{place}")
