"""``blklab.run_study``: run a published comparison again, and judge the published statements."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab import study as studies
from blklab.api import keeping
from blklab.api.listener import SILENT, Listener
from blklab.base.files import check_files, write_together
from blklab.base.limits import JOBS_DEFAULT
from blklab.domain.defaults import LOCAL
from blklab.domain.events import Keeper
from blklab.domain.experiment import RigSpec
from blklab.errors import StoreError
from blklab.execute import Place, opened
from blklab.experiment.analyse import Analysis, analyse
from blklab.report import study_files
from blklab.store import place
from blklab.store.database import Store
from blklab.store.keep import left
from blklab.store.opening import open_store
from blklab.study import in_store, kept_files, kernels
from blklab.study.judge import Judgement, judge
from blklab.study.model import Outcome, Study
from blklab.study.plan import Asked, PlannedPart, count, plan
from blklab.study.run import Ready, ready
from blklab.study.run import run as run_parts


@dataclass(frozen=True)
class StudyRun:
    """A study that has run."""

    study: Study
    outcomes: tuple[Outcome, ...]
    """The results and the omissions of each part."""
    judgements: tuple[Judgement, ...]
    """For each published statement, whether it is reproduced."""
    kept: Mapping[str, int]
    """The number of each part's comparison in the store."""
    directory: Path | None
    """The directory of ``report.html`` and all results."""

    @property
    def page(self) -> Path | None:
        """The report, if it was written."""
        return None if self.directory is None else self.directory / kept_files.PAGE

    def analyses(self) -> tuple[Analysis | None, ...]:
        """The rankings of each part, as from `blklab.compare`; None for an omitted part."""
        return tuple(
            None if outcome.results is None else analyse(outcome.results.runs, part.objective)
            for part, outcome in zip(self.study.parts, self.outcomes, strict=True)
        )

    def summary(self) -> dict[str, Any]:
        """Rankings, judgements and omissions as plain data; units are in the names."""
        return kept_files.summary(self.study, self.outcomes, self.judgements)


def run_study(
    study: str | os.PathLike[str],
    *,
    rig: str | RigSpec | None = None,
    disk: str | None = None,
    repeats: int | None = None,
    seed: int | None = None,
    quick: bool = False,
    out: str | os.PathLike[str] | None = None,
    keep: bool = False,
    store: str | None = None,
    max_parallel: int = JOBS_DEFAULT,
    on: str = LOCAL,
    listener: Listener = SILENT,
) -> StudyRun:
    """Run a study, part after part.

    Args:
        study: its name or the path of its TOML file.
        rig: run all parts that support this rig on it; None is each part's own first rig. A
            `RigSpec` with an empty name has options for the parts on the live rig.
        disk: on the live rig, a directory or a device that replaces the study's models.
        repeats, seed: replace the study's own.
        quick: the study's small workloads, each once.
        out: a directory for the report and all results.
        keep, store, max_parallel, on, listener: see `compare`.

    Raises: as `compare`.
    """
    chosen = studies.find(study)
    directory = None if out is None else Path(out)
    if directory is not None:
        check_files(*kept_files.places(chosen, directory))
    spec = RigSpec("") if rig is None else RigSpec.of(rig)
    asked = Asked(spec.name or None, repeats, seed, disk, spec.options, quick)
    with opened(on, max_parallel, listener.note) as where:
        parts = _ready(chosen, plan(chosen, asked), where, listener)
        into = _opened(store, parts, listener) if keep else None
        return _run(chosen, parts, None, into, directory, where, listener)


def resume_study(
    number: int | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    store: str | None = None,
    max_parallel: int = JOBS_DEFAULT,
    on: str = LOCAL,
    listener: Listener = SILENT,
) -> StudyRun:
    """Resume an interrupted study; `number` is the number of one of its comparisons, None is the
    latest incomplete study. Raises as `compare`; InputError also if a run would now differ from the
    stored runs."""
    with opened(on, max_parallel, listener.note) as where:
        kept = open_store(place.find(store), durable=True, make=False, tell=listener.note)
        found = left(kept, number, study=True)
        of_study = found.study_id or 0
        asked = in_store.kept_study(kept, of_study)
        chosen = asked.study()
        parts = _ready(chosen, asked.planned(chosen), where, listener)
        parts, keepers = in_store.go_on(kept, of_study, chosen, parts, asked.out)
        written = asked.out if out is None else out
        directory = Path(written) if written else None
        if directory is not None:
            check_files(*kept_files.places(chosen, directory))
        return _run(chosen, parts, keepers, None, directory, where, listener)


def _run(
    chosen: Study,
    parts: Sequence[Ready],
    begun: Mapping[str, Keeper] | None,
    store: Store | None,
    directory: Path | None,
    where: Place,
    listener: Listener,
) -> StudyRun:
    several: list[Keeper] = [] if begun is None else list(begun.values())

    def keepers() -> Mapping[str, Keeper]:
        """A set-up that is refused before its first run is not stored."""
        nonlocal begun
        if begun is None:
            out = "" if directory is None else str(directory.absolute())
            begun = _begun(store, chosen, parts, out, listener)
            several.extend(begun.values())
        return begun

    runs = count(part.planned for part in parts) - sum(len(keeper.kept) for keeper in several)
    there = sum(part.rig is not None for part in parts)
    what = f"{there} of {len(parts)} parts of {chosen.name}"
    with keeping.resumable(lambda: several, study=True), listener.runs(runs, what) as ended:
        outcomes = run_parts(parts, where, ended, keepers, listener.note)
    judgements = judge(chosen, outcomes)
    with keeping.completing(several, listener, study=True):
        if directory is not None:
            write_together(study_files(chosen, outcomes, judgements, directory))
    kept = keeping.numbers_of(keepers())
    return StudyRun(chosen, tuple(outcomes), tuple(judgements), kept, directory)


def _ready(
    study: Study, planned: Sequence[PlannedPart], where: Place, listener: Listener
) -> list[Ready]:
    built: list[kernels.BuiltKernel] = []
    if kernels.needed(planned):
        with listener.building() as steps:
            built = kernels.build_all(study, planned, steps)
    found = ready(planned, built)
    for part in found:
        where.executor(part.rig)
    return found


def _opened(store: str | None, parts: Sequence[Ready], listener: Listener) -> Store | None:
    rigs = {part.rig.name for part in parts if part.rig}
    return keeping.open_for_runs(store, "sim" if rigs == {"sim"} else "", listener)


def _begun(
    store: Store | None, study: Study, parts: Sequence[Ready], out: str, listener: Listener
) -> Mapping[str, Keeper]:
    if store is None:
        return {}
    made = keeping.begin(lambda: in_store.begin(store, study, parts, out), store, listener)
    if isinstance(made, StoreError):
        return {}
    listener.kept([keeper.name for keeper in made.values()], study=True)
    return made
