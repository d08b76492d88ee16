"""What is to be compared, and one of its runs, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from blklab.base.catalogue import Entry
from blklab.base.limits import RUNS_MAX
from blklab.domain.experiment import Disk, Experiment, SchedulerSpec
from blklab.errors import InputError

OBJECTIVES = ("throughput", "latency", "both")
"""What schedulers can be ranked by."""
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
    """The question: these schedulers, on these disks, under these workloads."""

    disks: tuple[Disk, ...]
    workloads: tuple[Entry, ...]
    schedulers: tuple[SchedulerSpec, ...]
    repeats: int
    seed: int
    host: Mapping[str, int] = field(default_factory=dict)
    ignore_unsupported: bool = False
    left_out: tuple[LeftOut, ...] = ()
    vary_disk: bool = False
    """Whether each repeat has a disk of its own, drawn from the ranges of the file's estimates."""

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
        """How many there are, if none is left out."""
        return len(self.disks) * len(self.workloads) * len(self.schedulers) * self.repeats


@dataclass(frozen=True)
class Planned:
    """One run."""

    disk: Disk
    workload: Entry
    scheduler: SchedulerSpec
    repeat: int
    place: tuple[int, int, int, int]
    """Disk, workload, scheduler and repeat by number: the order for people."""
    experiment: Experiment
    """Its disk is the drawn one."""


def _unique(option: str, labels: list[str]) -> None:
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f"{option}: '{label}' is given twice")
