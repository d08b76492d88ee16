"""``blklab.tune``: which scheduler with which settings serves these loads best on this disk?

The search (`blklab.tuning.search`) tries hundreds of settings with one seed on the model's own
values. Of so many the best may be the luckiest. So the best settings of each scheduler then meet
all defaults in a comparison with seeds of its own, on disks drawn from the ranges of the model's
estimates. Only its intervals decide, and "keep the default" is one of the answers.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from blklab.api.compare import files
from blklab.api.confirm import FRESH, Confirmation, places, recommended
from blklab.api.listener import SILENT, Listener
from blklab.base import homes
from blklab.base.catalogue import Entry
from blklab.base.files import check_files, write_whole
from blklab.base.limits import JOBS_DEFAULT
from blklab.domain import core, defaults, specs
from blklab.domain.defaults import LOCAL
from blklab.domain.experiment import Disk, SchedulerSpec
from blklab.domain.space import Space, spaces
from blklab.errors import InputError, RunError, StoppedError
from blklab.execute import opened
from blklab.report.tuned import PAGE, tuned_page
from blklab.rigs import find_disk
from blklab.rigs.sim import SimRig
from blklab.store import place as of_store
from blklab.tuning import goal as goals
from blklab.tuning import kept_answer
from blklab.tuning.answer import Confirmed, Tuned
from blklab.tuning.bench import Bench, Question, Score
from blklab.tuning.fidelity import SEEDS, SHARE, Fidelity, Levels
from blklab.tuning.search import Found, search
from blklab.tuning.sensitivity import Sensitivity, effects_around
from blklab.tuning.tried import Tried, of_search

FIGURES = tuple(goals.FIGURES)
"""The figures that an objective may name."""
TRIALS = 200
"""Settings that are tried after the screening, by default."""
REPEATS = 10
"""Fresh seeds of the confirmation, by default."""
_UNUSABLE_TOLD = 3
_FURTHER = FRESH // 2
"""The difference of the search's further seeds from its own; the confirmation's are others."""


def tune(
    *,
    disk: str | os.PathLike[str] | Disk,
    workloads: Sequence[str | os.PathLike[str] | Entry],
    objective: str = "both",
    schedulers: Sequence[str | SchedulerSpec] = (),
    against: str | SchedulerSpec | None = None,
    worst_case: bool = False,
    trials: int = TRIALS,
    repeats: int = REPEATS,
    seed: int = 1,
    confirm: Sequence[str] = (),
    sensitivity: bool = False,
    whole_runs: bool = False,
    host: Mapping[str, int] | None = None,
    ignore_unsupported: bool = False,
    out: str | os.PathLike[str] | None = None,
    keep: bool = False,
    store: str | None = None,
    max_parallel: int = JOBS_DEFAULT,
    on: str = LOCAL,
    listener: Listener = SILENT,
) -> Tuned:
    """Search the best scheduler and settings, and confirm them.

    Args:
        disk: as of `compare`.
        workloads: as of `compare`: job files and recordings.
        objective: see `blklab.tuning.goal`: ``p99``, ``p99(startup) < 300ms, throughput``.
        schedulers: those whose settings are searched; what one sets already stays. None: none,
            mq-deadline, kyber and bfq.
        against: the settings in use. None: the kernel's own choice for this disk.
        worst_case: of several loads the one that gains least counts, not the geometric mean.
        trials: settings that are tried after the screening.
        repeats: seeds of the confirmation, each with a drawn disk.
        seed: of the search; the confirmation's are others.
        confirm: where else: ``kernel``, ``live:DIRECTORY`` with a directory of the real disk.
        sensitivity: whether each tunable is moved from the recommended settings to the ends of its
            range, alone and in pairs, with the confirmation's seeds and drawn disks.
        whole_runs: whether the search makes no short runs first.
        host: as of `compare`.
        ignore_unsupported: as of `compare`.
        out: as of `compare`, for the confirmation; `apply` takes the answer from there.
        keep: whether the confirmation is stored.
        store: as of `compare`.
        max_parallel: as of `compare`.
        on: as of `compare`.
        listener: receives notes and progress.

    Raises:
        blklab.errors.InputError: a name, file or value is wrong.
        blklab.errors.RunError: a run of the reference or of the confirmation failed.
        blklab.errors.StoppedError: interrupted; the same call continues.
    """
    place = SimRig()
    jobs = specs.workloads(workloads)
    if not jobs:
        raise InputError("--workload: expected at least one load to tune for")
    for job in jobs:
        if job.kind == "program":
            raise InputError(f"{job.name}: is a program; a search needs a job file or a recording")
    found_disk = find_disk(place, disk)
    searched = spaces([specs.scheduler(one) for one in schedulers or defaults.LINUX])
    asked = Question(
        found_disk,
        jobs,
        goals.parse(objective),
        specs.scheduler(against or defaults.of_linux(found_disk)),
        seed,
        worst_case,
        dict(host or {}),
        ignore_unsupported,
    )
    elsewhere = places(confirm, asked)
    if out is not None:
        check_files(*files(Path(out)), Path(out) / PAGE, Path(out) / kept_answer.FILE)
    tried = of_search(_name(asked), _directory(store), listener.note)
    with opened(on, max_parallel, listener.note) as where:
        bench = Bench(asked, place, where.executor(place), tried)
        found = _searched(bench, searched, trials, whole_runs, listener)
    again = Confirmation(asked, found, keep, store, max_parallel, on, listener)
    confirmed = [again.simulated(repeats, out)]
    unconfirmed = []
    for other in elsewhere:
        try:
            confirmed.append(again.elsewhere(other, confirmed[0]))
        except (InputError, RunError) as error:
            unconfirmed.append(f"not confirmed in {other.label}: {error}")
    answer = _answer(asked, found, bench.made, confirmed, unconfirmed)
    if sensitivity:
        around = _Around(asked, found, searched, tried, max_parallel, on, listener)
        answer = replace(answer, sensitivity=around.of(answer.best, repeats))
    if out is not None:
        page = Path(out) / PAGE
        write_whole(page, tuned_page(answer))
        answer = replace(answer, page=page)
        kept_answer.save(Path(out), answer)
    if not unconfirmed:
        tried.forget()
    return answer


def _directory(store: str | None) -> Path:
    """The place for the runs of searches: beside the store."""
    place = of_store.find(store)
    beside = homes.data() / "blklab" if place.file is None else place.file.absolute().parent
    return beside / "tune"


def _name(asked: Question) -> str:
    """What names the file of a search's runs; each run is checked by its own hash."""
    loads = [job.name for job in asked.workloads]
    return repr((asked.objective.text, asked.disk.label, loads))


