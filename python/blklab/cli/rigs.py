"""The options of every command that runs something: where, and what that place can be told."""

from __future__ import annotations

from typing import Annotated

import typer

from blklab import rigs
from blklab.api.rigs import RigSpec
from blklab.cli import complete

RigName = Annotated[str, typer.Option("--rig", help=rigs.HELP, autocompletion=complete.rig)]
KernelName = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        help="With --rig kernel: the kernel's name; see: blklab kernel list. "
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
CacheState = Annotated[
    str | None,
    typer.Option(
        "--cache",
        help="With --rig live: page cache when a run begins: cold (empty) "
        "or warm (all files). [default: cold]",
        autocompletion=complete.cache,
    ),
]
WriteDevice = Annotated[
    bool,
    typer.Option(
        "--write-device",
        help="With --rig live: the job may write to the device itself, if it is not in use and "
        "holds no known data.",
    ),
]
Overwrite = Annotated[
    str | None,
    typer.Option(
        "--overwrite",
        metavar="ID",
        help="With --rig live: the job may write to the device with this full id if it is not in "
        "use. All its data is lost.",
    ),
]
TraceLatency = Annotated[
    bool,
    typer.Option(
        "--trace-latency",
        help="With --rig live: measure queue time and service time of each request "
        "from the kernel's block events.",
    ),
]
NoPrecondition = Annotated[
    bool,
    typer.Option(
        "--no-precondition",
        help="With --rig live: do not overwrite the part of a flash device that the jobs use "
        "before the first run.",
    ),
]
HostValues = Annotated[
    list[str] | None,
    typer.Option(
        "--host",
        help="name=value[,...] of the modelled host, see: blklab host; "
        "guest: the host that --rig kernel has.",
        autocompletion=complete.host,
    ),
]
IgnoreUnsupported = Annotated[
    bool, typer.Option(help="Leave out job options that are not simulated.")
]


def spec(
    rig: str,
    *,
    kernel: str | None = None,
    driver: str | None = None,
    cache: str | None = None,
    write_device: bool = False,
    overwrite: str | None = None,
    trace_latency: bool = False,
    no_precondition: bool = False,
) -> RigSpec:
    """The rig that the options name."""
    return RigSpec(
        rig, kernel, driver, cache, write_device, overwrite, trace_latency, not no_precondition
    )
