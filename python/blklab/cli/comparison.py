"""A comparison on the terminal: ranked tables, winners, recommendations. 80 columns do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blklab.cli.console import console, safe, table
from blklab.compare.analyse import OBJECTIVE_TEXT, OBJECTIVES, OPERATION_TEXT, Analysis, Cell
from blklab.compare.words import sentence
from blklab.units import duration_text, number_text

if TYPE_CHECKING:
    from rich.console import Console


def show(analysis: Analysis, setup: Mapping[str, Any], page: Path) -> None:
    """Print everything."""
    out = console()
    repeats = setup["repeats"]
    show_rig(setup, out)
    show_cells(analysis, out)
    for pair in setup.get("left_out", ()):
        out.print()
        out.print(safe(f"{pair['scheduler']} was not run on {pair['disk']}: {pair['why']}."))
    show_advice(analysis, out)
    out.print()
    out.print(f"Medians of {repeats} repeat{'s' * (repeats > 1)}; ranked by {analysis.objective}:")
    out.print(f"{OBJECTIVE_TEXT[analysis.objective]}.")
    if stopping := setup.get("stopping"):
        out.print(f"Stopped: {stopping['text']}.")
    # A path is there to be copied: never folded.
    out.print(f"Report: {page}", soft_wrap=True)


def show_rig(setup: Mapping[str, Any], out: Console) -> None:
    """Print what ran it, if there is something to say."""
    if told := setup["rig_setup"]["text"]:
        out.print(f"Rig: {told}")


def show_advice(analysis: Analysis, out: Console) -> None:
    """Print the recommendations."""
    from rich.text import Text

    out.print()
    out.print(Text("Recommendations, over all loads", style="bold"))
    for disk, verdicts in analysis.recommendations.items():
        for objective in OBJECTIVES:
            out.print(safe(f"{disk}, {objective}: {sentence(verdicts[objective], objective)}"))


def show_cells(analysis: Analysis, out: Console) -> None:
    """Print the rankings, each with its verdict, and what was not as it was asked for."""
    from rich.text import Text

    for cell in analysis.cells:
        out.print()
        latency = f"latency of {OPERATION_TEXT[cell.operation]}"
        out.print(Text(safe(f"{cell.disk}, {cell.workload} ({latency})"), style="bold"))
        out.print(_ranking(cell))
        verdict = cell.verdicts[analysis.objective]
        style = "green" if verdict is not None and verdict.winner else ""
        said = safe(f"{analysis.objective}: {sentence(verdict, analysis.objective)}")
        out.print(Text(said, style))
    if analysis.notes:
        out.print()
    for note in analysis.notes:
        out.print(Text(safe(f"Note: {note}")))


def _ranking(cell: Cell) -> Any:
    heads = (
        "scheduler",
        cell.unit,
        "disk IOPS" if cell.is_program else "IOPS",
        "mean",
        "p50",
        "p99",
        "p99.9",
        "spread",
    )
    rows = table(*heads, right=range(1, len(heads)))
    for row in cell.rows:
        rows.add_row(
            safe(row.scheduler),
            number_text(row.rate.estimate),
            number_text(row.ios_per_s),
            duration_text(row.mean_ns),
            *(duration_text(value) for value in row.percentiles_ns),
            f"{row.spread * 100:.1f} %",
        )
    return rows
