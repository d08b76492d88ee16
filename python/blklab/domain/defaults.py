"""The default disks, workloads and schedulers of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blklab.domain import core
from blklab.domain.comparison import LeftOut
from blklab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from blklab.domain.experiment import Disk

DISKS = ("desktop-5900rpm", "950pro-256gb")
COMPETING = ("startup-vs-copy", "readers-vs-writer", "database-vs-backup")
"""Several processes compete for the disk: the scheduler matters."""
ALONE = ("seqread", "seqwrite", "randread", "randwrite")
"""One process has the disk to itself: the scheduler matters little."""
WORKLOADS = COMPETING + ALONE
LINUX = ("none", "mq-deadline", "kyber", "bfq")
"""The schedulers of kernels since 5.0, which removed the single-queue block layer."""
LOCAL = "local"
"""Where runs are carried out: in this process."""
_GONE = ("cfq",)
"""Removed with that layer, which only served disks with one hardware queue."""


def disks(rig: str) -> tuple[str, ...]:
    """Two models. InputError on a rig of real disks, which needs an explicit disk."""
    if rig == "live":
        raise InputError("--rig live: expected --disk DIRECTORY or --disk /dev/...")
    return DISKS


def schedulers(rig: str) -> tuple[str, ...]:
    """Linux's own schedulers, and on the simulator also cfq, the subject of many comparisons."""
    return LINUX + _GONE if rig == "sim" else LINUX


def of_linux(disk: Disk) -> str:
    """The scheduler that Linux itself chooses for a disk (``elevator_get_default``)."""
    return "mq-deadline" if core.disk_model(disk).limits.hw_queues == 1 else "none"


def left_out(disks: Iterable[Disk], schedulers: Iterable[str]) -> tuple[LeftOut, ...]:
    """The reason to skip a combination that Linux never had: a single-queue scheduler on a disk
    with several hardware queues."""
    gone = [name for name in schedulers if name in _GONE]
    return tuple(
        LeftOut(disk.label, name, "Linux had its single queue only before disks with one queue")
        for disk in (disks if gone else ())
        if core.disk_model(disk).limits.hw_queues > 1
        for name in gone
    )
