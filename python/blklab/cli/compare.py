"""``blklab compare``: which scheduler suits these disks and loads?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blklab.cli import complete
from blklab.cli.models import TARGET_HELP
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
from blklab.compare import defaults

if TYPE_CHECKING:
    from blklab.compare.plan import Setup

_OUT = Path("reports/compare")


def compare(
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
            help="Workload: name or any .fio file; repeatable. "
            f"[default: {', '.join(defaults.WORKLOADS)}]",
            autocompletion=complete.workload,
        ),
    ] = None,
    scheduler: Annotated[
        list[str] | None,
        typer.Option(
            help="name[:tunable=value,...], repeatable: mq-deadline:fifo_batch=1,read_expire=200. "
            f"[default: {', '.join(defaults.schedulers('kernel'))}; simulated also cfq, on disks "
            "with one hardware queue]",
            autocompletion=complete.scheduler,
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each, with other seeds.")] = 5,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Instead of --repeats: repeat until the answer is known, but not longer than "
            "90s, 10m, 2h.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of the first repeat.")] = 1,
    objective: Annotated[
        str,
        typer.Option(
            help="What to rank by: throughput, latency or both.",
            autocompletion=complete.objective,
        ),
    ] = "both",
    out: Annotated[Path, typer.Option(help="Directory for report.html and results.json.")] = _OUT,
    jobs: Annotated[
        int, typer.Option(min=1, help="Runs at the same time; default: one per CPU.")
    ] = len(os.sched_getaffinity(0)),
    rig: RigName = "sim",
    kernel: KernelName = None,
    driver: DriverName = None,
    cache: CacheState = None,
    write_device: WriteDevice = False,
    overwrite: Overwrite = None,
    host: HostValues = None,
    ignore_unsupported: IgnoreUnsupported = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print rankings and verdicts as JSON on stdout, nothing else."),
    ] = False,
) -> None:
    """Run every scheduler on every disk under every load, and say which suits best."""
    from blklab import report as pages
    from blklab import specs
    from blklab.cli import comparison, console
    from blklab.cli.progress import progress
    from blklab.compare import budget as budgets
    from blklab.compare import store
    from blklab.compare.analyse import analyse
    from blklab.compare.describe import describe
    from blklab.compare.execute import execute
    from blklab.compare.plan import Setup, plan
    from blklab.compare.summary import summarise
    from blklab.files import check_directory, write_together
    from blklab.rigs import rig as rig_of

    checked_objective(objective)
    check_directory(out)
    place = rig_of(rig, options(kernel, driver, cache, write_device, overwrite))
    disks = tuple(place.find_disk(spec) for spec in disk or defaults.disks(rig))
    usual = defaults.schedulers(rig)
    setup = Setup(
        disks,
        tuple(specs.workload(spec) for spec in workload or defaults.WORKLOADS),
        tuple(scheduler or usual),
        repeats,
        seed,
        specs.host(host or ()),
        ignore_unsupported,
        () if scheduler else defaults.left_out(disks, usual),
    )
    described = describe(setup, place)
    for load in described["workloads"]:
        console.print_ignored(load["ignored"])
    budget_s = None if budget is None else budgets.seconds(budget)
    repeated = budgets.blocks(setup) if budget_s else None
    runs = repeated[0] if repeated else plan(setup)
    experiments = [planned.experiment for planned in runs]
    with place.prepared(experiments, console.print_note):
        if repeated:
            console.print_note(f"repeated until the answer is known, for {budget} at most")
        if repeated or rig == "live":
            count = None if repeated else repeats
            told = budgets.outlook(count, len(setup.schedulers), anytime=bool(repeated))
            console.print_note(told)
        with progress(None if repeated else len(runs), _question(setup, budget)) as tick:
            if repeated and budget_s:
                measured, stopped = budgets.execute_within(
                    repeated, place, budget_s, objective, jobs, tick
                )
                described |= {"repeats": stopped.repeats, "stopping": budgets.to_json(stopped)}
            else:
                measured = execute(runs, place, jobs, tick)
    results = store.Results(described, tuple(measured))
    answers = analyse(results.runs, objective, anytime=results.anytime)
    page = out / "report.html"
    texts = {
        out / "results.json": store.to_text(results),
        page: pages.render(results, answers),
    }
    write_together(texts)
    if as_json:
        console.print_json({"setup": described} | summarise(answers) | {"report": str(page)})
    else:
        comparison.show(answers, results.setup, page)


def checked_objective(objective: str) -> str:
    """The objective, if it is one; InputError otherwise."""
    from blklab.compare.analyse import OBJECTIVES
    from blklab.errors import InputError, nearest

    if objective not in OBJECTIVES:
        raise InputError(f"--objective: no '{objective}'{nearest(objective, OBJECTIVES)}")
    return objective


def _question(setup: Setup, budget: str | None) -> str:
    counts = {
        "scheduler": len(setup.schedulers),
        "load": len(setup.workloads),
        "disk": len(setup.disks),
        "repeat": setup.repeats,
    }
    if budget is not None:
        del counts["repeat"]
    return " x ".join(f"{count} {what}{'s' * (count != 1)}" for what, count in counts.items())
