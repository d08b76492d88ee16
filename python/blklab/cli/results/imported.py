"""``blklab results import``: comparisons that another machine has exported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blklab.cli import console
from blklab.cli.resuming import StoreName


def imported(
    file: Annotated[Path, typer.Argument(help="A JSON file of 'blklab results export'.")],
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    store: StoreName = None,
) -> None:
    """Import another machine's export, completely or not at all."""
    from blklab.store import exchange, importing, place
    from blklab.store.opening import open_store

    several = exchange.read(file)
    kept = open_store(place.find(store), durable=True, tell=console.print_note)
    new, old = importing.put(kept, several)
    if as_json:
        console.print_json({"imported": new, "there_already": old})
        return
    if new:
        print(f"imported as {', '.join(map(str, new))}")
    if old:
        print(f"already there: {', '.join(map(str, old))}")
    if not new and not old:
        print("the export is empty")
