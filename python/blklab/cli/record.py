"""``blklab record``: the I/O of this machine, or of a simulated run, as a recording."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import blklab
from blklab.base.text import shown
from blklab.base.units import duration_text, size_text
from blklab.cli import complete, rights
from blklab.cli.listening import Terminal
from blklab.cli.options import DriverName, HostValues, IgnoreUnsupported, KernelName, seconds, spec
from blklab.domain import specs
from blklab.errors import InputError


def record(
    out: Annotated[Path, typer.Option(help="The recording to write; must not exist.")],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[JOB | -- COMMAND...]",
            help="With a disk model: a fio job file, a workload, a program, or a trace, which is "
            "replayed. "
            "Else: a command, which is run meanwhile.",
            autocompletion=complete.workload,
        ),
    ] = None,
    disk: Annotated[
        str,
        typer.Option(
            help="A disk of this machine, a directory on it, or a disk model.",
            autocompletion=complete.device,
        ),
    ] = ".",
    for_: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="TIME", help="30s, 10m, 2h. [default: until Ctrl-C, or the command]"
        ),
    ] = None,
    scheduler: Annotated[
        str,
        typer.Option(
            help="Of a disk model: name[:tunable=value,...].", autocompletion=complete.scheduler
        ),
    ] = "none",
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="The same seed gives the same result.")
    ] = 1,
    host: HostValues = None,
    ignore_unsupported: IgnoreUnsupported = False,
    rig: Annotated[
        str,
        typer.Option(help="Of a disk model: sim or kernel.", autocompletion=complete.rig),
    ] = "sim",
    kernel: KernelName = None,
    driver: DriverName = None,
) -> None:
    """Record the I/O of this machine's disk, or of a job or a replayed trace on a disk model.

    With --rig kernel also a real program, by its name, while it is measured. Any command on a disk
    model: blklab kernel run --record FILE -- COMMAND.
    """
    given = words or []
    if blklab.is_disk_here(disk):
        _machine(out, disk, None if for_ is None else seconds("--for", for_), given)
        return
    if for_ is not None:
        raise InputError(f"--for: '{shown(disk)}' is a disk model; its job ends by itself")
    if len(given) != 1:
        raise InputError(
            f"'{shown(disk)}' is a disk model: expected one job to record, found {len(given)}"
        )
    simulated = rights.fewer(_simulated)
    simulated(
        job=given[0],
        out=out,
        disk=disk,
        scheduler=scheduler,
        seed=seed,
        host=host,
        ignore_unsupported=ignore_unsupported,
        rig=rig,
        kernel=kernel,
        driver=driver,
    )


def _simulated(
    job: str,
    out: Path,
    disk: str,
    scheduler: str,
    seed: int,
    host: list[str] | None,
    ignore_unsupported: bool,
    rig: str,
    kernel: str | None,
    driver: str | None,
) -> None:
    result = blklab.record_run(
        job,
        out,
        disk=disk,
        scheduler=scheduler,
        seed=seed,
        host=specs.host(host or ()),
        ignore_unsupported=ignore_unsupported,
        rig=spec(rig, kernel=kernel, driver=driver),
    )
    print(f"Recording: {out} ({duration_text(result.duration_ns)})")


def _machine(out: Path, disk: str, for_s: float | None, command: list[str]) -> None:
    made = blklab.record_machine(out, disk=disk, for_s=for_s, command=command, listener=Terminal())
    size = size_text(made.recording_bytes)
    each = f", {made.recording_bytes / made.ios:.1f} bytes an I/O" if made.ios else ""
    print(f"Recording: {out} ({made.ios} I/Os of {', '.join(made.disks)}, {size}{each})")
    if made.command_code:
        sys.exit(made.command_code if made.command_code > 0 else 128 - made.command_code)
