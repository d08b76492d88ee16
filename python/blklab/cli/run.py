"""``blklab run``: runs a whole study and checks the published statements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import blklab
from blklab.base.limits import JOBS_DEFAULT, JOBS_MAX, REPEATS_MAX
from blklab.cli import complete, console
from blklab.cli.listening import Running, Terminal
from blklab.cli.options import (
    CacheState,
    NoKeep,
    NoPrecondition,
    OnPlace,
    Overwrite,
    PluginFiles,
    Resume,
    StoreName,
    TraceLatency,
    WriteDevice,
    check_jobs,
    check_resume,
    spec,
    use_plugins,
)
from blklab.domain.defaults import LOCAL
from blklab.domain.stored import number as number_of
from blklab.errors import InputError


def run(
    context: typer.Context,
    study: Annotated[
        str | None,
        typer.Argument(
            help="A study's name, see: blklab studies; or any study file (.toml). With --resume: "
            "the number of one of its comparisons.",
            autocompletion=complete.study,
        ),
    ] = None,
    rig: Annotated[
        str | None,
        typer.Option(
            help="Run all parts that can run on this rig. [default: each part's first rig]",
            autocompletion=complete.rig,
        ),
    ] = None,
    disk: Annotated[
        str | None,
        typer.Option(
            metavar="DIRECTORY|DEVICE",
            help="With --rig live: run here instead of on the study's disk models. In a "
            "directory blklab makes test files.",
        ),
    ] = None,
    cache: CacheState = None,
    write_device: WriteDevice = False,
    overwrite: Overwrite = None,
    trace_latency: TraceLatency = False,
    no_precondition: NoPrecondition = False,
    repeats: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=REPEATS_MAX,
            help="Number of repeats, each with its own seed. [default: the study's]",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=2**62, help="Seed of the first repeat. [default: the study's]"),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="The study's small workloads, each once."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Directory for the report and all results. [default: reports/STUDY]"),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, max=JOBS_MAX, help="Maximum parallel runs; default: one per CPU.")
    ] = JOBS_DEFAULT,
    on: OnPlace = LOCAL,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print only the results, as JSON, on stdout."),
    ] = False,
    store: StoreName = None,
    no_keep: NoKeep = False,
    resume: Resume = False,
    plugin: PluginFiles = None,
) -> None:
    """Run a study and compare the published with the measured."""
    from blklab.cli import judgements

    use_plugins(plugin)

    check_jobs(context, on)
    shared: Running = {
        "store": store,
        "max_parallel": jobs,
        "on": on,
        "listener": Terminal(),
    }
    if resume:
        check_resume(context, resume, "study")
        number = None if study is None else number_of(study)
        found = blklab.resume_study(number, out=out, **shared)
    elif study is None:
        raise InputError("expected the name of a study; see: blklab studies")
    else:
        found = blklab.run_study(
            study,
            rig=spec(
                rig or "",
                cache=cache,
                write_device=write_device,
                overwrite=overwrite,
                trace_latency=trace_latency,
                no_precondition=no_precondition,
            ),
            disk=disk,
            repeats=repeats,
            seed=seed,
            quick=quick,
            out=out or Path("reports") / blklab.find_study(study).name,
            keep=not no_keep,
            **shared,
        )
    if as_json:
        page = None if found.page is None else str(found.page)
        report = {"study": found.study.name, "kept": found.kept, "report": page}
        console.print_json(report | found.summary())
    else:
        judgements.show(found)
