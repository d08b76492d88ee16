"""``blklab disk``: a disk model as a block device of this machine, through ublk.

The work is `blklab-disk`'s, which takes this process's place: what it says is what the user
sees, and signals reach it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from blklab.base import binaries
from blklab.cli import complete
from blklab.cli.models import DISK_HELP, DataPlace, PlatterSeed
from blklab.rigs.disk_data import DiskData

_UBLK = Path("/dev/ublk-control")

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
    from blklab.domain import core, specs

    model = specs.disk(disk)
    limits = core.describe_disk(model)["limits"]
    file = model.file
    words = [
        "create",
        f"--disk={file.name if file.in_core else file.path}",
        f"--data={data}",
        f"--seed={seed}",
    ]
    words += [f"--set={key}={value}" for key, value in model.overrides]
    if number is not None:
        words.append(f"--id={number}")
    # Without ublk, blklab-disk says so, and there is to be no file.
    if data not in ("memory", "none") and _UBLK.exists():
        kept = DiskData(data, limits["capacity_bytes"])
        # blklab-disk has it from now on, and with it the lock.
        os.set_inheritable(kept.fileno(), True)
    _become(words)


@app.command("list")
def listed() -> None:
    """List all ublk devices of this machine."""
    _become(["list"])


@app.command()
def remove(
    number: Annotated[int, typer.Argument(metavar="N", min=0, help="The N of /dev/ublkbN.")],
) -> None:
    """Remove a device and its server; also deletes leftovers of a killed server."""
    _become(["remove", str(number)])


def _become(words: list[str]) -> NoReturn:
    """Turn into blklab-disk."""
    program = binaries.find("blklab-disk")
    sys.stdout.flush()
    os.execv(program, ["blklab-disk", *words])
