"""Run the matrix: each cell on the simulator and in a guest, several cells at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from blklab.agreement.matrix import DiskCase, Load
from blklab.agreement.measure import RIGS, Cell, figures, figures_at_disk, order
from blklab.domain import specs
from blklab.domain.experiment import Experiment, RigSpec
from blklab.domain.result import Result
from blklab.domain.task import Task
from blklab.execute import Ended, Executor

MEMORY = "memory_kb=1048576"
"""What two guests can have at a time."""
HOST = (
    "submit_ns=0,complete_ns=0,syscall_ns=0,copy_mb_s=0,cpus=1,hz=100,budget=0,partitions=1,"
    f"{MEMORY}"
)
"""As in a guest: one CPU whose work is free, no file system, a driver without a budget."""


@dataclass(frozen=True)
class Planned:
    """One cell to be."""

    place: DiskCase
    scheduler: str
    load: Load

    def experiment(self, seed: int) -> Experiment:
        """Its run, on the default host."""
        job = self.load.entry(self.place.seconds)
        return Experiment(job, specs.disk(self.place.disk), specs.scheduler(self.scheduler), seed)


def plan(
    places: Sequence[DiskCase], schedulers: Sequence[str], loads: Sequence[Load]
) -> list[Planned]:
    """All combinations, in the order of the table; without `schedulers` those of each load."""
    return [
        Planned(place, scheduler, load)
        for place in places
        for load in loads
        for scheduler in schedulers or load.schedulers
    ]


def run(
    cells: Sequence[Planned],
    kernel: str | None,
    executor: Executor,
    seed: int,
    done: Callable[[Cell], None],
) -> list[Cell]:
    """Every cell, in the order of `cells`; `done` is called after each, in this thread.

    BlklabError if a run fails; KeyboardInterrupt ends all guests first.
    """
    tasks = [
        # A cell's two runs follow each other, so few results wait for their other half.
        Task(spec, replace(planned.experiment(seed), host=specs.host([host])), "result")
        for planned in cells
        for spec, host in (
            (RigSpec("sim"), HOST),
            (RigSpec("kernel", kernel=kernel, driver=planned.load.driver), MEMORY),
        )
    ]
    halves: dict[int, Result] = {}
    found: dict[int, Cell] = {}

    def ended(event: Ended) -> None:
        assert isinstance(event.found, Result), "whole results were asked for"
        halves[event.number] = event.found
        number = event.number // len(RIGS)
        ours, real = (number * len(RIGS) + half for half in range(len(RIGS)))
        if ours in halves and real in halves:
            found[number] = _cell(cells[number], halves.pop(ours), halves.pop(real))
            done(found[number])

    executor.run(tasks, ended)
    return [found[number] for number in range(len(cells))]


def _cell(planned: Planned, ours: Result, real: Result) -> Cell:
    native = planned.load.driver == "native"
    both = (figures(ours), figures(real)) if native else figures_at_disk(ours, real)
    return Cell(
        place=planned.place.name,
        disk=specs.disk(planned.place.disk).label,
        scheduler=planned.scheduler,
        load=planned.load.name,
        driver=planned.load.driver,
        sim=both[0],
        kernel=both[1],
        latency_of="processes" if native else "disk",
        order=order(ours, real) if native else None,
    )
