"""``blklab report``: draw the report again from kept results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blklab.base.files import write_together, write_whole
from blklab.base.text import shown
from blklab.cli import complete, console
from blklab.cli.results.opening import opened
from blklab.cli.resuming import StoreName
from blklab.errors import InputError


def report(
    results: Annotated[
        str,
        typer.Argument(
            help="The number of a comparison, see: blklab results; results.json, or its "
            "directory; the directory of a study.",
            autocompletion=complete.kept,
        ),
    ],
    objective: Annotated[
        str | None,
        typer.Option(
            help="throughput, latency or both; a study has its own. [default: the comparison's "
            "own; both, for a directory]",
            autocompletion=complete.objective,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The page to write (for a study the directory); default: beside it, for a number "
            "reports/NUMBER/report.html."
        ),
    ] = None,
    store: StoreName = None,
) -> None:
    """Write the report again from stored results, without running anything."""
    from blklab.api.compare import checked_objective
    from blklab.study import kept_files as studies

    wanted = checked_objective(objective) if objective else None
    path = Path(results)
    if store is not None and not results.isdigit():
        raise InputError(f"--store: goes with a number; {shown(results)} is a path")
    if results.isdigit():
        page = _of_number(results, wanted, out, store)
    elif (path / studies.FILE).is_file():
        if wanted is not None:
            raise InputError("--objective: each part of a study has its own")
        page = _of_study(path, out or path)
    else:
        page = _of_file(path, wanted or "both", out)
    print(f"Report: {page}")


def _of_number(number: str, objective: str | None, out: Path | None, store: str | None) -> Path:
    from blklab import report as pages
    from blklab.experiment.analyse import analyse
    from blklab.store import ids, read

    kept = opened(store)
    found = read.comparison(kept, ids.number(number), tell=console.print_note)
    results, row = found.results(), found.listed
    if not results.runs:
        raise InputError(f"{number}: no repeat is complete yet, there is nothing to compare")
    answers = analyse(results.runs, objective or row.objective, anytime=results.anytime)
    title = f"{row.study}: {row.part}" if row.study else None
    page = out or Path("reports") / number / "report.html"
    write_whole(page, pages.render(results, answers, title=title))
    return page


def _of_study(directory: Path, out: Path) -> Path:
    from blklab.report.study import texts
    from blklab.study import kept_files as studies
    from blklab.study.judge import judge

    study, outcomes = studies.load(directory)
    write_together(texts(study, outcomes, judge(study, outcomes), out))
    return out / "report.html"


def _of_file(path: Path, objective: str, out: Path | None) -> Path:
    from blklab import report as pages
    from blklab.domain import results_file
    from blklab.experiment.analyse import analyse

    kept = results_file.load(path)
    page = out or (path if path.is_dir() else path.parent) / "report.html"
    answers = analyse(kept.runs, objective, anytime=kept.anytime)
    write_whole(page, pages.render(kept, answers))
    return page
