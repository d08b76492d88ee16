"""Runs settings under the loads of a search, and scores them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from blklab.base.catalogue import Entry
from blklab.domain.experiment import Disk, Experiment, SchedulerSpec
from blklab.domain.task import Task
from blklab.errors import InputError, StoppedError
from blklab.execute import Ended, Executor, Failed, KeptRun
from blklab.rigs import Rig
from blklab.tuning.goal import Objective
from blklab.tuning.tried import Run, Tried


def _nothing(_: object) -> None:
    pass


_NO_STORY = 1
"""Only repeat 0 has a story, which a search does not need."""


@dataclass(frozen=True)
class Score:
    """How good settings are, compared with the reference: 0 is as good."""

    excess: float
    """How far bounds are exceeded, over all loads: the sum of the logarithms of ratios."""
    gains: tuple[float, ...]
    """For each goal, the logarithm of the ratio: larger is better."""

    @property
    def key(self) -> tuple[float, float]:
        """Larger is better: within the bounds first, then the mean of the gains."""
        return -self.excess, sum(self.gains) / len(self.gains)


@dataclass(frozen=True)
class Question:
    """The disk, the loads and the objective of a search."""

    disk: Disk
    workloads: tuple[Entry, ...]
    objective: Objective
    reference: SchedulerSpec
    """The settings with which all others are compared."""
    seed: int
    worst_case: bool
    """Whether the load with the least gain counts, not the mean of several."""
    host: Mapping[str, int] = field(default_factory=dict)
    ignore_unsupported: bool = False


_Run: TypeAlias = tuple[SchedulerSpec, float | None]
"""Settings, and the part of the reference's time; None: a whole run."""


@dataclass
class Bench:
    """Runs each scheduler once under each load and keeps what has run."""

    question: Question
    rig: Rig
    executor: Executor
    tried: Tried
    ended: Callable[[object], None] = _nothing
    """Called at the end of each run."""
    made: int = 0
    """Runs that were made here, and not taken from `tried`."""
    unusable: dict[SchedulerSpec, str] = field(default_factory=dict)
    """Settings that the rig refuses, and why."""
    _tasks: dict[_Run, tuple[Task, ...]] = field(default_factory=dict)
    _keys: dict[_Run, tuple[str, ...]] = field(default_factory=dict)

    def runs(self, specs: Sequence[SchedulerSpec], share: float | None = None) -> None:
        """Make all runs of these settings that have not been made; `share`: short ones, of that
        part of the reference's time. InputError or RunError if one of the reference fails; other
        settings become unusable."""
        missing = {
            key: (spec, task)
            for spec in specs
            for key, task in zip(self._key(spec, share), self._tasks[spec, share], strict=True)
            if key not in self.tried.runs and spec not in self.unusable
        }
        keys = list(missing)

        def ended(events: Sequence[Ended]) -> None:
            for event in events:
                assert isinstance(event.found, KeptRun), "figures were asked for"
                found = event.found.measurement
                jobs = tuple(job.name for job in found.jobs)
                values = self.question.objective.values(found)
                self.tried.keep(Run(keys[event.number], values, jobs, found.duration_ns))
                self.made += 1
                self.ended(event)

        def failed(event: Failed) -> None:
            spec, _ = missing[keys[event.number]]
            if spec == self.question.reference or isinstance(event.error, StoppedError):
                raise event.error
            self.unusable[spec] = str(event.error)
            self.ended(event)

        self.executor.run([task for _, task in missing.values()], ended, failed)

    def forget(self) -> None:
        """Forget which tasks the settings so far have, which takes memory; not their runs."""
        self._tasks.clear()
        self._keys.clear()

    def figures(self, spec: SchedulerSpec, share: float | None = None) -> list[Run]:
        """Its run under each load."""
        self.runs([spec], share)
        return [self.tried.runs[key] for key in self._key(spec, share)]

    def scores(
        self, specs: Sequence[SchedulerSpec], share: float | None = None
    ) -> list[Score | None]:
        """The score of each; None for unusable ones."""
        self.runs([self.question.reference])
        self._check()
        self.runs([self.question.reference, *specs], share)
        return [None if spec in self.unusable else self._score(spec, share) for spec in specs]

    def _check(self) -> None:
        """InputError if a figure of the objective is in none of the loads."""
        runs = self.figures(self.question.reference)
        for number, name in enumerate(self.question.objective.names):
            if all(run.values[number] is None for run in runs):
                jobs = sorted({job for run in runs for job in run.jobs})
                there = f"; there are the jobs {', '.join(jobs)}" if jobs else ""
                raise InputError(f"--objective: no load has a figure for {name}{there}")

    def _score(self, spec: SchedulerSpec, share: float | None) -> Score:
        objective = self.question.objective
        bounds = len(objective.bounds)
        excess = 0.0
        gains: list[list[float]] = [[] for _ in objective.goals]
        reference = self.question.reference
        pairs = zip(self.figures(spec, share), self.figures(reference, share), strict=True)
        for own, of_reference in pairs:
            for bound, value in zip(objective.bounds, own.values, strict=False):
                excess += 0.0 if value is None else bound.excess(value)
            for place, gain in enumerate(gains):
                here, there = own.values[bounds + place], of_reference.values[bounds + place]
                if there is not None:
                    # A load without a figure that it has under the reference is no use.
                    gain.append(-math.inf if here is None else math.log(here / there))
        combined = min if self.question.worst_case else _mean
        return Score(excess, tuple(map(combined, gains)))

    def _key(self, spec: SchedulerSpec, share: float | None = None) -> tuple[str, ...]:
        run = (spec, share)
        if run not in self._keys:
            question = self.question
            ends: list[int | None] = [None] * len(question.workloads)
            if share is not None:
                ends = [round(share * one.duration_ns) for one in self.figures(question.reference)]
            self._tasks[run] = tuple(
                Task(
                    *self.rig.alone(
                        Experiment(
                            load,
                            question.disk,
                            spec,
                            question.seed,
                            question.host,
                            question.ignore_unsupported,
                            until_ns=end,
                        )
                    ),
                    repeat=_NO_STORY,
                )
                for load, end in zip(question.workloads, ends, strict=True)
            )
            self._keys[run] = tuple(task.content_hash for task in self._tasks[run])
        return self._keys[run]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
