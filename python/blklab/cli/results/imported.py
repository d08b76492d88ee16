"""``blklab results import``: comparisons that another machine has exported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blklab.cli import console
from blklab.cli.keeping import StoreName


def imported(
    file: Annotated[Path, typer.Argument(help="What 'blklab results export' wrote as JSON.")],
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    store: StoreName = None,
) -> None:
    """Import what another machine has exported, all of it or nothing."""
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
        print(f"there already: {', '.join(map(str, old))}")
    if not new and not old:
        print("nothing is in it")
