"""What is compared when nothing is said."""

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
"""Several processes want the disk: here the scheduler decides."""
ALONE = ("seqread", "seqwrite", "randread", "randwrite")
"""One process has the disk to itself: here there is little to decide."""
WORKLOADS = COMPETING + ALONE
LINUX = ("none", "mq-deadline", "kyber", "bfq")
"""What a kernel has since its single-queue block layer went, with 5.0."""
_GONE = ("cfq",)
"""Went with that layer, which only had disks of one hardware queue."""


def disks(rig: str) -> tuple[str, ...]:
    """Two models. InputError on a rig of real disks: which of them is not to be guessed."""
    if rig == "live":
        raise InputError("--rig live: which disk? Give --disk DIRECTORY, or --disk /dev/...")
    return DISKS


def schedulers(rig: str) -> tuple[str, ...]:
    """Those that Linux has, and on the simulator the one that many comparisons are about."""
    return LINUX + _GONE if rig == "sim" else LINUX


def left_out(disks: Iterable[Disk], schedulers: Iterable[str]) -> tuple[LeftOut, ...]:
    """What no Linux ever was: a scheduler of the single queue before a disk of several."""
    gone = [name for name in schedulers if name in _GONE]
    return tuple(
        LeftOut(disk.label, name, "Linux had its single queue only before disks with one queue")
        for disk in (disks if gone else ())
        if core.disk_model(disk).limits.hw_queues > 1
        for name in gone
    )
