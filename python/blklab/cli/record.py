"""``blklab record``: the I/O of a simulated run as a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import blklab
from blklab.base.units import duration_text
from blklab.cli import complete
from blklab.cli.options import DiskName, HostValues, IgnoreUnsupported
from blklab.domain import specs


def record(
    job: Annotated[
        str,
        typer.Argument(
            help="A fio job file, or the name of a workload.", autocompletion=complete.workload
        ),
    ],
    disk: DiskName,
    out: Annotated[Path, typer.Option(help="The recording to write; must not exist.")],
    scheduler: Annotated[
        str, typer.Option(help="name[:tunable=value,...].", autocompletion=complete.scheduler)
    ] = "none",
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="The same seed gives the same result.")
    ] = 1,
    host: HostValues = None,
    ignore_unsupported: IgnoreUnsupported = False,
) -> None:
    """Run a fio job on the simulator, and record its I/O as it comes to the block layer."""
    result = blklab.record_run(
        job,
        out,
        disk=disk,
        scheduler=scheduler,
        seed=seed,
        host=specs.host(host or ()),
        ignore_unsupported=ignore_unsupported,
    )
    print(f"Recording: {out} ({duration_text(result.duration_ns)})")
