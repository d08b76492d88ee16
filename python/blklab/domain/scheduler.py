"""A scheduler as the user writes it, ``mq-deadline:fifo_batch=1``, with its tunables.

The core parses the text for every rig, and checks the simulator's schedulers by its tables. Any
other name may come from the kernel or from a patch: the kernel accepts or refuses it, with an error
of one line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypedDict

from blklab import _core
from blklab.base.text import shown
from blklab.domain import core, plugins
from blklab.domain.conditions import KernelData
from blklab.domain.experiment import SchedulerSpec
from blklab.errors import InputError

# In 6.12 `async_depth` is one of the scheduler's settings, in 7.3 one of the queue's.
_ASYNC_DEPTH_OF_QUEUE = 7
_LEFT_TO_KERNEL = {
    "nr_requests": 0,
    "async_depth": 0,
    "max_sectors_kb": 0,
    "read_ahead_kb": -1,
    "wbt_lat_usec": -1,
}
"""The values that mean the kernel's own choice in the simulator: kernels refuse most of them."""
ADAPTER_TAGS = 32
"""The queue depth of a SATA adapter."""
GUEST_TAGS = 128
"""The queue depth of ublk in a guest: see the facts about the guest in the notes for developers."""


Setting: TypeAlias = int | str
"""A tunable's value; the text for a tunable that only the kernel has."""


class GuestScheduler(TypedDict):
    """A scheduler's part of ``guest.json``."""

    scheduler: str
    queue: dict[str, Setting]
    """For ``queue/``, in this order."""
    iosched: dict[str, Setting]
    """For ``queue/iosched/``."""


@dataclass(frozen=True)
class Scheduler:
    """A scheduler with its tunables."""

    name: str
    settings: dict[str, Setting]
    """All known tunables of it and of the queue, with the changes applied."""
    changed: dict[str, Setting]
    """The tunables that the user has set."""
    kernel: KernelData | None = None
    """The kernel that it runs on, if the rig has several; None is the rig's."""

    def for_guest(self, queue: Mapping[str, Setting], version: str) -> GuestScheduler:
        """Its part of ``guest.json`` for a kernel of that `version` (``7.3.4``).

        `queue` holds the defaults for ``queue/``.
        """
        of_queue = {row.name for row in core.environment()["queue"]} | queue.keys()
        if has_queue_async_depth(version):
            of_queue.add("async_depth")
        told = {**queue, **self.changed}
        # nr_requests first: Linux 7 changes async_depth with it.
        ordered = sorted(told.items(), key=lambda setting: setting[0] != "nr_requests")
        there = {name: value for name, value in ordered if name in of_queue}
        iosched = {name: value for name, value in told.items() if name not in of_queue}
        return {"scheduler": self.name, "queue": there, "iosched": iosched}


def has_queue_async_depth(version: str) -> bool:
    """Whether `async_depth` belongs to the queue in a kernel of that `version`."""
    return int(version.partition(".")[0]) >= _ASYNC_DEPTH_OF_QUEUE


def simulated(spec: str | SchedulerSpec) -> Scheduler:
    """A scheduler of the simulator. InputError if there is no such scheduler or tunable."""
    return _parsed(spec, real=False)


def parse(spec: str | SchedulerSpec) -> Scheduler:
    """A scheduler of any kernel. InputError if it cannot be valid."""
    return _parsed(spec, real=True)


def in_core(spec: str | SchedulerSpec, *, real: bool = False) -> _core.Scheduler:
    """The core's scheduler: a simulated one, or with `real` one of any kernel. InputError."""
    if isinstance(spec, SchedulerSpec):
        name, settings, plugin = spec.name, list(spec.settings), spec.plugin
    else:
        name, given = split(spec)
        settings, plugin = list(given.items()), plugins.hash_of(name)
    if plugin is not None and real:
        raise InputError(f"scheduler '{name}' is a plug-in; expected --rig sim")
    found = plugins.find(plugin) if plugin else None
    with core.core_types():
        return _core.Scheduler(name, settings, real, found)


def split(text: str) -> tuple[str, dict[str, str]]:
    """Name and tunables as text, with unchecked values. InputError."""
    with core.core_types():
        name, settings = _core.split_scheduler(shown(text))
    return name, dict(settings)


def _parsed(spec: str | SchedulerSpec, *, real: bool) -> Scheduler:
    found = in_core(spec, real=real)
    own: dict[str, Setting] = dict(found.own)
    changed: dict[str, Setting] = {
        name: value
        for name, value in found.changed.items()
        if not real or value != _LEFT_TO_KERNEL.get(name)
    }
    return Scheduler(found.name, {**found.settings, **own}, changed | own)
