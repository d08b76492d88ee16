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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab.api.compare import Comparison, compare
from blklab.api.listener import SILENT, Listener
from blklab.base import homes
from blklab.base.catalogue import Entry
from blklab.base.limits import JOBS_DEFAULT
from blklab.base.plain import plain
from blklab.domain import defaults, specs
from blklab.domain.experiment import Disk, RigSpec, SchedulerSpec
from blklab.domain.measurement import Measurement
from blklab.errors import InputError, StoppedError
from blklab.execute import Local
from blklab.experiment import statistics
from blklab.experiment.statistics import Interval, Verdict
from blklab.rigs import find_disk
from blklab.rigs.sim import SimRig
from blklab.store import place as places
from blklab.tuning import goal as goals
from blklab.tuning.bench import Bench, Question
from blklab.tuning.goal import Objective
from blklab.tuning.search import Effect, Found, search
from blklab.tuning.space import Space, spaces
from blklab.tuning.tried import of_search

FIGURES = tuple(goals.FIGURES)
"""The figures that an objective may name."""
TRIALS = 200
"""Settings that are tried after the screening, by default."""
REPEATS = 10
"""Fresh seeds of the confirmation, by default."""
_KERNEL_REPEATS = 3
_KERNEL = RigSpec("kernel", driver="native")
"""The lean driver issues the simulator's own I/O."""
_FINALISTS = 3
"""Settings of the search that are confirmed, of different schedulers where possible."""
_UNUSABLE_TOLD = 3
_FRESH = 1_000_000
"""Added to the search's seed: the confirmation shares none with it."""
_COMPARED_BY = {"throughput": "throughput", "p99": "latency"}
"""The objective by which the comparison's own report ranks, where it has the same."""


@dataclass(frozen=True)
class Confirmed:
    """The finalists and the defaults on fresh seeds."""

    rig: str
    repeats: int
    verdict: Verdict
    """By the search's objective, over all loads."""
    gains: Mapping[str, Interval]
    """For each scheduler with its settings: how many times better than the reference, by the same
    measure."""
    beyond: Mapping[str, int]
    """For each, the repeats in which a bound was not kept."""
    kept: int | None
    """The comparison's number in the store."""
    page: Path | None
    """Its report."""


@dataclass(frozen=True)
class Tuned:
    """What tuning has found."""

    disk: str
    workloads: tuple[str, ...]
    objective: str
    reference: str
    """The settings that others are compared with."""
    best: str
    """The recommended scheduler with its settings; the reference if nothing is shown to be
    better."""
    gain: Interval | None
    """How many times better it is than the reference, on fresh seeds; None for the reference."""
    keeps: bool
    """Whether the recommended settings kept every bound in every repeat."""
    worth: Mapping[str, float]
    """For each setting of the search's best: how many times worse it is without it; infinite if a
    bound is then exceeded."""
    searched: str
    """The search's best, which `worth` is about."""
    effects: tuple[Effect, ...]
    """The largest effect of each tunable between settings that were tried, the largest first; 1 is
    none at all."""
    front: tuple[tuple[str, tuple[float, ...]], ...]
    """With several goals: settings of which none is worse than another in all, with the ratio to
    the reference in each goal."""
    trials: int
    """Settings that the search tried."""
    runs: int
    """Runs that it made now; the others were kept from a search that was interrupted."""
    enumerated: bool
    """Whether it tried all settings that differ."""
    confirmed: tuple[Confirmed, ...]
    """On the simulator, and on the kernel rig if that was asked for."""
    agreement: float | None
    """Kendall's tau of the finalists and defaults on the two rigs."""

    def to_json(self) -> dict[str, Any]:
        """Plain data, as ``blklab tune --json`` prints it."""
        document: dict[str, Any] = plain(self)
        document["confirmed"] = [
            {**plain(one), "page": None if one.page is None else str(one.page)}
            for one in self.confirmed
        ]
        return document


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
    host: Mapping[str, int] | None = None,
    ignore_unsupported: bool = False,
    out: str | os.PathLike[str] | None = None,
    keep: bool = False,
    store: str | None = None,
    max_parallel: int = JOBS_DEFAULT,
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
        confirm: further rigs: ``kernel``.
        host: as of `compare`.
        ignore_unsupported: as of `compare`.
        out: as of `compare`, for the confirmation.
        keep: whether the confirmation is stored.
        store: as of `compare`.
        max_parallel: as of `compare`.
        listener: receives notes and progress.

    Raises:
        blklab.errors.InputError: a name, file or value is wrong.
        blklab.errors.RunError: a run of the reference or of the confirmation failed.
        blklab.errors.StoppedError: interrupted; the same call continues.
    """
    for rig in confirm:
        if rig != "kernel":
            raise InputError(f"--confirm: expected kernel, found '{rig}'")
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
    tried = of_search(_name(asked), _directory(store), listener.note)
    bench = Bench(asked, place, Local(max_parallel, place), tried)
    found = _searched(bench, searched, trials, listener)
    compared = _Compared(asked, found, keep, store, max_parallel, listener)
    confirmed = [compared.on(RigSpec("sim"), repeats, out)]
    confirmed += [compared.on(_KERNEL, _KERNEL_REPEATS, None) for _ in confirm]
    tried.forget()
    return _answer(asked, found, bench.made, confirmed)


def _directory(store: str | None) -> Path:
    """The place for the runs of searches: beside the store."""
    place = places.find(store)
    beside = homes.data() / "blklab" if place.file is None else place.file.absolute().parent
    return beside / "tune"


def _name(asked: Question) -> str:
    """What names the file of a search's runs; each run is checked by its own hash."""
    loads = [job.name for job in asked.workloads]
    return repr((asked.objective.text, asked.disk.label, loads))


