"""``blklab restore``: undo what a killed blklab has left on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from blklab.base.journal import Journal, default_directory
from blklab.errors import RunError


def restore(
    forget: Annotated[
        str | None,
        typer.Option(
            help="Discard this disk's saved settings and keep the current ones; or discard the "
            "record of this directory of test files.",
            metavar="DISK|DIRECTORY",
        ),
    ] = None,
) -> None:
    """Restore disk settings and remove test files that a killed blklab left."""
    from blklab.rigs.live import leftovers

    journal = Journal(default_directory())
    if forget is not None:
        print(leftovers.forget(journal, forget))
        return
    found = leftovers.restore(journal)
    for line in (*found.done, *found.busy):
        print(line)
    if found.problems:
        raise RunError("; ".join(found.problems))
    if not (found.done or found.busy):
        print("nothing to restore")
