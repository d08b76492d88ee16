"""``blklab restore``: undo what a killed blklab has left on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

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
    from blklab.api import machine

    if forget is not None:
        print(machine.forget(forget))
        return
    found = machine.restore()
    for line in (*found.done, *found.busy):
        print(line)
    if found.problems:
        raise RunError("; ".join(found.problems))
    if not (found.done or found.busy):
        print("nothing to restore")
