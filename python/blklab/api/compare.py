"""``blklab.compare``: which scheduler suits these disks and workloads?"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from blklab.api import keeping
from blklab.api.listener import SILENT, Listener
from blklab.base.catalogue import Entry
from blklab.base.files import check_files, write_together
from blklab.base.limits import JOBS_DEFAULT
from blklab.base.units import duration_text
from blklab.domain import core, defaults, results_file, specs
from blklab.domain.comparison import OBJECTIVES, Planned, Setup, plan
from blklab.domain.conditions import KernelRigData
from blklab.domain.defaults import LOCAL
from blklab.domain.events import Keeper, Nowhere
from blklab.domain.experiment import Disk, RigSpec, SchedulerSpec
from blklab.domain.results_file import Results
from blklab.domain.rows import figures, names
from blklab.domain.setup import SetupData
from blklab.domain.tables import load_extra
from blklab.errors import InputError, StoreError, nearest
from blklab.execute import Place, carry_out, opened, take_over
from blklab.experiment import budget as budgets
from blklab.experiment.analyse import Analysis, analyse
from blklab.experiment.describe import describe
from blklab.experiment.summary import summarise
from blklab.experiment.words import sentence
from blklab.report import render
from blklab.rigs import Rig, find_disk, of_workloads
from blklab.rigs import rig as rig_of
from blklab.store import keep as in_store
from blklab.store import place as places
from blklab.store import request as requests
from blklab.store.database import Store
from blklab.store.keep import left
from blklab.store.opening import open_store
from blklab.store.request import Request, fingerprints

if TYPE_CHECKING:
    import pandas as pd


Objective = Literal["throughput", "latency", "both"]
_REPEATS = 5
_REPEATS_DRAWN = 10
"""With drawn disks: enough to name the parameter that an answer depends on (`DISKS_LEAST`)."""


@dataclass(frozen=True)
class Comparison:
    """A comparison that has run, with its answers."""

    results: Results
    """The set-up and the measurement of each run."""
    analysis: Analysis
    """Rankings and verdicts by disk and workload; recommendations by disk."""
    kept: int | None = None
    """Its number in the store."""
    page: Path | None = None
    """The report, if it was written."""

    def rows(self) -> list[dict[str, Any]]:
        """A row for each run: disk, workload, scheduler, repeat and its figures; times in ns,
        throughput in bytes per second; None for figures without a measurement."""
        return [names(run) | figures(run) for run in self.results.runs]

    def to_pandas(self) -> pd.DataFrame:
        """`rows` as a data frame. ImportError if pandas is missing: ``blklab[pandas]``."""
        frame: pd.DataFrame = load_extra("pandas", "pandas").DataFrame(self.rows())
        return frame

    def sentences(self) -> dict[str, str]:
        """By disk, the recommendation over all workloads in one sentence."""
        objective = self.analysis.objective
        every = self.analysis.recommendations.items()
        return {disk: sentence(verdicts[objective], objective) for disk, verdicts in every}

    def summary(self) -> dict[str, Any]:
        """Rankings, verdicts and recommendations as plain data; units are in the names."""
        return summarise(self.analysis)

    def write(self, directory: str | os.PathLike[str]) -> Path:
        """Write ``results.json`` and ``report.html`` there, both or none. Returns the report's
        path. RunError if that fails."""
        document, page = files(Path(directory))
        text = results_file.to_text(self.results)
        write_together({document: text, page: render(self.results, self.analysis)})
        return page


@dataclass(frozen=True)
class _Work:
    """A comparison that is about to begin or to resume."""

    request: Request
    described: SetupData
    rig: Rig
    keeper: Keeper | None
    """None until its first run can begin: a refused set-up is not stored."""
    store: Store | None = None


def compare(
    *,
    disks: Sequence[str | os.PathLike[str] | Disk] = (),
    workloads: Sequence[str | os.PathLike[str] | Entry] = (),
    schedulers: Sequence[str | SchedulerSpec] = (),
    repeats: int | None = None,
    budget: str | None = None,
    seed: int = 1,
    objective: Objective = "both",
    rig: str | RigSpec = "sim",
    host: Mapping[str, int] | None = None,
    ignore_unsupported: bool = False,
    file_systems: Sequence[str] = (),
    vary_disk: bool | None = None,
    out: str | os.PathLike[str] | None = None,
    keep: bool = False,
    store: str | None = None,
    max_parallel: int = JOBS_DEFAULT,
    on: str = LOCAL,
    listener: Listener = SILENT,
) -> Comparison:
    """Run every scheduler on every disk under every workload, and rank them.

    Args:
        disks: names of disk models or paths of TOML files, with ``:key=value,...`` to change
            them; on the live rig directories or devices. None: two models.
        workloads: names or paths of job files, with ``:option=value,...`` to change fio's
            options; on the kernel rig and the live rig also programs. None: those of the package.
        schedulers: names with ``:tunable=value,...`` in the kernel's units. None: those of the rig.
            All three also accept `Disk`, `Entry` and `SchedulerSpec` objects.
        repeats: number of repeats. None: 10 with drawn disks, otherwise 5; with a `budget` as many
            as it allows.
        budget: ``90s``, ``10m`` or ``2h``: repeat until the answer is known, for at most this time.
        seed: seed of the first repeat; each further repeat has the next number.
        objective: the figure that ranks schedulers.
        rig: where to run.
        host: costs and sizes of the modelled host, by name.
        ignore_unsupported: leave out job options that are not simulated instead of refusing.
        file_systems: on the kernel rig, the file systems on which each program runs, with options
            of mount and mkfs: ``ext4:data=journal``. None: ext4 with its defaults.
        vary_disk: whether each repeat has its own disk, drawn from the ranges of the file's
            estimates. None: on rigs with modelled disks.
        out: a directory for ``results.json`` and ``report.html``.
        keep: whether every finished run is stored, so that `resume` can continue.
        store: a file or a URL; None is the default store.
        max_parallel: maximum of parallel runs.
        on: where the runs are carried out: ``local``, in this process; a Dask scheduler,
            ``tcp://HOST:PORT`` or ``tls://HOST:PORT``; or a cluster that Dask starts for this call,
            ``local:WORKERS``, ``ssh:HOST,HOST`` or ``slurm:JOBS``. There `max_parallel` has no
            effect.
        listener: receives notes and progress.

    Raises:
        blklab.errors.InputError: a name, file or value is wrong; nothing has run.
        blklab.errors.RunError: a run failed; its ``kept`` names the resumable comparisons.
        blklab.errors.StoppedError: interrupted; the finished runs are stored.
    """
    checked_objective(objective)
    if budget is not None:
        budgets.seconds(budget)
        if repeats is not None:
            raise InputError("--repeats: not with --budget, which decides the number of repeats")
    if out is not None:
        check_files(*files(Path(out)))
    jobs = specs.on_file_systems(specs.workloads(workloads or defaults.WORKLOADS), file_systems)
    spec = of_workloads(RigSpec.of(rig), jobs)
    real = spec.name == "live"
    if vary_disk and real:
        raise InputError("--vary-disk: only modelled disks have ranges; --rig live has real ones")
    place = rig_of(spec)
    usual = defaults.schedulers(spec.name)
    found = tuple(find_disk(place, one) for one in disks or defaults.disks(spec.name))
    is_drawn = not real if vary_disk is None else vary_disk
    if repeats is None:
        repeats = 1 if budget else _REPEATS_DRAWN if is_drawn else _REPEATS
    asked = tuple(map(specs.scheduler, schedulers or usual))
    setup = Setup(
        found,
        jobs,
        asked,
        repeats,
        seed,
        dict(host or {}),
        ignore_unsupported,
        () if schedulers else defaults.left_out(found, usual),
        is_drawn,
    )
    with opened(on, max_parallel, listener.note) as where:
        where.executor(place)
        work = _new(setup, place, spec, objective, out, budget, keep, store, listener)
        return _carried_out(work, objective, None if out is None else Path(out), where, listener)


def resume(
    number: int | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    objective: Objective | None = None,
    store: str | None = None,
    max_parallel: int = JOBS_DEFAULT,
    on: str = LOCAL,
    listener: Listener = SILENT,
) -> Comparison:
    """Resume an interrupted comparison; stored runs do not run again.

    Args:
        number: number of a stored comparison; None is the latest incomplete one.
        out: replaces the original output directory.
        objective: replaces the original objective.
        on: as of `compare`.

    Raises: as `compare`; InputError also if a run would now differ from the stored runs.
    """
    if objective is not None:
        checked_objective(objective)
    with opened(on, max_parallel, listener.note) as where:
        work = _resumed(store, number, listener)
        directory = Path(out if out is not None else work.request.out)
        writes = out is not None or bool(work.request.out)
        if writes:
            check_files(*files(directory))
        return _carried_out(
            work,
            objective or work.request.objective,
            directory if writes else None,
            where,
            listener,
        )


def files(out: Path) -> tuple[Path, Path]:
    """The files for the output directory: the results and the report."""
    return out / "results.json", out / "report.html"


def checked_objective(objective: str) -> Objective:
    """The objective; InputError if there is no such objective."""
    if objective not in OBJECTIVES:
        raise InputError(f"--objective: no '{objective}'{nearest(objective, OBJECTIVES)}")
    return cast(Objective, objective)


def _new(
    setup: Setup,
    place: Rig,
    spec: RigSpec,
    objective: str,
    out: str | os.PathLike[str] | None,
    budget: str | None,
    keep: bool,
    store: str | None,
    listener: Listener,
) -> _Work:
    """InputError if a disk, a workload or a scheduler is wrong."""
    place.put_right()
    described = describe(setup, place)
    for workload in described["workloads"]:
        for option in workload["ignored"]:
            listener.note(f"ignored: {option}")
    # The default kernel may be another one tomorrow.
    told = cast(KernelRigData, described["rig_setup"])
    options = spec.options | ({"kernel": told["kernel"]["key"]} if "kernel" in told else {})
    where = "" if out is None else str(Path(out).absolute())
    request = Request(
        setup, place.name, options, objective, where, fingerprints(setup), budget or ""
    )
    if budget:
        described["stopping"] = {"text": f"not at its end; the budget was {budget}"}
    opened = keeping.open_for_runs(store, place.name, listener) if keep else None
    return _Work(request, described, place, None, opened)


def _resumed(store: str | None, number: int | None, listener: Listener) -> _Work:
    """InputError if there is none, or if further runs would differ from the stored ones."""
    kept = open_store(places.find(store), durable=True, make=False, tell=listener.note)
    found = left(kept, number, study=False)
    asked = requests.request_from_bytes(f"comparison {found.id}: request", found.request)
    if asked.budget:
        raise InputError(
            f"comparison {found.id} cannot be resumed: it had a budget of {asked.budget}; its "
            f"finished runs are stored: blklab report {found.id}"
        )
    where = rig_of(RigSpec.of_options(asked.rig, asked.options))
    where.put_right()
    requests.check_same(f"comparison {found.id}", found.setup, describe(asked.setup, where), asked)
    return _Work(asked, found.setup, where, in_store.go_on(kept, found.id))


def _carried_out(
    work: _Work, objective: str, out: Path | None, where: Place, listener: Listener
) -> Comparison:
    keepers = [work.keeper] if work.keeper else []
    with keeping.resumable(lambda: keepers, study=False):
        results = _measured(work, objective, where, keepers, listener)
    answers = analyse(results.runs, objective, anytime=results.anytime)
    found = Comparison(results, answers, keeping.number_of(keepers[0]))
    with keeping.completing(keepers, listener, study=False):
        page = None if out is None else found.write(out)
    return Comparison(results, answers, found.kept, page)


def _measured(
    work: _Work, objective: str, where: Place, keepers: list[Keeper], listener: Listener
) -> Results:
    """Adds the keeper to `keepers` as soon as there is a run to store."""
    setup, rig, budget = work.request.setup, work.rig, work.request.budget
    kept = work.keeper.kept if work.keeper else {}
    repeated = budgets.blocks(setup) if budget else None
    runs = repeated[0] if repeated else plan(setup)
    left = [planned for number, planned in enumerate(runs) if number not in kept]
    with rig.prepared([planned.experiment for planned in left], listener.note):
        keeper = _begun(work, listener)
        keepers[:] = [keeper]
        for note in _outlook(setup, rig, budget) + _undrawn(setup):
            listener.note(note)
        if where.takes_over and repeated is None:
            _take_over(runs, rig, keeper, listener)
        total = None if budget else len(runs) - len(keeper.kept)
        with listener.runs(total, _question(setup, budget)) as ended:
            if repeated is None:
                measured = carry_out(runs, rig, where.executor(rig), ended, keeper)
                return Results(work.described, tuple(measured))
            return budgets.execute_within(
                repeated,
                rig,
                budgets.seconds(budget),
                objective,
                where.executor(rig),
                ended,
                keeper,
                work.described,
            )


def _take_over(runs: Sequence[Planned], rig: Rig, keeper: Keeper, listener: Listener) -> None:
    count = take_over(runs, rig, keeper)
    if count:
        listener.note(f"{count} of {len(runs)} runs are in the store, of other comparisons")


def _begun(work: _Work, listener: Listener) -> Keeper:
    """The runs' place in the store."""
    if work.keeper is not None:
        return work.keeper
    if work.store is None:
        return Nowhere("")
    store, setup = work.store, work.request.setup
    count = len(plan(setup))
    made = keeping.begin(
        lambda: in_store.begin(store, work.described, work.request, count), store, listener
    )
    if isinstance(made, StoreError):
        return Nowhere(str(made))
    listener.kept([made.name], study=False)
    return made


