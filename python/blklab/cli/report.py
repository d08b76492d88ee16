"""``blklab report``: draw the report again from kept results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from blklab.cli import complete
from blklab.cli.listening import Terminal
from blklab.cli.resuming import StoreName

if TYPE_CHECKING:
    from blklab.api.compare import Objective


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
    from blklab.api.results import write_report

    page = write_report(
        results,
        objective=cast("Objective | None", objective),
        out=out,
        store=store,
        listener=Terminal(),
    )
    print(f"Report: {page}")
