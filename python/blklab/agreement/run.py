"""Run the matrix: each cell on the simulator and in a guest, several cells at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from blklab.agreement.matrix import Load, Place
from blklab.agreement.measure import Cell, figures, figures_at_disk, order
from blklab.base import pool
from blklab.domain import specs
from blklab.domain.experiment import Experiment
from blklab.errors import BlklabError
from blklab.rigs.kernel.rig import KernelRig
from blklab.rigs.sim import SimRig

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

    place: Place
    scheduler: str
    load: Load


def plan(
    places: Sequence[Place], schedulers: Sequence[str], loads: Sequence[Load]
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
    threads: int,
    seed: int,
    done: Callable[[Cell], None],
) -> list[Cell]:
    """Every cell, in the order of `cells`; `done` is called after each, in this thread.

    BlklabError if a run fails; KeyboardInterrupt ends all guests first.
    """
    sim = SimRig()
    guests = {
        driver: KernelRig(kernel=kernel, driver=driver)
        for driver in {planned.load.driver for planned in cells}
    }

    def one(planned: Planned) -> Cell:
        disk = specs.disk(planned.place.disk)
        job = planned.load.entry(planned.place.seconds)
        experiment = Experiment(job, disk, planned.scheduler, seed)
        ours = sim.run(replace(experiment, host=specs.host([HOST])))
        guest = guests[planned.load.driver]
        try:
            real = guest.run(replace(experiment, host=specs.host([MEMORY])))
        except BlklabError as error:
            cell = f"{planned.place.name}, {planned.scheduler}, {planned.load.name}"
            error.args = (f"{cell}: {error}",)
            raise
        native = planned.load.driver == "native"
        both = (figures(ours), figures(real)) if native else figures_at_disk(ours, real)
        return Cell(
            place=planned.place.name,
            disk=disk.label,
            scheduler=planned.scheduler,
            load=planned.load.name,
            driver=planned.load.driver,
            sim=both[0],
            kernel=both[1],
            latency_of="processes" if native else "disk",
            order=order(ours, real) if native else None,
        )

    def cancel() -> None:
        sim.cancel()
        for rig in guests.values():
            rig.cancel()

    return pool.run_all(one, cells, threads, done, cancel)
