"""A comparison as plain data, and its runs in the order in which they begin."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

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


def plan(setup: Setup) -> list[Planned]:
    """Every run once: repeat by repeat, each in a random order of its own.

    One block per repeat keeps drift over time (on rigs with a real clock) from favouring early
    runs; all schedulers of a repeat have the same seed, which pairs them, and the same drawn disk,
    if disks are drawn.
    """
    order = random.Random(setup.seed)
    left_out = {(pair.disk, pair.scheduler) for pair in setup.left_out}
    runs = []
    for repeat in range(setup.repeats):
        seed = setup.seed + repeat
        disks = [core.drawn_disk(disk, seed) if setup.vary_disk else disk for disk in setup.disks]
        block = [
            Planned(
                disk,
                workload,
                scheduler,
                repeat,
                (disk_number, workload_number, scheduler_number, repeat),
                Experiment(
                    workload,
                    disks[disk_number],
                    scheduler,
                    seed,
                    setup.host,
                    setup.ignore_unsupported,
                ),
            )
            for disk_number, disk in enumerate(setup.disks)
            for workload_number, workload in enumerate(setup.workloads)
            for scheduler_number, scheduler in enumerate(setup.schedulers)
            if (disk.label, scheduler.label) not in left_out
        ]
        order.shuffle(block)
        runs += block
    return runs
