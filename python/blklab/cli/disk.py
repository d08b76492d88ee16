"""``blklab disk``: a disk model as a block device of this machine, through ublk.

The program `blklab-disk` replaces this process: the user sees its output, and signals reach it.
"""

from __future__ import annotations

from typing import Annotated

import typer

import blklab
from blklab.cli import complete
from blklab.cli.options import DISK_HELP, DataPlace, PlatterSeed

app = typer.Typer(
    name="disk",
    help="Make a modelled disk a block device of this machine (needs root and ublk).",
    rich_markup_mode=None,
    add_completion=False,
)


@app.callback(invoke_without_command=True)
def group(context: typer.Context) -> None:
    """Make a modelled disk a block device of this machine (needs root and ublk)."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def create(
    disk: Annotated[str, typer.Argument(help=DISK_HELP, autocompletion=complete.disk)],
    data: DataPlace = "memory",
    number: Annotated[
        int | None,
        typer.Option(
            "--id",
            min=0,
            max=(1 << 20) - 1,
            help="The N of /dev/ublkbN. [default: the first free one]",
        ),
    ] = None,
    seed: PlatterSeed = 1,
) -> None:
    """Make /dev/ublkbN and serve it until Ctrl-C; then print its counters as JSON."""
    blklab.serve_disk(disk, data=data, number=number, seed=seed).become()


@app.command("list")
def listed() -> None:
    """List all ublk devices of this machine."""
    blklab.served_disks().become()


@app.command()
def remove(
    number: Annotated[int, typer.Argument(metavar="N", min=0, help="The N of /dev/ublkbN.")],
) -> None:
    """Remove a device and its server; also deletes leftovers of a killed server."""
    blklab.remove_served_disk(number).become()
