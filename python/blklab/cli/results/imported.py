"""``blklab results import``: comparisons that another machine has exported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blklab.cli import console
from blklab.cli.listening import Terminal
from blklab.cli.resuming import StoreName


def imported(
    file: Annotated[Path, typer.Argument(help="A JSON file of 'blklab results export'.")],
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    store: StoreName = None,
) -> None:
    """Import another machine's export, completely or not at all."""
    from blklab.api.results import import_results

    found = import_results(file, store=store, listener=Terminal())
    if as_json:
        console.print_json({"imported": found.new, "there_already": found.there_already})
        return
    if found.new:
        print(f"imported as {', '.join(map(str, found.new))}")
    if found.there_already:
        print(f"already there: {', '.join(map(str, found.there_already))}")
    if not found.new and not found.there_already:
        print("the export is empty")
