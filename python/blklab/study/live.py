"""A study on a real disk, which takes the place of all that its file models."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from blklab.base.as_root import as_root
from blklab.base.text import shown
from blklab.domain.experiment import Disk, RigSpec
from blklab.errors import InputError
from blklab.host.devices import modules, queue
from blklab.host.roots import HERE
from blklab.rigs import rig as rig_of
from blklab.rigs.live import target

RIG = "live"


@dataclass(frozen=True)
class RealDisk:
    """A directory or device, and what there is to compare on it."""

    disk: Disk
    schedulers: frozenset[str]
    """Those that each of the disks below has, or the kernel can load."""
    options: Mapping[str, str | None] = field(default_factory=dict)
    """What the rig is told."""

    def lacks(self, scheduler: str) -> str:
        """Why it does not run there; empty if it does."""
        if scheduler in self.schedulers:
            return ""
        return (
            f"{self.disk.label} has no '{scheduler}'; it has {', '.join(sorted(self.schedulers))}"
        )


def real_disk(spec: str, options: Mapping[str, str | None]) -> RealDisk:
    """What the user calls so. InputError if there is none, or if its scheduler is not this user's
    to set: a study compares several."""
    disk = rig_of(RigSpec.told(RIG, options)).find_disk(spec)
    queues = [queue.named(name) for name in target.find(spec).disks]
    for one in queues:
        if not os.access(one.disk / "queue/scheduler", os.W_OK):
            raise InputError(f"{shown(one.name)}: setting schedulers needs root; type: {as_root()}")
    loadable = frozenset(modules.loadable(HERE))
    there = [frozenset(one.schedulers().available) | loadable for one in queues]
    return RealDisk(disk, frozenset.intersection(*there), options)
