"""Run experiments, several at a time; each end is an event.

An `Executor` has one method and receives plain data (`blklab.domain.task`), so that another
executor can run the same tasks elsewhere: there, `carried_out` makes the rig and runs one task. A
task's result is reduced where it runs, so that only small data travel or wait for other tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol, TypeAlias

from blklab.base import pool
from blklab.domain.comparison import Planned
from blklab.domain.conditions import DeviceState
from blklab.domain.events import Finished, Keeper
from blklab.domain.experiment import Experiment, RigSpec
from blklab.domain.measurement import Measurement, measure
from blklab.domain.result import Result
from blklab.domain.task import Task
from blklab.errors import BlklabError, RunError
from blklab.rigs import Rig
from blklab.rigs import rig as rig_of


@dataclass(frozen=True)
class KeptRun:
    """The part of a result that a comparison stores: the figures and the rig's documents."""

    measurement: Measurement
    raw: Mapping[str, bytes]
    """See :class:`blklab.domain.result.Result`, as the next two."""
    device_before: DeviceState | None
    device_after: DeviceState | None


Found: TypeAlias = KeptRun | Result
"""The result of a task: see `Task.wanted`."""


@dataclass(frozen=True)
class Ended:
    """A task that has ended."""

    number: int
    """The task's number."""
    found: Found
    begun_at: datetime
    """UTC, as `ended_at`."""
    ended_at: datetime


@dataclass(frozen=True)
class Failed:
    """A task without a result."""

    number: int
    """The task's number."""
    error: BlklabError


class Executor(Protocol):
    """Runs tasks somewhere."""

    def run(
        self,
        tasks: Sequence[Task],
        ended: Callable[[Ended], None],
        failed: Callable[[Failed], None] | None = None,
    ) -> None:
        """Run all; they begin in the order of `tasks`. `ended` is called after each, in this
        thread, as they end; `failed` after each that fails.

        Without `failed` the first task that fails ends the call: BlklabError. KeyboardInterrupt
        after Ctrl-C. Then running tasks are cancelled, and nothing runs when this raises.
        """


@dataclass(frozen=True)
class Local:
    """Runs them in threads of this process: no rig holds the interpreter's lock while it runs."""

    threads: int
    rig: Rig | None = None
    """A prepared rig, such as the live rig with its borrowed disks and test files; it runs the
    tasks with its own spec. Other tasks get a rig made from their spec."""

    def run(
        self,
        tasks: Sequence[Task],
        ended: Callable[[Ended], None],
        failed: Callable[[Failed], None] | None = None,
    ) -> None:
        """See `Executor`."""
        rigs = _Rigs(self.rig)
        every = [rigs.of(task.rig) for task in tasks]
        threads = min([self.threads, *(rig.at_once for rig in every)])

        def one(number: int) -> Ended | Failed:
            try:
                return carried_out(tasks[number], every[number], number)
            except BlklabError as error:
                if failed is None:
                    raise
                return Failed(number, error)

        def done(event: Ended | Failed) -> None:
            if isinstance(event, Ended):
                ended(event)
            elif failed is not None:
                failed(event)

        def cancel() -> None:
            for rig in rigs.made.values():
                rig.cancel()

        pool.run_all(one, range(len(tasks)), threads, done, cancel)


@dataclass
class _Rigs:
    """A rig for each spec."""

    given: Rig | None
    made: dict[RigSpec, Rig] = field(default_factory=dict)

    def of(self, spec: RigSpec) -> Rig:
        """The given rig if it has this spec; else a new one, made once."""
        if spec not in self.made:
            is_given = self.given is not None and self.given.spec == spec
            self.made[spec] = self.given if is_given and self.given else rig_of(spec)
        return self.made[spec]


def carried_out(task: Task, rig: Rig | None = None, number: int = 0) -> Ended:
    """Run one task, on `rig` or on a new rig. BlklabError if it fails."""
    experiment = task.experiment
    begun_at = datetime.now(UTC)
    try:
        result = (rig_of(task.rig) if rig is None else rig).run(experiment)
        found = _kept_of(task, result) if task.wanted == "figures" else result
        return Ended(number, found, begun_at, datetime.now(UTC))
    except (BlklabError, KeyboardInterrupt):
        raise
    except MemoryError as error:
        raise RunError(f"{_what(experiment)}: out of memory; try fewer --jobs") from error
    except Exception as error:
        raise RunError(f"{_what(experiment)}: {error or type(error).__name__}") from error


def carry_out(
    runs: Sequence[Planned],
    rig: Rig,
    executor: Executor,
    done: Callable[[Finished], Any],
    keeper: Keeper,
    first: int = 0,
) -> list[Measurement]:
    """Run the runs that `keeper` has not stored yet, for which `rig` is prepared; returns the
    figures of all runs.

    `first` is the number of the first run in the keeper's plan. Results are sorted by the plan's
    `place`, whatever the order of the runs.
    """
    kept = {number - first: one for number, one in keeper.kept.items()}
    measured = {planned.place: kept.get(number) for number, planned in enumerate(runs)}
    left = [number for number in range(len(runs)) if number not in kept]

    def ended(event: Ended) -> None:
        number = left[event.number]
        planned, found = runs[number], event.found
        assert isinstance(found, KeptRun), "figures were asked for"
        # A task names a kernel by its key, the plan as the user does.
        figures = replace(found.measurement, scheduler=planned.scheduler.label)
        measured[planned.place] = figures
        finished = Finished(
            planned,
            figures,
            event.begun_at,
            event.ended_at,
            found.raw,
            found.device_before,
            found.device_after,
        )
        keeper.keep(first + number, finished)
        done(finished)

    executor.run([_task(runs[number], rig) for number in left], ended)
    return [one for _, one in sorted(measured.items()) if one is not None]


def _task(planned: Planned, rig: Rig) -> Task:
    spec, experiment = rig.alone(planned.experiment)
    return Task(spec, experiment, repeat=planned.repeat)


def _kept_of(task: Task, result: Result) -> KeptRun:
    figures = measure(task.experiment, result, repeat=task.repeat)
    return KeptRun(figures, result.raw, result.device_before, result.device_after)


def _what(experiment: Experiment) -> str:
    return f"{experiment.job.name} on {experiment.disk.label} under {experiment.scheduler.label}"
