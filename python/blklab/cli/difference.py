"""Two sets of stored comparisons on the terminal, side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.text import Text

from blklab.base.text import shown
from blklab.base.units import duration_text, number_text
from blklab.cli import console
from blklab.domain.latencies import OPERATION_TEXT
from blklab.experiment.words import FEW, few_text

if TYPE_CHECKING:
    from blklab import Difference, Gap

_NAME = 16
"""Longer names are folded."""
_MOST = 1e4
"""An interval with a larger ratio carries no information."""


def show(found: Difference) -> None:
    """Print B's figures beside A's, disk by disk and workload by workload."""
    out = console.console()
    groups = dict.fromkeys((pair.disk, pair.workload) for pair in found.pairs)
    for disk, workload in groups:
        pairs = [pair for pair in found.pairs if (pair.disk, pair.workload) == (disk, workload)]
        latency = f"latency of {OPERATION_TEXT.get(pairs[0].operation, '-')}"
        out.print()
        out.print(Text(shown(f"{disk}, {workload} ({latency})"), style="bold"))
        program_unit = pairs[0].figure_unit
        unit = program_unit or "MB/s"
        table = console.table(
            "scheduler", f"A {unit}", f"B {unit}", "B/A", "A p99", "B p99", "B/A",
            right=range(1, 7),
        )  # fmt: skip
        table.columns[0].min_width = min(_NAME, max(len(pair.scheduler) for pair in pairs))
        for pair in pairs:
            table.add_row(
                Text(shown(pair.scheduler)),
                *(
                    _cells(pair.figure, number_text)
                    if program_unit
                    else _cells(pair.bytes_per_s, lambda value: number_text(value / 1e6))
                ),
                *_cells(pair.p99_ns, duration_text),
            )
        out.print(table)
    if any(pair.p99_ns and pair.p99_ns.why for pair in found.pairs):
        out.print(f"{few_text()}.")
    out.print("B/A: B's figure divided by A's (95 % interval); * if they differ.")
    for side, missing in (("A", found.only_first), ("B", found.only_second)):
        if missing:
            out.print(Text(shown(f"Only in {side}: {'; '.join(missing)}.")))
    if not all(pair.paired for pair in found.pairs):
        out.print("Runs have different seeds: compared as independent samples.")
    for note in found.notes:
        out.print(Text(shown(f"Note: {note}.")))


def _cells(gap: Gap | None, text: Callable[[float], str]) -> list[str]:
    if gap is None:
        return ["-", "-", "-"]
    if gap.ratio is None:
        return [f"{FEW}{text(gap.first)}", f"{FEW}{text(gap.second)}", "-"]
    low, high = gap.ratio.low, gap.ratio.high
    star = "*" if gap.matters else " "
    return [
        text(gap.first),
        text(gap.second),
        f"{_times(gap.ratio.estimate)} ({_times(low)}-{_times(high)}){star}",
    ]


def _times(ratio: float) -> str:
    """Two digits behind the point while there is room; ``?`` where an interval has no end."""
    if ratio > _MOST:
        return "?"
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"  # noqa: PLR2004
