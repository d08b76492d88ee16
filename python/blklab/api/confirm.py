"""What a search has found, measured again with fresh seeds: simulated, in Linux itself, on a disk.

The simulator's answer decides, on disks drawn from the ranges of the model's estimates. Another rig
may only contradict it: settings that are shown to be worse there are not recommended.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from blklab.api.compare import Comparison, compare
from blklab.api.listener import Listener
from blklab.domain.defaults import LOCAL
from blklab.domain.experiment import Disk, RigSpec, SchedulerSpec
from blklab.domain.measurement import Measurement
from blklab.errors import InputError
from blklab.experiment import statistics
from blklab.rigs import check_workload
from blklab.rigs import rig as rig_of
from blklab.study.live import RealDisk, real_disk
from blklab.tuning.answer import Confirmed
from blklab.tuning.bench import Question
from blklab.tuning.goal import Objective
from blklab.tuning.search import Found

_SIMULATED = RigSpec("sim")
_KERNEL = RigSpec("kernel", driver="native")
"""The lean driver issues the simulator's own I/O."""
_LIVE = RigSpec("live")
_REPEATS = 3
"""In Linux itself and on a real disk."""
_FINALISTS = 3
"""Settings of the search that are confirmed, of different schedulers where possible."""
FRESH = 1_000_000
"""Added to the search's seed: the confirmation shares none with it."""
_COMPARED_BY = {"throughput": "throughput", "p99": "latency"}
"""The objective by which the comparison's own report ranks, where it has the same."""
_EXPECTED = "--confirm: expected kernel, or live:DIRECTORY with a directory of the disk"


@dataclass(frozen=True)
class Place:
    """Where the finalists are measured again."""

    rig: RigSpec
    disk: Disk
    real: RealDisk | None = None
    """On the live rig."""

    @property
    def label(self) -> str:
        """The name in lines for the user."""
        return "Linux itself" if self.real is None else self.disk.label


def places(texts: Sequence[str], asked: Question) -> tuple[Place, ...]:
    """From ``kernel`` and ``live:DIRECTORY``. InputError if the finalists could not be measured
    there, as far as that is known before the search."""
    found: list[Place] = []
    for text in texts:
        rig, _, where = text.partition(":")
        if rig == _LIVE.name and where:
            found.append(_real(where, asked))
        elif text == _KERNEL.name:
            found.append(Place(_KERNEL, asked.disk))
        else:
            raise InputError(f"{_EXPECTED}, found '{text}'")
        if found[-1] in found[:-1]:
            raise InputError(f"--confirm: '{text}' is given twice")
    return tuple(found)


def _real(where: str, asked: Question) -> Place:
    for name in asked.host:
        raise InputError(f"--host: {name}: not with --confirm live, whose host is this machine")
    real = real_disk(where, _LIVE.options)
    if lacks := real.lacks(asked.reference.name):
        raise InputError(f"--against: {lacks}")
    rig = rig_of(_LIVE)
    for load in asked.workloads:
        check_workload(_LIVE, load)
    rig.check_scheduler(asked.reference)
    return Place(_LIVE, real.disk, real)