def _searched(bench: Bench, spaces: Sequence[Space], trials: int, listener: Listener) -> Found:
    kept = len(bench.tried.runs)
    if kept:
        listener.note(f"{kept} runs of a search that was interrupted are taken over")
    count = len(bench.question.workloads)
    loads = f" over {count} loads" if count > 1 else ""
    try:
        with listener.runs(None, f"search{loads}") as ended:
            bench.ended = ended
            found = search(bench, spaces, trials, bench.question.seed)
    except KeyboardInterrupt:
        kept = len(bench.tried.runs) if bench.tried.is_kept else 0
        raise StoppedError(
            f"interrupted; {kept} runs are kept: the same command goes on from there"
        ) from None
    for spec, why in list(bench.unusable.items())[:_UNUSABLE_TOLD]:
        listener.note(f"{spec.label} was not used: {why}")
    return found


@dataclass(frozen=True)
class _Compared:
    """Compares the finalists with the defaults and the reference."""

    asked: Question
    found: Found
    keep: bool
    store: str | None
    max_parallel: int
    listener: Listener

    @property
    def schedulers(self) -> tuple[SchedulerSpec, ...]:
        finalists = [spec for spec, _ in self.found.best[:_FINALISTS]]
        others = [spec for spec, _ in self.found.defaults]
        return tuple(dict.fromkeys([self.asked.reference, *others, *finalists]))

    def on(self, rig: RigSpec, repeats: int, out: str | os.PathLike[str] | None) -> Confirmed:
        asked = self.asked
        names = {goal.text for goal in asked.objective.goals}
        by = _COMPARED_BY.get(next(iter(names)), "both") if len(names) == 1 else "both"
        comparison = compare(
            disks=[asked.disk],
            workloads=asked.workloads,
            schedulers=self.schedulers,
            repeats=repeats,
            seed=asked.seed + _FRESH,
            objective=by,  # type: ignore[arg-type]
            rig=rig,
            host=asked.host,
            ignore_unsupported=asked.ignore_unsupported,
            out=out,
            keep=self.keep,
            store=self.store,
            max_parallel=self.max_parallel,
            listener=self.listener,
        )
        return _judged(asked, comparison, rig.name, repeats)


def _judged(asked: Question, comparison: Comparison, rig: str, repeats: int) -> Confirmed:
    labels = list(dict.fromkeys(run.scheduler for run in comparison.results.runs))
    figures: dict[str, list[float]] = {}
    beyond: dict[str, int] = {}
    for label in labels:
        of_label = [run for run in comparison.results.runs if run.scheduler == label]
        by_repeat = [[run for run in of_label if run.repeat == n] for n in range(repeats)]
        figures[label] = [_value(asked.objective, runs) for runs in by_repeat]
        beyond[label] = sum(not _keeps(asked.objective, runs) for runs in by_repeat)
    reference = figures[asked.reference.label]
    others = [label for label in labels if label != asked.reference.label]
    level = 1.0 - (1.0 - statistics.CONFIDENCE) / max(1, len(others))
    gains = {label: statistics.ratio(figures[label], reference, level) for label in others}
    verdict = statistics.decide(figures, drawn=rig == "sim")
    return Confirmed(rig, repeats, verdict, gains, beyond, comparison.kept, comparison.page)


def _value(objective: Objective, runs: Sequence[Measurement]) -> float:
    """The geometric mean of all goals under all loads of one repeat."""
    bounds = len(objective.bounds)
    rows = [objective.values(run)[bounds:] for run in runs]
    return statistics.geometric_mean([value for row in rows for value in row if value is not None])


def _keeps(objective: Objective, runs: Sequence[Measurement]) -> bool:
    """Whether every bound holds in these runs."""
    for run in runs:
        for bound, value in zip(objective.bounds, objective.values(run), strict=False):
            if value is not None and bound.excess(value) > 0.0:
                return False
    return True


def _answer(asked: Question, found: Found, runs: int, confirmed: Sequence[Confirmed]) -> Tuned:
    first = confirmed[0]
    reference = asked.reference.label
    best = _recommended(first, found, reference)
    agreement = None
    if len(confirmed) > 1:
        both = [name for name in first.gains if name in confirmed[1].gains]
        agreement = statistics.kendall_tau(
            [first.gains[name].estimate for name in both],
            [confirmed[1].gains[name].estimate for name in both],
        )
    return Tuned(
        asked.disk.label,
        tuple(job.name for job in asked.workloads),
        asked.objective.text,
        reference,
        best,
        None if best == reference else first.gains[best],
        first.beyond[best] == 0,
        found.worth,
        found.best[0][0].label,
        found.effects,
        tuple((spec.label, tuple(map(math.exp, score.gains))) for spec, score in found.front),
        found.trials,
        runs,
        found.enumerated,
        tuple(confirmed),
        agreement,
    )


def _recommended(confirmed: Confirmed, found: Found, reference: str) -> str:
    """The simplest of the settings that keep the bounds best and lead: the reference, then a
    default, then those with the fewest settings."""
    least = min(confirmed.beyond.values())
    allowed = [name for name, count in confirmed.beyond.items() if count == least]
    unchanged = {spec.label for spec, _ in found.defaults}
    if len(allowed) == 1:
        return allowed[0]
    estimate = {reference: 1.0} | {name: gap.estimate for name, gap in confirmed.gains.items()}
    best = max(allowed, key=lambda name: estimate[name])
    shown = [
        name
        for name in allowed
        if name == best or estimate[best] / estimate[name] < statistics.MATTERS
    ]
    if reference in allowed and (
        best == reference or not statistics.is_shown(confirmed.gains[best])
    ):
        return reference
    return min(shown, key=lambda name: (name not in unchanged, name.count("="), -estimate[name]))
