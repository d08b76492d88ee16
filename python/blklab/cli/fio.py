"""``blklab fio``: one job file or recordings, once, printing what fio prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import blklab
from blklab import fio as formats
from blklab.base.files import check_files, write_whole
from blklab.cli import complete
from blklab.cli.listening import Terminal
from blklab.cli.options import (
    CacheState,
    DriverName,
    HostValues,
    IgnoreUnsupported,
    KernelName,
    NoKeep,
    NoPrecondition,
    Overwrite,
    PluginFiles,
    RigName,
    StoreName,
    TargetName,
    TraceLatency,
    WriteDevice,
    spec,
    use_plugins,
)
from blklab.domain import specs


def fio(
    jobs: Annotated[
        list[str],
        typer.Argument(
            metavar="JOB...",
            help="A fio job file, a recording, or a workload's name; recordings beside it or each "
            "other run at the same time.",
            autocompletion=complete.workload,
        ),
    ],
    disk: TargetName,
    scheduler: Annotated[
        str, typer.Option(help="name[:tunable=value,...].", autocompletion=complete.scheduler)
    ] = "none",
    rig: RigName = "sim",
    kernel: KernelName = None,
    driver: DriverName = None,
    cache: CacheState = None,
    write_device: WriteDevice = False,
    overwrite: Overwrite = None,
    trace_latency: TraceLatency = False,
    no_precondition: NoPrecondition = False,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="The same seed gives the same result.")
    ] = 1,
    output_format: Annotated[
        str, typer.Option(help="normal, json, json+ or terse, as in fio; several with commas.")
    ] = "normal",
    output: Annotated[
        Path | None, typer.Option(help="Write to this file instead of stdout.")
    ] = None,
    host: HostValues = None,
    ignore_unsupported: IgnoreUnsupported = False,
    store: StoreName = None,
    no_keep: NoKeep = False,
    plugin: PluginFiles = None,
) -> None:
    """Run one fio job file, or recordings, once and print what fio prints; the result is stored,
    see: blklab results."""
    use_plugins(plugin)
    formats.formats(output_format)
    if output is not None:
        check_files(output)
    ran = blklab.run_job(
        specs.together([specs.workload(job) for job in jobs]),
        disk=disk,
        scheduler=scheduler,
        seed=seed,
        host=specs.host(host or ()),
        ignore_unsupported=ignore_unsupported,
        rig=spec(
            rig,
            kernel=kernel,
            driver=driver,
            cache=cache,
            write_device=write_device,
            overwrite=overwrite,
            trace_latency=trace_latency,
            no_precondition=no_precondition,
        ),
        keep=not no_keep,
        store=store,
        listener=Terminal(),
    )
    text = ran.fio_output(output_format, requests=trace_latency)
    if output is None:
        print(text, end="")
    else:
        write_whole(output, text)
