"""``blklab compare``: which scheduler suits these disks and loads?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blklab.base.files import check_files, write_together
from blklab.base.limits import JOBS_DEFAULT, JOBS_MAX, REPEATS_MAX
from blklab.base.units import duration_text
from blklab.cli import complete, console, keeping
from blklab.cli.keeping import NoKeep, Resume, StoreName
from blklab.cli.models import TARGET_HELP
from blklab.cli.progress import progress
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
from blklab.errors import InputError, nearest
from blklab.experiment import defaults
from blklab.experiment.plan import plan
from blklab.rigs import rig as rig_of

if TYPE_CHECKING:
    from blklab.cli.keeping import Work
    from blklab.domain.comparison import Setup
    from blklab.domain.events import Keeper
    from blklab.domain.results_file import Results

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
            "options, or with --rig live a program: sqlite[:parameter=value,...]; "
            "numjobs=4..256 runs 4, 8, 16 and so on to 256; repeatable. "
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
    repeats: Annotated[
        int, typer.Option(min=1, max=REPEATS_MAX, help="Number of repeats, each with its own seed.")
    ] = 5,
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
    rig: RigName = "sim",
    kernel: KernelName = None,
    driver: DriverName = None,
    cache: CacheState = None,
    write_device: WriteDevice = False,
    overwrite: Overwrite = None,
    trace_latency: TraceLatency = False,
    no_precondition: NoPrecondition = False,
    host: HostValues = None,
    ignore_unsupported: IgnoreUnsupported = False,
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
) -> None:
    """Run every scheduler on every disk under every workload, and say which is best."""
    from blklab.domain import specs
    from blklab.experiment import budget as budgets

    keeping.check_resume(context, resume, "number")
    checked_objective(objective)
    if budget is not None:
        budgets.seconds(budget)
        if keeping.is_told(context, "repeats"):
            raise InputError("--repeats: not with --budget, which decides the number of repeats")
    if resume:
        work = keeping.resumed(store, number)
        told = {name for name in ("out", "objective") if keeping.is_told(context, name)}
        out = out if "out" in told else Path(work.request.out)
        objective = objective if "objective" in told else work.request.objective
        check_files(*_files(out))
    else:
        check_files(*_files(out))
        place_told = options(
            kernel, driver, cache, write_device, overwrite, trace_latency, no_precondition
        )
        place = rig_of(rig, place_told)
        usual = defaults.schedulers(rig)
        disks = tuple(place.find_disk(spec) for spec in disk or defaults.disks(rig))
        setup = Setup(
            disks,
            specs.workloads(workload or defaults.WORKLOADS),
            tuple(scheduler or usual),
            1 if budget else repeats,
            seed,
            specs.host(host or ()),
            ignore_unsupported,
            () if scheduler else defaults.left_out(disks, usual),
        )
        out_text = str(out.absolute())
        work = keeping.new(
            store, setup, place, place_told, objective, out_text, budget, no_keep=no_keep
        )
    keepers = [work.keeper] if work.keeper else []
    with keeping.telling(keepers, "compare"):
        results = _measured(work, jobs, objective, keepers)
    [keeper] = keepers
    _show(results, objective, out, keeper, as_json=as_json, verbose=verbose)


def _measured(work: Work, jobs: int, objective: str, keepers: list[Keeper]) -> Results:
    """The results; `keepers` has the one that keeps them as soon as there is something to keep."""
    from blklab.domain.results_file import Results
    from blklab.execute import carry_out
    from blklab.experiment import budget as budgets

    setup, rig, budget = work.request.setup, work.rig, work.request.budget
    kept = work.keeper.kept if work.keeper else {}
    repeated = budgets.blocks(setup) if budget else None
    runs = repeated[0] if repeated else plan(setup)
    left = [planned for number, planned in enumerate(runs) if number not in kept]
    with rig.prepared([planned.experiment for planned in left], console.print_note):
        keeper = keeping.begin(work)
        keepers[:] = [keeper]
        if budget:
            limit = duration_text(budgets.seconds(budget) * 1e9)
            console.print_note(f"repeated until the answer is known, for {limit} at most")
        if len(setup.schedulers) > 1 and (budget or rig.name == "live"):
            count = None if budget else setup.repeats
            told = budgets.outlook(count, len(setup.schedulers), anytime=bool(budget))
            console.print_note(told)
        with progress(None if budget else len(left), _question(setup, budget)) as tick:
            if repeated is None:
                return Results(work.described, tuple(carry_out(runs, rig, jobs, tick, keeper)))
            limit_s = budgets.seconds(budget)
            return budgets.execute_within(
                repeated, rig, limit_s, objective, jobs, tick, keeper, work.described
            )


def _show(
    results: Results,
    objective: str,
    out: Path,
    keeper: Keeper,
    *,
    as_json: bool,
    verbose: bool,
) -> None:
    from blklab import report as pages
    from blklab.cli import comparison, console, keeping
    from blklab.domain import results_file
    from blklab.experiment.analyse import analyse
    from blklab.experiment.summary import summarise

    answers = analyse(results.runs, objective, anytime=results.anytime)
    document, page = _files(out)
    with keeping.written([keeper], "compare"):
        texts = {document: results_file.to_text(results), page: pages.render(results, answers)}
        write_together(texts)
    if as_json:
        kept = int(keeper.name) if keeper.name else None
        head = {"setup": results.setup, "kept": kept}
        console.print_json(head | summarise(answers) | {"report": str(page)})
    else:
        comparison.show(answers, results.setup, page, verbose=verbose)


def _files(out: Path) -> tuple[Path, Path]:
    """What is written into that directory: the results and the page."""
    return out / "results.json", out / "report.html"


def checked_objective(objective: str) -> str:
    """The objective, if it is one; InputError otherwise."""
    from blklab.experiment.analyse import OBJECTIVES

    if objective not in OBJECTIVES:
        raise InputError(f"--objective: no '{objective}'{nearest(objective, OBJECTIVES)}")
    return objective


def _question(setup: Setup, budget: str) -> str:
    counts = {
        "scheduler": len(setup.schedulers),
        "workload": len(setup.workloads),
        "disk": len(setup.disks),
        "repeat": setup.repeats,
    }
    if budget:
        del counts["repeat"]
    return " x ".join(f"{count} {what}{'s' * (count != 1)}" for what, count in counts.items())
