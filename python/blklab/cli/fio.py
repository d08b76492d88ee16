"""``blklab fio``: one job file, once, printing what fio prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blklab.cli import complete
from blklab.cli.models import TargetName
from blklab.cli.rigs import (
    CacheState,
    DriverName,
    HostValues,
    IgnoreUnsupported,
    KernelName,
    Overwrite,
    RigName,
    WriteDevice,
    options,
)


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
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="The same seed gives the same result.")
    ] = 1,
    output_format: Annotated[
        str, typer.Option(help="normal, json, json+ or terse, as fio's; several with commas.")
    ] = "normal",
    output: Annotated[Path | None, typer.Option(help="Write there instead of stdout.")] = None,
    host: HostValues = None,
    ignore_unsupported: IgnoreUnsupported = False,
) -> None:
    """Run one fio job file once and print what fio prints."""
    from blklab import fio as formats
    from blklab import programs, specs
    from blklab.cli import console
    from blklab.cli.progress import watching
    from blklab.errors import InputError
    from blklab.files import write_whole
    from blklab.fio.status import report
    from blklab.rigs import Experiment, sim
    from blklab.rigs import rig as rig_of

    chosen = formats.formats(output_format)
    place = rig_of(rig, options(kernel, driver, cache, write_device, overwrite))
    model = place.find_disk(disk)
    entry = specs.workload(job)
    if programs.is_program(entry):
        raise InputError(
            f"{entry.name}: is no job of fio's; to run it once: blklab compare --rig live "
            f"--workload {entry.name} --scheduler NAME --repeats 1 --disk DIRECTORY"
        )
    experiment = Experiment(
        entry, model, scheduler, seed, specs.host(host or ()), ignore_unsupported
    )
    console.print_ignored(sim.ignored_options(entry, ignore_unsupported))
    shared = dict(sim.describe_job(entry, ignore_unsupported)["global"])
    tell = console.print_note
    with place.prepared([experiment], tell), watching(place):
        result = place.run(experiment)
    console.print_notes(filter(None, [place.describe()["text"], *result.notes]))
    text = formats.render(report(result, model.file.name, shared), chosen)
    if output is None:
        print(text, end="")
    else:
        write_whole(output, text)
