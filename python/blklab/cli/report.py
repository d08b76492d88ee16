"""``blklab report``: draw the report again from kept results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    results: Annotated[Path, typer.Argument(help="results.json, or the directory it lies in.")],
    objective: Annotated[str, typer.Option(help="throughput, latency or both.")] = "both",
    out: Annotated[Path | None, typer.Option(help="The page to write; default: beside it.")] = None,
) -> None:
    """Make the report again from results.json, without running anything."""
    from blklab import report as pages
    from blklab.cli.compare import checked_objective
    from blklab.compare import store
    from blklab.compare.analyse import analyse
    from blklab.files import write_whole

    kept = store.load(results)
    answers = analyse(kept.runs, checked_objective(objective))
    directory = results if results.is_dir() else results.parent
    page = out or directory / "report.html"
    write_whole(page, pages.render(kept, answers))
    print(f"Report: {page}")
