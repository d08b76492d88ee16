"""A comparison as plain data, and its runs in the order in which they begin."""

from __future__ import annotations

import random
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import overload

from blklab.base.catalogue import Entry
from blklab.base.limits import RUNS_MAX
from blklab.domain import core
from blklab.domain.experiment import Disk, Experiment, SchedulerSpec
from blklab.errors import InputError

OBJECTIVES = ("throughput", "latency", "both")
"""The objectives, which rank schedulers."""
OBJECTIVE_TEXT = {
    "throughput": "bytes per second, reads and writes together; for programs their own figure",
    "latency": "99th percentile of the latency of reads, else of fsync, else of writes",
    "both": "geometric mean of the throughput ratio and the latency ratio",
}

_DRAWN = 256
"""Drawn disks that are held."""


@dataclass(frozen=True)
class LeftOut:
    """A scheduler that is not run on one of the disks."""

    disk: str
    """Its label."""
    scheduler: str
    why: str


@dataclass(frozen=True)
class Setup:
    """These schedulers, on these disks, under these workloads."""

    disks: tuple[Disk, ...]
    workloads: tuple[Entry, ...]
    schedulers: tuple[SchedulerSpec, ...]
    repeats: int
    seed: int
    host: Mapping[str, int] = field(default_factory=dict)
    ignore_unsupported: bool = False
    left_out: tuple[LeftOut, ...] = ()
    vary_disk: bool = False
    """Whether each repeat has its own disk, drawn from the ranges of the file's estimates."""

    def __post_init__(self) -> None:
        _unique("--disk", [disk.label for disk in self.disks])
        _unique("--workload", [workload.name for workload in self.workloads])
        _unique("--scheduler", [scheduler.label for scheduler in self.schedulers])
        if self.runs > RUNS_MAX:
            raise InputError(
                f"{len(self.disks)} disks x {len(self.workloads)} workloads x "
                f"{len(self.schedulers)} schedulers x {self.repeats} repeats are "
                f"{self.runs:,} runs; at most {RUNS_MAX:,} are planned at a time"
            )

    @property
    def runs(self) -> int:
        """The number of runs, if none is left out."""
        return len(self.disks) * len(self.workloads) * len(self.schedulers) * self.repeats


@dataclass(frozen=True)
class Planned:
    """One run."""

    disk: Disk
    workload: Entry
    scheduler: SchedulerSpec
    repeat: int
    place: tuple[int, int, int, int]
    """Disk, workload, scheduler and repeat by number: the order of tables."""
    experiment: Experiment
    """Its disk is the drawn one."""


def _unique(option: str, labels: list[str]) -> None:
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f"{option}: '{label}' is given twice")


class Plan(Sequence[Planned]):
    """Every run once: repeat by repeat, each in a random order of its own.

    One block per repeat keeps drift over time (on rigs with a real clock) from favouring early
    runs; all schedulers of a repeat have the same seed, which pairs them, and the same drawn disk,
    if disks are drawn.

    Only the order is held, four bytes for each run; a run is made when it is asked for.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        left_out = {(pair.disk, pair.scheduler) for pair in setup.left_out}
        self._places = [
            (disk_number, workload_number, scheduler_number)
            for disk_number, disk in enumerate(setup.disks)
            for workload_number in range(len(setup.workloads))
            for scheduler_number, scheduler in enumerate(setup.schedulers)
            if (disk.label, scheduler.label) not in left_out
        ]
        self._order = array("I")
        chance = random.Random(setup.seed)
        for _ in range(setup.repeats):
            block = list(range(len(self._places)))
            chance.shuffle(block)
            self._order.extend(block)
        # The runs of a repeat follow each other, and so do those that are sent to a cluster.
        self._disk = lru_cache(maxsize=_DRAWN)(self._drawn)

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, number: int) -> Planned: ...
    @overload
    def __getitem__(self, number: slice) -> list[Planned]: ...
    def __getitem__(self, number: int | slice) -> Planned | list[Planned]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        if number < 0:
            number += len(self)
        setup = self._setup
        place = self._places[self._order[number]]
        disk_number, workload_number, scheduler_number = place
        repeat = number // len(self._places)
        workload, scheduler = setup.workloads[workload_number], setup.schedulers[scheduler_number]
        return Planned(
            setup.disks[disk_number],
            workload,
            scheduler,
            repeat,
            (*place, repeat),
            Experiment(
                workload,
                self._disk(disk_number, repeat),
                scheduler,
                setup.seed + repeat,
                setup.host,
                setup.ignore_unsupported,
            ),
        )

    def _drawn(self, number: int, repeat: int) -> Disk:
        setup = self._setup
        disk = setup.disks[number]
        return core.drawn_disk(disk, setup.seed + repeat) if setup.vary_disk else disk


def plan(setup: Setup) -> Plan:
    """All runs of a comparison in their order; see `Plan`."""
    return Plan(setup)
