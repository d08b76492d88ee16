"""The options of every command that runs something: where, and what that place can be told."""

from __future__ import annotations

from typing import Annotated

import typer

from blklab import rigs
from blklab.cli import complete

RigName = Annotated[str, typer.Option("--rig", help=rigs.HELP, autocompletion=complete.rig)]
KernelName = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        help="With --rig kernel: which, by name; see: blklab kernel list. "
        "[default: the last without changes]",
        autocompletion=complete.kernel,
    ),
]
DriverName = Annotated[
    str | None,
    typer.Option(
        "--driver",
        help="With --rig kernel: fio itself, or native, which is faster and issues exactly "
        "the I/O of the simulator. [default: fio]",
        autocompletion=complete.driver,
    ),
]
HostValues = Annotated[
    list[str] | None,
    typer.Option(
        "--host",
        help="name=value[,...] of the modelled host, see: blklab host.",
        autocompletion=complete.host,
    ),
]
IgnoreUnsupported = Annotated[
    bool, typer.Option(help="Leave out job options that are not simulated.")
]
