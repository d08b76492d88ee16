"""A study on a real disk, which replaces all disk models of its file."""

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
    """A directory or device, and the schedulers that can be compared on it."""

    disk: Disk
    schedulers: frozenset[str]
    """The schedulers that each disk below has, or that the kernel can load."""
    options: Mapping[str, str | None] = field(default_factory=dict)
    """The rig's options."""

    def lacks(self, scheduler: str) -> str:
        """The reason if it cannot run there; else empty."""
        if scheduler in self.schedulers:
            return ""
        return (
            f"{self.disk.label} has no '{scheduler}'; it has {', '.join(sorted(self.schedulers))}"
        )


def real_disk(spec: str, options: Mapping[str, str | None]) -> RealDisk:
    """The disk that the user names. InputError if there is none, or if this user may not set its
    scheduler, because a study compares several."""
    disk = rig_of(RigSpec.of_options(RIG, options)).find_disk(spec)
    queues = [queue.named(name) for name in target.find(spec).disks]
    for one in queues:
        if not os.access(one.disk / "queue/scheduler", os.W_OK):
            raise InputError(f"{shown(one.name)}: setting schedulers needs root; type: {as_root()}")
    loadable = frozenset(modules.loadable(HERE))
    there = [frozenset(one.schedulers().available) | loadable for one in queues]
    return RealDisk(disk, frozenset.intersection(*there), options)
