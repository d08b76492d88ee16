"""The options of every command that has one disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blklab.cli import complete

DISK_HELP = "Disk model: name or file.toml[:key=value,...]."
TARGET_HELP = f"{DISK_HELP} With --rig live: a directory (test files are made there) or a device."

DiskName = Annotated[str, typer.Option("--disk", help=DISK_HELP, autocompletion=complete.disk)]
TargetName = Annotated[str, typer.Option("--disk", help=TARGET_HELP, autocompletion=complete.disk)]
ShareOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--share",
        metavar="DIR",
        help="A directory or file that the guest can read; repeatable.",
    ),
]
DataPlace = Annotated[
    str,
    typer.Option(
        "--data",
        metavar="memory|none|FILE",
        help="Where the disk's data are: in memory, in a sparse file that stays (a new one, "
        "or one that blklab made), or nowhere (reads give zeros).",
    ),
]
PlatterSeed = Annotated[
    int,
    typer.Option("--seed", min=0, max=2**63 - 1, help="Seed of the platter's position."),
]
