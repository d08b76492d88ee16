"""Cells of any job: job files and workloads of the user, or drawn by a seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from blklab.agreement import draw
from blklab.agreement.run import Planned
from blklab.base.catalogue import Entry
from blklab.domain import core, specs
from blklab.domain.experiment import Disk

SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
DISKS = ("wd10ezrx", "su800-128gb")
"""The default schedulers."""


def plan(disks: Sequence[str], schedulers: Sequence[str], jobs: Sequence[Entry]) -> list[Planned]:
    """Each job on each disk under each scheduler. InputError if one is wrong."""
    found = _disks(disks)
    return [cell for disk in found for job in jobs for cell in _cells(disk, schedulers, job)]


def plan_drawn(
    disks: Sequence[str],
    schedulers: Sequence[str],
    seed: int,
    count: int,
    *,
    buffered: bool = False,
) -> list[Planned]:
    """The first `count` jobs that `seed` draws for each disk. InputError if a name is wrong."""
    return [
        cell
        for disk in _disks(disks)
        for number in range(count)
        for cell in _cells(disk, schedulers, drawn(disk, seed, number, buffered=buffered))
    ]


def drawn(disk: Disk, seed: int, number: int, *, buffered: bool = False) -> Entry:
    """A job that `seed` draws for this disk."""
    rotational = core.disk_model(disk).limits.rotational
    return draw.job(seed, number, rotational=rotational, buffered=buffered)


def _disks(names: Iterable[str]) -> list[Disk]:
    return [specs.disk(name) for name in tuple(names) or DISKS]


def _cells(disk: Disk, schedulers: Sequence[str], job: Entry) -> list[Planned]:
    return [Planned(disk.label, disk, scheduler, job) for scheduler in schedulers or SCHEDULERS]
