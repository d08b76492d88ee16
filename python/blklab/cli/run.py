"""``blklab run``: a whole study, and whether what was published comes out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blklab.base.files import check_files, write_together
from blklab.base.limits import JOBS_DEFAULT, JOBS_MAX, REPEATS_MAX
from blklab.cli import complete, console
from blklab.cli.keeping import NoKeep, Resume, StoreName
from blklab.cli.kernel import steps
from blklab.cli.progress import progress
from blklab.cli.rigs import (
    CacheState,
    NoPrecondition,
    Overwrite,
    TraceLatency,
    WriteDevice,
    options,
)
from blklab.errors import InputError
from blklab.store import ids, place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from blklab.domain.events import Keeper
    from blklab.study.kernels import BuiltKernel
    from blklab.study.model import Study
    from blklab.study.plan import PlannedPart
    from blklab.study.run import Ready


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
    from blklab import study as studies
    from blklab.cli import console, judgements, keeping
    from blklab.report.study import texts
    from blklab.study import kept_files as documents
    from blklab.study.judge import judge
    from blklab.study.plan import Asked, count, plan
    from blklab.study.run import run as run_parts

    several: list[Keeper] = []
    begun: Mapping[str, Keeper] | None = None
    kept = None
    if resume:
        keeping.check_resume(context, resume, "study")
        chosen, parts, begun, kept_out = _resumed(store, study)
        several += begun.values()
        directory = out or Path(kept_out)
        check_files(*documents.places(chosen, directory))
    elif study is None:
        raise InputError("which study? See: blklab studies")
    else:
        chosen = studies.find(study)
        directory = out or Path("reports") / chosen.name
        check_files(*documents.places(chosen, directory))
        told = options(None, None, cache, write_device, overwrite, trace_latency, no_precondition)
        parts = _ready(chosen, plan(chosen, Asked(rig, repeats, seed, disk, told)))
        kept = None if no_keep else keeping.opened_for(store, parts)

    def keepers() -> Mapping[str, Keeper]:
        """What is refused before its first run is not kept."""
        nonlocal begun
        if begun is None:
            begun = keeping.begin_study(kept, chosen, parts, str(directory.absolute()))
            several.extend(begun.values())
        return begun

    runs = count(part.planned for part in parts) - sum(len(keeper.kept) for keeper in several)
    there = sum(part.rig is not None for part in parts)
    what = f"{there} of {len(parts)} parts of {chosen.name}"
    with keeping.telling(several, "run"), progress(runs, what) as tick:
        outcomes = run_parts(parts, jobs, tick, keepers, console.print_note)
    found = judge(chosen, outcomes)
    with keeping.written(several, "run"):
        write_together(texts(chosen, outcomes, found, directory))
    if as_json:
        numbers = {name: int(keeper.name) for name, keeper in keepers().items() if keeper.name}
        report = {
            "study": chosen.name,
            "kept": numbers,
            "report": str(directory / "report.html"),
        }
        console.print_json(report | documents.summary(outcomes, found))
    else:
        judgements.show(chosen, outcomes, found, directory / "report.html")


def _ready(study: Study, planned: list[PlannedPart]) -> list[Ready]:
    from blklab.study import kernels
    from blklab.study.run import ready

    built: list[BuiltKernel] = []
    if kernels.needed(planned):
        with steps.shown() as told:
            built = kernels.build_all(study, planned, told)
    return ready(planned, built)


def _resumed(
    store: str | None, number: str | None
) -> tuple[Study, list[Ready], Mapping[str, Keeper], str]:
    from blklab.store.opening import open_store
    from blklab.store.unfinished import left
    from blklab.study import in_store

    kept = open_store(place.find(store), durable=True, make=False, tell=console.print_note)
    found = left(kept, None if number is None else ids.number(number), study=True)
    asked = in_store.kept_study(kept, found.study_id or 0)
    chosen = asked.study()
    parts = _ready(chosen, asked.planned(chosen))
    parts, keepers = in_store.go_on(kept, found.study_id or 0, chosen, parts, asked.out)
    return chosen, parts, keepers, asked.out
