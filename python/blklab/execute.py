"""Run experiments, several at a time; each end is an event.

An `Executor` has one method, so that another one can run the same tasks elsewhere. What a task
measures is reduced where it runs: what travels, and what waits for the others, is small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from blklab.base import pool
from blklab.domain.comparison import Planned
from blklab.domain.events import Finished, Keeper
from blklab.domain.experiment import Experiment
from blklab.domain.measurement import Measurement, measure
from blklab.domain.result import Result
from blklab.errors import BlklabError, RunError
from blklab.rigs import Rig

Reduced = TypeVar("Reduced")


@dataclass(frozen=True)
class Task(Generic[Reduced]):
    """An experiment on a rig, and what is wanted of its result."""

    experiment: Experiment
    rig: Rig
    reduce: Callable[[Result], Reduced]


@dataclass(frozen=True)
class Ended(Generic[Reduced]):
    """A task that has ended."""

    number: int
    """Among the tasks."""
    found: Reduced
    begun_at: datetime
    """UTC, as `ended_at`."""
    ended_at: datetime


class Executor(Protocol):
    """Runs tasks somewhere."""

    def run(self, tasks: Sequence[Task[Reduced]], ended: Callable[[Ended[Reduced]], None]) -> None:
        """Run all; they begin in the order of `tasks`. `ended` is called after each, in this
        thread, as they end.

        BlklabError of the first that fails, KeyboardInterrupt if the user says so: those under
        way are cancelled, and nothing runs any more when this raises.
        """


@dataclass(frozen=True)
class Local:
    """Runs them in threads of this process: no rig holds the interpreter's lock while it runs."""

    threads: int

    def run(self, tasks: Sequence[Task[Reduced]], ended: Callable[[Ended[Reduced]], None]) -> None:
        """See `Executor`."""
        rigs = list({id(task.rig): task.rig for task in tasks}.values())
        threads = min([self.threads, *(rig.at_once for rig in rigs)])

        def cancel() -> None:
            for rig in rigs:
                rig.cancel()

        pool.run_all(_one, list(enumerate(tasks)), threads, ended, cancel)


def carry_out(
    runs: Sequence[Planned],
    rig: Rig,
    executor: Executor,
    done: Callable[[Finished], Any],
    keeper: Keeper,
    first: int = 0,
) -> list[Measurement]:
    """Run what `keeper` has not kept before, which `rig` is prepared for; figures of all runs.

    `first` is the first one's number in the keeper's plan. Sorted by the plan's `place`, whatever
    the order in which they ran and ended.
    """
    kept = {number - first: one for number, one in keeper.kept.items()}
    measured = {planned.place: kept.get(number) for number, planned in enumerate(runs)}
    left = [number for number in range(len(runs)) if number not in kept]

    def ended(event: Ended[_Kept]) -> None:
        number = left[event.number]
        planned, found = runs[number], event.found
        measured[planned.place] = found.measurement
        finished = Finished(
            planned,
            found.measurement,
            event.begun_at,
            event.ended_at,
            found.raw,
            found.device_before,
            found.device_after,
        )
        keeper.keep(first + number, finished)
        done(finished)

    tasks = [Task(runs[n].experiment, rig, partial(_kept_of, runs[n])) for n in left]
    executor.run(tasks, ended)
    return [one for _, one in sorted(measured.items()) if one is not None]


@dataclass(frozen=True)
class _Kept:
    """What is kept of a result."""

    measurement: Measurement
    raw: Mapping[str, bytes]
    device_before: Mapping[str, Any] | None
    device_after: Mapping[str, Any] | None


def _kept_of(planned: Planned, result: Result) -> _Kept:
    return _Kept(measure(planned, result), result.raw, result.device_before, result.device_after)


def _one(numbered: tuple[int, Task[Reduced]]) -> Ended[Reduced]:
    number, task = numbered
    begun_at = datetime.now(UTC)
    try:
        found = task.reduce(task.rig.run(task.experiment))
        return Ended(number, found, begun_at, datetime.now(UTC))
    except (BlklabError, KeyboardInterrupt):
        raise
    except MemoryError as error:
        raise RunError(f"{_what(task.experiment)}: out of memory; try fewer --jobs") from error
    except Exception as error:
        raise RunError(f"{_what(task.experiment)}: {error or type(error).__name__}") from error


def _what(experiment: Experiment) -> str:
    return f"{experiment.job.name} on {experiment.disk.label} under {experiment.scheduler}"