@dataclass(frozen=True)
class Confirmation:
    """Compares the finalists with the defaults and the reference."""

    asked: Question
    found: Found
    keep: bool
    store: str | None
    max_parallel: int
    where: str
    """``--on``, for modelled disks."""
    listener: Listener

    def simulated(self, repeats: int, out: str | os.PathLike[str] | None) -> Confirmed:
        """On drawn disks."""
        asked = self.asked
        schedulers = (asked.reference, *self._defaults(), *self._finalists())
        comparison = self._compared(Place(_SIMULATED, asked.disk), schedulers, repeats, out)
        return _judged(asked, comparison, "sim", asked.disk.label, repeats, None)

    def elsewhere(self, place: Place, first: Confirmed) -> Confirmed:
        """On another rig; on a real disk, where a run takes its time, without the other defaults.
        InputError or RunError if that is not possible."""
        asked = self.asked
        defaults = self._defaults() if place.real is None else ()
        schedulers = (asked.reference, *defaults, *self._finalists())
        if place.real is not None:
            schedulers = self._there(place.real, schedulers)
        comparison = self._compared(place, schedulers, _REPEATS, None)
        return _judged(asked, comparison, place.rig.name, place.disk.label, _REPEATS, first)

    def _defaults(self) -> tuple[SchedulerSpec, ...]:
        return tuple(spec for spec, _ in self.found.defaults)

    def _finalists(self) -> tuple[SchedulerSpec, ...]:
        return tuple(spec for spec, _ in self.found.best[:_FINALISTS])

    def _there(
        self, real: RealDisk, schedulers: Sequence[SchedulerSpec]
    ) -> tuple[SchedulerSpec, ...]:
        kept = []
        for spec in schedulers:
            if why := real.lacks(spec.name):
                self.listener.note(f"{spec.label} is not confirmed: {why}")
            else:
                kept.append(spec)
        if set(kept) == {self.asked.reference}:
            raise InputError(f"{real.disk.label}: there is nothing to confirm")
        return tuple(kept)

    def _compared(
        self,
        place: Place,
        schedulers: Sequence[SchedulerSpec],
        repeats: int,
        out: str | os.PathLike[str] | None,
    ) -> Comparison:
        asked = self.asked
        names = {goal.text for goal in asked.objective.goals}
        by = _COMPARED_BY.get(next(iter(names)), "both") if len(names) == 1 else "both"
        return compare(
            disks=[place.disk],
            workloads=asked.workloads,
            schedulers=tuple(dict.fromkeys(schedulers)),
            repeats=repeats,
            seed=asked.seed + FRESH,
            objective=by,  # type: ignore[arg-type]
            rig=place.rig,
            host=asked.host,
            ignore_unsupported=asked.ignore_unsupported,
            out=out,
            keep=self.keep,
            store=self.store,
            max_parallel=self.max_parallel,
            on=LOCAL if place.real else self.where,
            listener=self.listener,
        )


def _judged(
    asked: Question,
    comparison: Comparison,
    rig: str,
    disk: str,
    repeats: int,
    first: Confirmed | None,
) -> Confirmed:
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
    level = statistics.joint_level(len(others))
    gains = {label: statistics.ratio(figures[label], reference, level) for label in others}
    verdict = statistics.decide(figures, drawn=rig == "sim")
    agreement = None
    if first is not None:
        both = [name for name in first.gains if name in gains]
        agreement = statistics.kendall_tau(
            [first.gains[name].estimate for name in both],
            [gains[name].estimate for name in both],
        )
    return Confirmed(
        rig, disk, repeats, verdict, gains, beyond, agreement, comparison.kept, comparison.page
    )


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


def recommended(confirmed: Confirmed, found: Found, reference: str) -> str:
    """The simplest of the settings that keep the bounds best and lead: a default, then those with
    the fewest settings; the reference, unless others are shown to be better."""
    least = min(confirmed.beyond.values())
    allowed = [name for name, count in confirmed.beyond.items() if count == least]
    unchanged = {spec.label for spec, _ in found.defaults}
    if len(allowed) == 1:
        return allowed[0]
    estimate = {reference: 1.0} | {name: gap.estimate for name, gap in confirmed.gains.items()}
    if reference in allowed:
        # A larger gain than theirs that chance may have made does not count.
        gains = confirmed.gains
        allowed = [name for name in allowed if name in gains and statistics.is_shown(gains[name])]
        if not allowed:
            return reference
    best = max(allowed, key=lambda name: estimate[name])
    shown = [
        name
        for name in allowed
        if name == best or estimate[best] / estimate[name] < statistics.MATTERS
    ]
    return min(shown, key=lambda name: (name not in unchanged, name.count("="), -estimate[name]))