def _searched(
    bench: Bench, spaces: Sequence[Space], trials: int, whole_runs: bool, listener: Listener
) -> Found:
    objective = bench.question.objective
    # The estimator takes short runs for one goal only.
    may_be_short = objective.is_known_early and len(objective.goals) == 1 and not whole_runs
    short = Fidelity(lambda specs: bench.scores(specs, SHARE)) if may_be_short else None
    others = [_other(bench, _FURTHER + number) for number in range(SEEDS)]
    levels = Levels(short, tuple(other.scores for other in others))
    kept = len(bench.tried.runs)
    if kept:
        listener.note(f"{kept} runs of a search that was interrupted are taken over")
    count = len(bench.question.workloads)
    loads = f" over {count} loads" if count > 1 else ""
    try:
        with listener.runs(None, f"search{loads}") as ended:
            for one in (bench, *others):
                one.ended = ended
            found = search(bench, spaces, trials, bench.question.seed, levels)
    except KeyboardInterrupt:
        kept = len(bench.tried.runs) if bench.tried.is_kept else 0
        raise StoppedError(
            f"interrupted; {kept} runs are kept: the same command goes on from there"
        ) from None
    bench.made += sum(other.made for other in others)
    for spec, why in list(bench.unusable.items())[:_UNUSABLE_TOLD]:
        listener.note(f"{spec.label} was not used: {why}")
    return found


def _other(bench: Bench, further: int) -> Bench:
    """The same with another seed, on a disk drawn from the ranges of the model's estimates."""
    asked = _with_seed(bench.question, further)
    return Bench(asked, bench.rig, bench.executor, bench.tried)


def _with_seed(asked: Question, further: int) -> Question:
    seed = asked.seed + further
    return replace(asked, disk=core.drawn_disk(asked.disk, seed), seed=seed)


def _answer(
    asked: Question,
    found: Found,
    runs: int,
    confirmed: Sequence[Confirmed],
    unconfirmed: Sequence[str],
) -> Tuned:
    first, *others = confirmed
    reference = asked.reference.label
    best, contradicted = recommended(first, found, reference), None
    if any(one.contradicts(best) for one in others):
        best, contradicted = reference, best
    return Tuned(
        asked.disk.label,
        tuple(job.name for job in asked.workloads),
        asked.objective.text,
        reference,
        best,
        None if best == reference else first.gains[best],
        contradicted,
        first.beyond[best] == 0,
        found.worth,
        found.best[0][0].label,
        found.effects,
        tuple((spec.label, tuple(map(math.exp, score.gains))) for spec, score in found.front),
        found.trials,
        runs,
        found.enumerated,
        found.short,
        found.further,
        tuple(confirmed),
        tuple(unconfirmed),
        None,
        None,
    )


@dataclass(frozen=True)
class _Around:
    """Moves tunables away from the recommended settings."""

    asked: Question
    found: Found
    searched: Sequence[Space]
    tried: Tried
    max_parallel: int
    where: str
    listener: Listener

    def of(self, best: str, repeats: int) -> Sensitivity:
        every = [
            self.asked.reference,
            *(spec for spec, _ in (*self.found.defaults, *self.found.best)),
        ]
        [around, *_] = [spec for spec in every if spec.label == best]
        [space, *_] = [
            *(one for one in self.searched if one.name == around.name),
            # The settings in use, of a scheduler that was not searched.
            *spaces([SchedulerSpec(around.name)]),
        ]
        place = SimRig()
        with (
            opened(self.where, self.max_parallel, self.listener.note) as where,
            self.listener.runs(None, f"sensitivity of {best}") as ended,
        ):
            benches = [
                Bench(self._asked(around, repeat), place, where.executor(place), self.tried, ended)
                for repeat in range(repeats)
            ]

            def scores(specs: Sequence[SchedulerSpec]) -> list[tuple[Score | None, ...]]:
                return list(zip(*(bench.scores(specs) for bench in benches), strict=True))

            return effects_around(space, around, scores)

    def _asked(self, around: SchedulerSpec, repeat: int) -> Question:
        """With the seed and the drawn disk of a repeat of the confirmation."""
        return replace(_with_seed(self.asked, FRESH + repeat), reference=around)
