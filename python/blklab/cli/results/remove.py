"""``blklab results remove``: forget comparisons."""

from __future__ import annotations

from typing import Annotated

import typer

from blklab.cli import complete, console
from blklab.cli.listening import Terminal
from blklab.cli.resuming import StoreName


def remove(
    numbers: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Which.", autocompletion=complete.kept)
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    store: StoreName = None,
) -> None:
    """Remove comparisons with all their runs; it cannot be undone."""
    from blklab.api.results import remove_results
    from blklab.store import ids

    wanted = [number for text in numbers for number in ids.numbers(text)]
    removed = remove_results(wanted, store=store, listener=Terminal())
    if as_json:
        console.print_json({"removed": removed})
    else:
        print(f"removed: {', '.join(map(str, removed))}")
