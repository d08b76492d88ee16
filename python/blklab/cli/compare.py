"""``blklab compare``: which scheduler suits these disks and loads?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import blklab
from blklab.base.limits import JOBS_DEFAULT, JOBS_MAX, REPEATS_MAX
from blklab.cli import complete, console
from blklab.cli.listening import Running, Terminal
from blklab.cli.options import (
    TARGET_HELP,
    CacheState,
    CpuTime,
    DriverName,
    HostValues,
    IgnoreUnsupported,
    KernelName,
    NoKeep,
    NoPrecondition,
    OnPlace,
    Overwrite,
    PluginFiles,
    Resume,
    RigName,
    StoreName,
    TraceLatency,
    WriteDevice,
    check_jobs,
    check_resume,
    is_told,
    spec,
    use_plugins,
)
from blklab.domain import defaults, specs
from blklab.domain.defaults import LOCAL
from blklab.domain.stored import number as number_of

_OUT = Path("reports/compare")


def compare(
    context: typer.Context,
    number: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]",
            help="With --resume: the comparison's number.",
            autocompletion=complete.kept,
        ),
    ] = None,
    disk: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{TARGET_HELP} Repeatable. [default: {', '.join(defaults.DISKS)}]",
            autocompletion=complete.disk,
        ),
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            help="Workload: name or any .fio file, with :option=value,... to change fio's "
            "options, or with --rig kernel or live a program: sqlite[:parameter=value,...], "
            "'command:any command'; "
            "numjobs=4..256 runs 4, 8, 16 and so on to 256; repeatable. "
            f"[default: {', '.join(defaults.WORKLOADS)}]",
            autocompletion=complete.workload,
        ),
    ] = None,
    scheduler: Annotated[
        list[str] | None,
        typer.Option(
            help="name[:tunable=value,...], repeatable: mq-deadline:fifo_batch=1,read_expire=200. "
            f"[default: {', '.join(defaults.LINUX)}; simulated also cfq, on disks "
            "with one hardware queue]",
            autocompletion=complete.scheduler,
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=REPEATS_MAX,
            help="Number of repeats, each with its own seed. "
            "[default: 10; with --exact-disk or --rig live 5]",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Instead of --repeats: repeat until the answer is known, for at most "
            "90s, 10m, 2h.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of the first repeat.")] = 1,
    objective: Annotated[
        str,
        typer.Option(
            help="Rank by throughput, latency or both.",
            autocompletion=complete.objective,
        ),
    ] = "both",
    out: Annotated[Path, typer.Option(help="Directory for report.html and results.json.")] = _OUT,
    jobs: Annotated[
        int, typer.Option(min=1, max=JOBS_MAX, help="Maximum parallel runs; default: one per CPU.")
    ] = JOBS_DEFAULT,
    on: OnPlace = LOCAL,
    rig: RigName = "sim",
    kernel: KernelName = None,
    driver: DriverName = None,
    cpu: CpuTime = None,
    cache: CacheState = None,
    write_device: WriteDevice = False,
    overwrite: Overwrite = None,
    trace_latency: TraceLatency = False,
    no_precondition: NoPrecondition = False,
    host: HostValues = None,
    fs: Annotated[
        list[str] | None,
        typer.Option(
            help="With --rig kernel: the file system of a program, with options of mount and mkfs: "
            "ext4:data=journal,-b=1024; ext4:aged=80 is one after years of use; repeatable. "
            "[default: ext4]",
        ),
    ] = None,
    ignore_unsupported: IgnoreUnsupported = False,
    vary_disk: Annotated[
        bool | None,
        typer.Option(
            "--vary-disk/--exact-disk",
            help="Draw a disk for each repeat from the ranges of its file's estimates, or take the "
            "file's values. [default: vary-disk; real disks are never varied]",
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print every ranking, not only the answer.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print only rankings and verdicts, as JSON, on stdout."),
    ] = False,
    store: StoreName = None,
    no_keep: NoKeep = False,
    resume: Resume = False,
    plugin: PluginFiles = None,
) -> None:
    """Run every scheduler on every disk under every workload, and say which is best."""
    use_plugins(plugin)
    check_resume(context, resume, "number")
    from blklab.api.compare import checked_objective

    ranked_by = checked_objective(objective)
    check_jobs(context, on)
    limits: Running = {
        "store": store,
        "max_parallel": jobs,
        "on": on,
        "listener": Terminal(),
    }
    if resume:
        found = blklab.resume(
            None if number is None else number_of(number),
            out=out if is_told(context, "out") else None,
            objective=ranked_by if is_told(context, "objective") else None,
            **limits,
        )
    else:
        found = blklab.compare(
            disks=disk or (),
            workloads=workload or (),
            schedulers=scheduler or (),
            repeats=repeats,
            budget=budget,
            seed=seed,
            objective=ranked_by,
            rig=spec(
                rig,
                kernel=kernel,
                driver=driver,
                cpu=cpu,
                cache=cache,
                write_device=write_device,
                overwrite=overwrite,
                trace_latency=trace_latency,
                no_precondition=no_precondition,
            ),
            host=specs.host(host or ()),
            ignore_unsupported=ignore_unsupported,
            file_systems=fs or (),
            vary_disk=vary_disk,
            out=out,
            keep=not no_keep,
            **limits,
        )
    from blklab.cli import comparison

    setup = found.results.setup
    if as_json:
        head = {"setup": setup, "kept": found.kept}
        page = None if found.page is None else str(found.page)
        console.print_json(head | found.summary() | {"report": page})
    else:
        comparison.show(found.analysis, setup, found.page, verbose=verbose)
