"""Where the two rigs part: the first request of a cell that they do not issue alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from blklab.agreement.laid_out import Found
from blklab.agreement.measure import Cell, Uncompared
from blklab.agreement.run import Planned, tasks_of
from blklab.agreement.verdict import BAR
from blklab.domain.experiment import LaidOut, Window
from blklab.domain.result import Result
from blklab.domain.task import Task
from blklab.execute import Ended, Executor
from blklab.timelines.difference import Difference, first_difference
from blklab.timelines.timeline import Timeline, build
from blklab.timelines.window import KEPT


@dataclass(frozen=True)
class Parted:
    """The first request of a cell that the rigs do not issue alike."""

    cell: Cell
    requests: int
    """The compared requests of the simulator."""
    left_out: int
    """Later ones, which were not compared: a run keeps the first 100,000."""
    difference: Difference | None
    """The simulator's requests are the first ones of each pair, Linux's the second ones; None if
    all are the same."""


def furthest(ended: Mapping[int, Cell | Uncompared], count: int) -> list[int]:
    """The numbers of up to `count` cells whose figures are not the same, those with the largest
    deviation first."""

    def off(cell: Cell) -> float:
        # A deviation counts by its part of the bar.
        return max(cell.off(what) / most for what, most in BAR.items())

    others = {
        number: off(cell)
        for number, cell in ended.items()
        if isinstance(cell, Cell) and cell.sim != cell.kernel
    }
    return sorted(others, key=others.__getitem__, reverse=True)[:count]


@dataclass(frozen=True)
class Again:
    """The cells of a comparison, to run some of them once more."""

    cells: Sequence[Planned]
    ended: Mapping[int, Cell | Uncompared]
    kernel: str
    seed: int
    host: Mapping[str, int]
    files: Mapping[int, Found]
    """The files of those in file systems, by their numbers."""


def parted(
    again: Again, numbers: Sequence[int], executor: Executor, tell: Callable[[object], None]
) -> list[Parted]:
    """Run the cells of these numbers, and compare their requests one by one; `tell` is called after
    each. RunError if a run fails, which it did not before."""
    found = []
    for number in numbers:
        planned, cell, where = again.cells[number], again.ended[number], again.files.get(number)
        assert isinstance(cell, Cell)
        laid_out = where if isinstance(where, LaidOut) else None
        tasks = [
            replace(task, experiment=replace(task.experiment, window=Window(requests=KEPT)))
            for task in tasks_of(planned, again.kernel, again.seed, again.host, laid_out)
        ]
        ours, real = (_timeline(result, planned) for result in _results(tasks, executor))
        found.append(compared(cell, ours, real))
        tell(found[-1])
    return found


def _results(tasks: Sequence[Task], executor: Executor) -> list[Result]:
    """In the order of the tasks, which want whole results."""
    results: dict[int, Result] = {}

    def keep(events: Sequence[Ended]) -> None:
        for event in events:
            assert isinstance(event.found, Result), "whole results were asked for"
            results[event.number] = event.found

    executor.run(tasks, keep)
    return [results[number] for number in range(len(tasks))]


def compared(cell: Cell, ours: Timeline, real: Timeline) -> Parted:
    """What the disk gets is compared, and when; not for which process, which the two rigs count
    differently where the page cache writes."""
    return Parted(
        cell,
        len(ours.requests),
        ours.requests_left_out,
        first_difference(ours, real, times=True, processes=False),
    )


def _timeline(result: Result, planned: Planned) -> Timeline:
    return build(
        result,
        load=planned.job.name,
        disk=planned.disk.label,
        scheduler=planned.scheduler,
        rig="",
        from_ns=0,
        until_ns=Window().until_ns,
        most=KEPT,
    )
