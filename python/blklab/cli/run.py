"""``blklab run``: a whole study, and whether what was published comes out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import blklab
from blklab import study as studies
from blklab.base.limits import JOBS_DEFAULT, JOBS_MAX, REPEATS_MAX
from blklab.cli import complete, console, resuming
from blklab.cli.listening import Terminal
from blklab.cli.resuming import NoKeep, Resume, StoreName
from blklab.cli.rigs import (
    CacheState,
    NoPrecondition,
    Overwrite,
    TraceLatency,
    WriteDevice,
    spec,
)
from blklab.errors import InputError
from blklab.store import ids


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
    out: Annotated[
        Path | None,
        typer.Option(help="Directory for the report and all results. [default: reports/STUDY]"),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, max=JOBS_MAX, help="Maximum parallel runs; default: one per CPU.")
    ] = JOBS_DEFAULT,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print only the results, as JSON, on stdout."),
    ] = False,
    store: StoreName = None,
    no_keep: NoKeep = False,
    resume: Resume = False,
) -> None:
    """Run a study and compare the published with the measured."""
    from blklab.cli import judgements
    from blklab.study import kept_files

    shared: dict[str, Any] = {"store": store, "max_parallel": jobs, "listener": Terminal()}
    if resume:
        resuming.check(context, resume, "study")
        number = None if study is None else ids.number(study)
        found = blklab.resume_study(number, out=out, **shared)
    elif study is None:
        raise InputError("which study? See: blklab studies")
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
            out=out or Path("reports") / studies.find(study).name,
            keep=not no_keep,
            **shared,
        )
    page = None if found.directory is None else found.directory / kept_files.PAGE
    if as_json:
        report = {"study": found.study.name, "kept": found.kept, "report": page and str(page)}
        summary = kept_files.summary(found.outcomes, found.judgements)
        console.print_json(report | summary)
    else:
        judgements.show(found.study, found.outcomes, found.judgements, page)
