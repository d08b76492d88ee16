"""``blklab fio``: one job file, once, printing what fio prints."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from blklab import programs
from blklab.base.files import check_files, write_whole
from blklab.cli import complete, console, keeping
from blklab.cli.keeping import NoKeep, StoreName
from blklab.cli.models import TargetName
from blklab.cli.progress import watching
from blklab.cli.rigs import (
    CacheState,
    DriverName,
    HostValues,
    IgnoreUnsupported,
    KernelName,
    NoPrecondition,
    Overwrite,
    RigName,
    TraceLatency,
    WriteDevice,
    options,
)
from blklab.domain.comparison import Setup
from blklab.errors import InputError
from blklab.experiment.plan import plan
from blklab.rigs import rig as rig_of


def fio(
    job: Annotated[
        str,
        typer.Argument(
            help="A fio job file, or the name of a workload.", autocompletion=complete.workload
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
) -> None:
    """Run one fio job file once and print what fio prints; the result is stored, see: blklab
    results."""
    from blklab import fio as formats
    from blklab.domain import core, specs
    from blklab.fio.status import report

    chosen = formats.formats(output_format)
    if output is not None:
        check_files(output)
    place = rig_of(
        rig, options(kernel, driver, cache, write_device, overwrite, trace_latency, no_precondition)
    )
    model = place.find_disk(disk)
    entry = specs.workload(job)
    if programs.is_program(entry):
        raise InputError(
            f"{entry.name}: is not a fio job; to run it once: blklab compare --rig live "
            f"--workload {entry.name} --scheduler NAME --repeats 1 --disk DIRECTORY"
        )
    changed = specs.host(host or ())
    setup = Setup((model,), (entry,), (scheduler,), 1, seed, changed, ignore_unsupported)
    [planned] = plan(setup)
    real = place.name == "live"
    console.print_ignored(core.ignored_options(entry, ignore_unsupported, real=real))
    shared = dict(core.describe_job(entry, ignore_unsupported, real=real)["global"])
    single = None if no_keep else keeping.begin_single(store, setup, place)
    with place.prepared([planned.experiment], console.print_note), watching(place):
        begun_at = datetime.now(UTC)
        result = place.run(planned.experiment)
        ended_at = datetime.now(UTC)
    if single is not None:
        keeping.end_single(single, planned, result, begun_at, ended_at)
    console.print_notes(filter(None, [place.describe()["text"], *result.notes]))
    told = report(
        result,
        model.file.name,
        shared,
        requests=trace_latency,
        ended_at=ended_at if real else None,
    )
    text = formats.render(told, chosen)
    if output is None:
        print(text, end="")
    else:
        write_whole(output, text)
