"""A comparison on the terminal: the answer, ranked tables, recommendations. 80 columns do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from blklab.base.text import shown
from blklab.base.units import duration_text, number_text
from blklab.cli.answer import show_answer
from blklab.cli.console import console, table
from blklab.domain.comparison import OBJECTIVE_TEXT, OBJECTIVES
from blklab.domain.latencies import OPERATION_TEXT, PERCENTILES, RANKED_BY
from blklab.domain.setup import SetupData
from blklab.domain.validation import warning
from blklab.experiment.words import (
    COSTS,
    OVER_TIME,
    costs_head,
    costs_texts,
    drawn_text,
    few_text,
    hinge_text,
    over_time_method,
    over_time_sentence,
    over_time_texts,
    percentiles_text,
    sentence,
    spread_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console
    from rich.table import Table

    from blklab import Analysis, Cell
    from blklab.domain.costs import OperationCosts

_OVER_TIME_NS = 300_000_000_000
"""A drift in an hour says little of shorter runs; the report and ``--json`` have it for them."""


def show(analysis: Analysis, setup: SetupData, page: Path | None, *, verbose: bool) -> None:
    """Print the answer; if `verbose`, or if one table is all there is, every figure too."""
    out = console()
    show_rig(setup, out)
    in_full = verbose or len(analysis.cells) == 1 or are_told(setup)
    if in_full:
        show_cells(analysis, out, requests=are_told(setup))
        for pair in setup.get("left_out", ()):
            out.print()
            out.print(shown(f"{pair['scheduler']} was not run on {pair['disk']}: {pair['why']}."))
        show_advice(analysis, out)
        _show_method(analysis, setup, out)
    if not in_full:
        show_answer(analysis, setup, out, more="All figures: --verbose.")
        _show_notes(analysis, out)
    elif len(analysis.cells) > 1:
        out.print()
        show_answer(analysis, setup, out, more="")
    show_not_validated(setup, out)
    if stopping := setup.get("stopping"):
        out.print(f"Stopped: {stopping['text']}.")
    if page is not None:
        # A path is there to be copied: never folded.
        out.print(f"Report: {page}", soft_wrap=True)


def _show_method(analysis: Analysis, setup: SetupData, out: Console) -> None:
    repeats = setup["repeats"]
    out.print()
    out.print(f"Medians of {repeats} repeat{'s' * (repeats > 1)}; ranked by {analysis.objective}:")
    out.print(f"{OBJECTIVE_TEXT[analysis.objective]}.")
    if setup.get("drawn_disks"):
        out.print(drawn_text(repeats))


def show_not_validated(setup: SetupData, out: Console) -> None:
    """Print the disk models that are not validated."""
    from rich.text import Text

    if told := warning(setup):
        out.print(Text(shown(told)))


def _show_notes(analysis: Analysis, out: Console) -> None:
    from rich.text import Text

    if analysis.notes:
        out.print()
    for note in analysis.notes:
        out.print(Text(shown(f"Note: {note}")))


def show_rig(setup: SetupData, out: Console) -> None:
    """Print the machine and versions that ran it, if they are known."""
    if told := setup["rig_setup"]["text"]:
        out.print(f"Rig: {told}")


def show_advice(analysis: Analysis, out: Console) -> None:
    """Print the recommendations."""
    from rich.text import Text

    out.print()
    out.print(Text("Recommendations, over all workloads", style="bold"))
    for disk, verdicts in analysis.recommendations.items():
        for objective in OBJECTIVES:
            out.print(shown(f"{disk}, {objective}: {sentence(verdicts[objective], objective)}"))


def are_told(setup: SetupData) -> bool:
    """Whether queue time and service time are printed: on a real disk they are measured only on
    request. `--json` and the report have them for every rig."""
    return bool(setup["rig"] == "live")


def show_cells(analysis: Analysis, out: Console, *, requests: bool) -> None:
    """Print the rankings, each with its verdict and its `requests`, and differences from the
    requested settings."""
    from rich.text import Text

    for cell in analysis.cells:
        out.print()
        latency = f"latency of {OPERATION_TEXT[cell.operation]}"
        out.print(Text(shown(f"{cell.disk}, {cell.workload} ({latency})"), style="bold"))
        out.print(_ranking(cell))
        verdict = cell.verdicts[analysis.objective]
        style = "green" if verdict.winner else ""
        said = shown(f"{analysis.objective}: {sentence(verdict, analysis.objective)}")
        out.print(Text(said, style))
        for hinge in cell.hinges:
            out.print(Text(shown(f"{hinge_text(hinge)}.")))
        if costs := {row.scheduler: row.costs for row in cell.rows if row.costs is not None}:
            out.print(f"{costs_head(costs.values())}:")
            out.print(costs_table(costs))
        steady = next((row.stability for row in cell.rows if row.stability is not None), None)
        if steady is not None and steady.lasts_ns >= _OVER_TIME_NS:
            out.print(f"Over time ({over_time_method(steady)}):")
            out.print(_over_time(cell))
            for row in cell.rows:
                if row.stability is not None:
                    said = over_time_sentence(row.stability)
                    out.print(Text(shown(f"{row.scheduler}: {said}.")))
        if requests and any(row.stages for row in cell.rows):
            out.print("Queue time and service time of requests:")
            out.print(_requests(cell))
    if any(row.has_few(requests=requests) for cell in analysis.cells for row in cell.rows):
        out.print()
        out.print(few_text())
    _show_notes(analysis, out)


def _requests(cell: Cell) -> Any:
    heads = ("scheduler", "of", "queue", "p99", "disk", "p50", "p99", "p99.9", "std dev")
    rows = table(*heads, right=range(2, len(heads)))
    for row in cell.rows:
        for name, of in row.stages.items():
            seen = row.followed[name]
            queue = percentiles_text(of.queue.percentiles_ns, seen)
            disk = percentiles_text(of.disk.percentiles_ns, seen)
            rows.add_row(
                shown(row.scheduler),
                name,
                duration_text(of.queue.mean_ns),
                queue[PERCENTILES.index(RANKED_BY)],
                duration_text(of.disk.mean_ns),
                *disk,
                duration_text(of.disk.stddev_ns),
            )
    return rows


def _over_time(cell: Cell) -> Any:
    rows = table("scheduler", *OVER_TIME, right=range(1, len(OVER_TIME) + 1))
    for row in cell.rows:
        if row.stability is not None:
            rows.add_row(shown(row.scheduler), *over_time_texts(row.stability))
    return rows


def costs_table(costs: Mapping[str, OperationCosts]) -> Table:
    """The costs by scheduler, with a row for each: ten columns of figures would not fit into a
    terminal."""
    texts = {shown(scheduler): costs_texts(one) for scheduler, one in costs.items()}
    rows = table("")
    for scheduler, figures in texts.items():
        # Long names of schedulers are folded, figures never.
        widest = max(map(len, figures))
        rows.add_column(scheduler, justify="right", overflow="fold", min_width=widest)
    for head, *figures in zip(COSTS, *texts.values(), strict=True):
        rows.add_row(head, *figures)
    return rows


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
            shown(row.scheduler),
            number_text(row.rate.estimate),
            number_text(row.ios_per_s),
            duration_text(row.mean_ns),
            *percentiles_text(row.percentiles_ns, row.samples),
            spread_text(row.spread),
        )
    return rows
