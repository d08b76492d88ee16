"""The answer of a comparison on one screen: the best scheduler of each disk and workload, its lead,
and where the choice does not matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from blklab.base.text import shown
from blklab.base.units import duration_text, number_text
from blklab.cli.console import table
from blklab.domain.latencies import OPERATION_TEXT, RANKED_BY
from blklab.domain.setup import SetupData
from blklab.experiment.words import factor, sentence, short

if TYPE_CHECKING:
    from rich.console import Console

    from blklab import Analysis, Answer, Cell, Row

_DISKS_IN_A_ROW = 2
"""The number of answer columns that fit in 80."""
_WORTH_TELLING = 1.1
"""Smaller differences between the best and the worst appear only in the tables."""


def show_answer(analysis: Analysis, setup: SetupData, out: Console, *, more: str) -> None:
    """Print it, the recommendations first; `more` says where the other figures are, or is
    empty. With the default workloads it fits on 24 lines, with the prompt."""
    from rich.text import Text

    for disk, verdicts in analysis.recommendations.items():
        verdict = verdicts[analysis.objective]
        line = f"{disk}, all workloads: {sentence(verdict, analysis.objective)}"
        out.print(Text(shown(line), "green" if verdict.winner else ""))
    disks = list(analysis.recommendations)
    for first in range(0, len(disks), _DISKS_IN_A_ROW):
        out.print()
        out.print(_table(analysis, disks[first : first + _DISKS_IN_A_ROW]))
    out.print()
    for line in _largest(analysis.cells):
        out.print(shown(line))
    repeats = setup["repeats"]
    drawn = " with drawn disks" if setup.get("drawn_disks") else ""
    told = f"medians of {repeats} repeat{'s' * (repeats > 1)}{drawn}"
    out.print(f"Ranked by {analysis.objective}; {told}. {more}".rstrip())


def _table(analysis: Analysis, disks: Sequence[str]) -> Any:
    rows = table("ahead under", *map(shown, disks))
    rows.show_edge = False  # it would be an empty line above and below
    cells = {(cell.disk, cell.workload): cell for cell in analysis.cells}
    for load in dict.fromkeys(cell.workload for cell in analysis.cells):
        here = [cells.get((disk, load)) for disk in disks]
        rows.add_row(
            shown(load),
            *(
                "-" if cell is None else _ahead(cell.verdicts[analysis.objective], cell)
                for cell in here
            ),
        )
    every = (analysis.recommendations[disk][analysis.objective] for disk in disks)
    if len({cell.workload for cell in analysis.cells}) > 1:
        rows.add_row("all of them", *map(_ahead, every))
    return rows


def _ahead(verdict: Answer, cell: Cell | None = None) -> str:
    """``bfq, by 2.3 times``; ``kyber or none``; ``no difference``; ``depends on ncq_ageing``."""
    name = shown(short(verdict, () if cell is None else cell.hinges))
    if verdict.winner is None:
        return name
    gaps = verdict.behind.values()
    return f"{name}, by {factor(min(gap.estimate for gap in gaps))}" if gaps else name


def _largest(cells: Sequence[Cell]) -> Iterator[str]:
    """Where the choice changes most: latency, and throughput."""

    def latency_ns(row: Row) -> float:
        return row.ranked_ns

    if found := _widest(cells, latency_ns):
        cell, low, high = found
        yield (
            f"Largest difference in p{RANKED_BY:g} of {OPERATION_TEXT[cell.operation]}: "
            f"{cell.workload} on {cell.disk}, {duration_text(latency_ns(low))} under "
            f"{low.scheduler}, {duration_text(latency_ns(high))} under {high.scheduler}."
        )
    if found := _widest(cells, lambda row: row.rate.estimate):
        cell, low, high = found
        yield (
            f"Largest difference in throughput: {cell.workload} on {cell.disk}, "
            f"{number_text(high.rate.estimate)} {cell.unit} under {high.scheduler}, "
            f"{number_text(low.rate.estimate)} under {low.scheduler}."
        )


def _widest(cells: Sequence[Cell], figure: Callable[[Row], float]) -> tuple[Cell, Row, Row] | None:
    """The cell with the largest difference between rows, with its least and largest row; None if no
    difference is large enough to report."""
    best, most = None, _WORTH_TELLING
    for cell in cells:
        rows = [row for row in cell.rows if figure(row) > 0.0]
        if len(rows) > 1:
            low, high = min(rows, key=figure), max(rows, key=figure)
            if figure(high) / figure(low) > most:
                best, most = (cell, low, high), figure(high) / figure(low)
    return best
