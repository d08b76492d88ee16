"""The runs of a comparison: what is stored is not run again."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

from blklab.domain.comparison import Planned
from blklab.domain.events import Finished, Keeper
from blklab.domain.measurement import Measurement
from blklab.domain.task import Task
from blklab.execute.identity import key_of
from blklab.execute.interface import Ended, Executor, KeptRun
from blklab.rigs import Rig


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
    measured = {runs[number].place: one for number, one in kept.items() if 0 <= number < len(runs)}
    left = array("I", (number for number in range(len(runs)) if number not in kept))

    def finished(event: Ended) -> tuple[int, Finished]:
        number = left[event.number]
        planned, found = runs[number], event.found
        assert isinstance(found, KeptRun), "figures were asked for"
        # A task names a kernel by its key, the plan as the user does.
        figures = replace(found.measurement, scheduler=planned.scheduler.label)
        measured[planned.place] = figures
        return first + number, Finished(
            planned,
            figures,
            event.begun_at,
            event.ended_at,
            found.raw,
            found.device_before,
            found.device_after,
            key_of(tasks[event.number]) if keeper.name else "",
        )

    def ended(events: Sequence[Ended]) -> None:
        keeper.keep(every := dict(map(finished, events)))
        for one in every.values():
            done(one)

    tasks = _Tasks(runs, left, rig)
    executor.run(tasks, ended)
    return [one for _, one in sorted(measured.items())]


def take_over(runs: Sequence[Planned], rig: Rig, keeper: Keeper) -> int:
    """Take over what other comparisons of the store have of these runs; returns their number."""
    if not keeper.name:
        return 0
    left = [number for number in range(len(runs)) if number not in keeper.kept]
    tasks = _Tasks(runs, left, rig)
    keys = {number: key_of(task) for number, task in zip(left, tasks, strict=True)}
    return keeper.take_over({number: key for number, key in keys.items() if key})


@dataclass(frozen=True)
class _Tasks(Sequence[Task]):
    """The tasks of some runs; each is made when it is asked for."""

    runs: Sequence[Planned]
    numbers: Sequence[int]
    rig: Rig

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, place: int) -> Task: ...
    @overload
    def __getitem__(self, place: slice) -> list[Task]: ...
    def __getitem__(self, place: int | slice) -> Task | list[Task]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        planned = self.runs[self.numbers[place]]
        spec, experiment = self.rig.alone(planned.experiment)
        return Task(spec, experiment, repeat=planned.repeat)
