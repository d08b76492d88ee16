"""Everything about a block device that needs no root, as plain data."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from blklab.host import reading
from blklab.host.devices import cgroups, identity, modules, mounts, queue, stack
from blklab.host.devices.cgroups import Setting
from blklab.host.devices.deciders import order
from blklab.host.devices.deciders.order import Decision
from blklab.host.devices.identity import Identity
from blklab.host.devices.mounts import Filesystem, Mount
from blklab.host.devices.queue import MissingError, Queue, QueueError, Schedulers
from blklab.host.roots import HERE, Roots

_SECTOR_BYTES = 512
"""The unit of ``size`` in sysfs, whatever the disk's own block size is."""


@dataclass(frozen=True)
class Device:
    """A disk, a partition, or a device on top of them."""

    name: str
    """The kernel's: ``sda``, ``dm-0``; with ``!`` where the node has a directory."""
    kind: str
    """One of `kinds.KINDS`, in words."""
    number: str
    """Major and minor, as ``8:0``."""
    mapped_name: str
    """The device mapper's; empty for others."""
    size_bytes: int
    rotational: bool | None
    """None if the kernel does not say."""
    read_only: bool
    removable: bool
    identity: Identity | None
    """None for partitions: it is the disk's."""
    ids: tuple[str, ...]
    """Its names in ``/dev/disk/by-id``."""
    queue_depth: int | None
    """Commands that the device takes at a time, per hardware queue where it has several."""
    hardware_queues: int
    schedulers: Schedulers | None
    """None for partitions, and for devices without a choice of schedulers."""
    loadable: dict[str, str]
    """Schedulers that would have to be loaded, and their modules."""
    tunables: dict[str, str]
    """The active scheduler's, by name."""
    attributes: dict[str, str]
    """The queue's other settings, by name in sysfs."""
    cgroups: tuple[Setting, ...]
    """What cgroups set for this device."""
    filesystem: Filesystem | None
    mounts: tuple[Mount, ...]
    swap: bool
    """It is in use as swap."""
    partitions: tuple[str, ...]
    """Names, as in the next three."""
    below: tuple[str, ...]
    """Devices on which it is stacked."""
    above: tuple[str, ...]
    """Devices that are stacked on it."""
    disks: tuple[str, ...]
    """The disks at the bottom of the stack."""
    backing_file: str
    """The file behind a loop device; empty for others."""
    decision: Decision | None
    """What set its scheduler; None if nothing is known to."""

    @property
    def node(self) -> str:
        """``/dev/sda``."""
        return f"/dev/{self.name.replace('!', '/')}"

    def to_json(self) -> dict[str, Any]:
        """As plain data; the queue's settings by their names in sysfs."""
        return {"node": self.node} | asdict(self)


@dataclass(frozen=True)
class Surroundings:
    """What is read once for all devices."""

    roots: Roots
    mounts: list[Mount]
    swaps: set[str]
    ids: dict[str, list[str]]
    loadable: dict[str, str]
    cgroups: list[Setting]

    @classmethod
    def read(cls, roots: Roots = HERE) -> Surroundings:
        """The state of the machine at `roots`."""
        every = mounts.mounts(roots)
        return cls(
            roots,
            every,
            mounts.swaps(roots),
            stack.ids(roots),
            modules.loadable(roots),
            cgroups.settings(every, roots),
        )


def devices(roots: Roots = HERE) -> list[Device]:
    """Every disk with its partitions behind it; one that disappears meanwhile is left out."""
    around = Surroundings.read(roots)
    found = []
    for disk in queue.disks(roots):
        for name in (disk, *stack.partitions(roots.sys / "block" / disk)):
            with contextlib.suppress(QueueError):
                found.append(describe(name, around))
    return found


def describe(name: str, around: Surroundings) -> Device:
    """One device by the kernel's name. GoneError if it disappears while it is looked at."""
    roots = around.roots
    directory = roots.sys / "class/block" / name
    number = reading.value(directory / "dev")
    is_partition = (directory / "partition").exists()
    whole = None if is_partition else queue.Queue.of_disk(name, roots)
    mounted = mounts.of_device(name, number, around.mounts, roots)
    attributes = whole.attributes() if whole else {}
    rotational = attributes.get("rotational")
    found = Device(
        name=name,
        kind=stack.kind(name, roots),
        number=number,
        mapped_name=stack.mapped_name(name, roots),
        size_bytes=int(reading.value(directory / "size") or 0) * _SECTOR_BYTES,
        rotational=None if rotational is None else rotational == "1",
        read_only=reading.value(directory / "ro") == "1",
        removable=reading.value(directory / "removable") == "1",
        identity=identity.identity(directory) if whole else None,
        ids=tuple(around.ids.get(name, [])),
        queue_depth=_depth(directory) if whole else None,
        hardware_queues=len(reading.names(directory / "mq")),
        schedulers=_schedulers(whole),
        loadable=_loadable(whole, around.loadable),
        tunables=whole.tunables() if whole else {},
        attributes=attributes,
        cgroups=tuple(cgroups.of_device(number, around.cgroups)) if whole else (),
        filesystem=mounts.held_by(name, mounted, roots),
        mounts=tuple(mounted),
        swap=name in around.swaps,
        partitions=tuple(stack.partitions(directory)),
        below=tuple(stack.below(name, around.mounts, roots)),
        above=tuple(reading.names(directory / "holders")),
        disks=tuple(stack.disks_below(name, around.mounts, roots)),
        backing_file=stack.backing_file(name, roots),
        decision=order.decide(whole, roots) if whole else None,
    )
    if not directory.is_dir():
        raise queue.GoneError(name, "size")
    return found


def _depth(directory: Path) -> int | None:
    said = reading.value(directory / "device/queue_depth")
    tags = [
        reading.value(directory / "mq" / name / "nr_tags")
        for name in reading.names(directory / "mq")
    ]
    known = [int(text) for text in ([said] if said else tags) if text.isdigit()]
    return max(known, default=None)


def _schedulers(whole: Queue | None) -> Schedulers | None:
    try:
        return whole.schedulers() if whole else None
    except MissingError:
        return None


def _loadable(whole: Queue | None, every: dict[str, str]) -> dict[str, str]:
    found = _schedulers(whole)
    # A disk that offers only none has no queue for a scheduler.
    if found is None or found.available == ("none",):
        return {}
    return {name: module for name, module in every.items() if name not in found.available}
