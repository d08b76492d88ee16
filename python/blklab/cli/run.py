"""``blklab run``: a whole study, and whether what was published comes out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from blklab.cli import complete


def run(
    study: Annotated[
        str,
        typer.Argument(
            help="A study's name, see: blklab studies; or any study file (.toml).",
            autocompletion=complete.study,
        ),
    ],
    rig: Annotated[
        str | None,
        typer.Option(
            help="Run all parts there that can. [default: each part on its own first rig]",
            autocompletion=complete.rig,
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(min=1, help="Runs of each, with other seeds. [default: the study's]"),
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
        int, typer.Option(min=1, help="Runs at the same time; default: one per CPU.")
    ] = len(os.sched_getaffinity(0)),
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print what came out as JSON on stdout, nothing else."),
    ] = False,
) -> None:
    """Run a study and set what was published beside what is measured."""
    from blklab import study as studies
    from blklab.cli import console, judgements
    from blklab.cli.kernel import steps
    from blklab.cli.progress import progress
    from blklab.files import check_directory, write_together
    from blklab.study import kernels, store
    from blklab.study.judge import judge
    from blklab.study.plan import count, plan
    from blklab.study.run import run as run_parts

    chosen = studies.find(study)
    directory = out or Path("reports") / chosen.name
    check_directory(directory)
    planned = plan(chosen, rig, repeats, seed)
    parts = sum(part.setup is not None for part in planned)
    built: list[kernels.BuiltKernel] = []
    if kernels.needed(planned):
        with steps.shown() as told:
            built = kernels.build_all(chosen, planned, told)
    with progress(count(planned), f"{parts} of {len(planned)} parts of {chosen.name}") as tick:
        outcomes = run_parts(planned, built, jobs, tick, console.print_note)
    found = judge(chosen, outcomes)
    write_together(store.texts(chosen, outcomes, found, directory))
    if as_json:
        report = {"study": chosen.name, "report": str(directory / "report.html")}
        console.print_json(report | store.summary(outcomes, found))
    else:
        judgements.show(chosen, outcomes, found, directory / "report.html")
