"""``blklab report``: draw the report again from kept results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    results: Annotated[
        Path,
        typer.Argument(help="results.json, or the directory it lies in; the directory of a study."),
    ],
    objective: Annotated[
        str, typer.Option(help="throughput, latency or both; a study has its own.")
    ] = "both",
    out: Annotated[
        Path | None,
        typer.Option(help="The page to write (of a study the directory); default: beside it."),
    ] = None,
) -> None:
    """Make the report again from results.json, without running anything."""
    from blklab import report as pages
    from blklab.cli.compare import checked_objective
    from blklab.compare import store
    from blklab.compare.analyse import analyse
    from blklab.files import write_together, write_whole
    from blklab.study import store as studies
    from blklab.study.judge import judge

    if (results / studies.FILE).is_file():
        study, outcomes = studies.load(results)
        write_together(studies.texts(study, outcomes, judge(study, outcomes), out or results))
        print(f"Report: {(out or results) / 'report.html'}")
        return
    kept = store.load(results)
    answers = analyse(kept.runs, checked_objective(objective), anytime=kept.anytime)
    directory = results if results.is_dir() else results.parent
    page = out or directory / "report.html"
    write_whole(page, pages.render(kept, answers))
    print(f"Report: {page}")