def _outlook(setup: Setup, rig: Rig, budget: str) -> list[str]:
    """The differences that this many repeats can detect, on rigs that take real time."""
    notes = []
    if budget:
        limit = duration_text(budgets.seconds(budget) * 1e9)
        notes.append(f"repeated until the answer is known, for {limit} at most")
    if len(setup.schedulers) > 1 and (budget or rig.name == "live"):
        count = None if budget else setup.repeats
        notes.append(budgets.outlook(count, len(setup.schedulers), anytime=bool(budget)))
    return notes


def _undrawn(setup: Setup) -> list[str]:
    """The disks of which no drawn one meets the figures of the file, and the repeats."""
    if not setup.vary_disk:
        return []
    notes = []
    for disk in setup.disks:
        missed = [
            (repeat + 1, figure)
            for repeat in range(setup.repeats)
            if (figure := core.missed_by_all(disk, setup.seed + repeat))
        ]
        if missed:
            repeats = ", ".join(str(repeat) for repeat, _ in missed)
            figures = ", ".join(sorted({figure for _, figure in missed}))
            notes.append(
                f"{disk.label}: no disk drawn from its ranges meets the calibrated {figures}; the "
                f"file's own values in repeat{'s' * (len(missed) > 1)} {repeats}"
            )
    return notes


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
