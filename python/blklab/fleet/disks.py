"""The disks of collected machines, described as this machine's are."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from blklab.domain import core
from blklab.domain.experiment import SchedulerSpec
from blklab.fleet import answer
from blklab.fleet.answer import Answer
from blklab.host.devices import device
from blklab.host.devices.device import Device
from blklab.host.devices.queue import Queue, QueueError
from blklab.host.roots import Roots

_TICK_MS = 5
"""Kernels round times to ticks of up to 10 ms."""
_OF_KERNEL = ("async_depth",)
"""Tunables whose default depends on the queue."""
_ROUNDED = {"slice_idle_us": "slice_idle"}
"""A tunable that says the same more exactly."""


@dataclass(frozen=True)
class FleetDisk:
    """A disk of a machine."""

    host: str
    """The machine's label."""
    name: str
    """The kernel's: ``sda``."""
    model: str
    """As it reports it, with single spaces; may be empty."""
    transport: str
    """``sata``, ``nvme``, ``virtio`` ...; empty if it is not known."""
    rotational: bool
    size_bytes: int
    hardware_queues: int
    scheduler: str
    """The active one."""
    tunables: tuple[tuple[str, str], ...]
    """Those of its tunables that do not have their defaults."""
    available: tuple[str, ...]
    """Schedulers that are built in or loaded."""
    number: str
    """Major and minor, as in recordings."""
    default: str | None
    """The kernel's own choice; None if sysfs does not show it."""

    @property
    def place(self) -> str:
        """``db1:sda``."""
        return f"{self.host}:{self.name}"

    @property
    def present(self) -> SchedulerSpec:
        """The scheduler that it has now."""
        return SchedulerSpec(self.scheduler, self.tunables)

    @property
    def kind(self) -> str:
        """``sata hdd``."""
        return f"{self.transport} {'hdd' if self.rotational else 'ssd'}".strip()


@dataclass(frozen=True)
class Machine:
    """A machine that has answered, laid out in a directory."""

    label: str
    collected: str
    """When, in UTC."""
    host_name: str
    """Its own name; empty if it is not known."""
    release: str
    """The version of its kernel."""
    roots: Roots
    disks: tuple[FleetDisk, ...]
    left_out: tuple[str, ...]
    """Disks that are not judged, with the reason."""
    every: tuple[str, ...]
    """The kernel's names of all its disks."""

    def queue(self, disk: str) -> Queue:
        """The queue of a disk by the kernel's name."""
        return Queue.of_disk(disk, self.roots)


def machine(label: str, found: Answer, collected: str, top: Path) -> Machine:
    """The machine of an answer, laid out below `top`, an empty directory. InputError."""
    roots = answer.write_tree(found, top, f"the answer of {label}")
    around = device.Surroundings.read(roots)
    disks: list[FleetDisk] = []
    left_out: list[str] = []
    for name in sorted(found.disks):
        with contextlib.suppress(QueueError):
            one = device.describe(name, around)
            if why := _why_not(one, roots):
                left_out.append(f"{name}: {why}")
            else:
                disks.append(_disk(label, one))
    return Machine(
        label,
        collected,
        found.host_name,
        found.values.get("kernel/osrelease", ""),
        roots,
        tuple(disks),
        tuple(left_out),
        tuple(sorted(found.disks)),
    )


def _why_not(one: Device, roots: Roots) -> str:
    """Why a disk is not judged; empty if it is."""
    hidden = roots.sys / "block" / one.name / "hidden"
    if hidden.is_file() and hidden.read_bytes().strip() == b"1":
        return "a path of a disk that has several"
    if one.removable:
        return "it is removable"
    if one.rotational is None or one.schedulers is None or not one.schedulers.active:
        return "its queue does not say enough"
    if one.schedulers.available == ("none",):
        return "no scheduler fits it"
    return "" if one.size_bytes else "it is empty"


def _disk(host: str, one: Device) -> FleetDisk:
    assert one.schedulers is not None and one.identity is not None
    scheduler = one.schedulers.active
    return FleetDisk(
        host,
        one.name,
        " ".join(one.identity.model.split()),
        one.identity.transport,
        bool(one.rotational),
        one.size_bytes,
        one.hardware_queues,
        scheduler,
        _changed(scheduler, one.tunables),
        one.schedulers.available,
        one.number,
        one.decision.default if one.decision else None,
    )


def _changed(scheduler: str, values: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The tunables that do not have the defaults of the simulator's table, which are Linux's."""
    tables = {info.name: info.tunables for info in core.schedulers()}
    found: dict[str, str] = {}
    for row in tables.get(scheduler, ()):
        value = values.get(row.name, "")
        if row.name in _OF_KERNEL or not value.isascii() or not value.isdigit():
            continue
        near = _TICK_MS if row.unit == "ms" and row.default else 0
        if abs(int(value) - row.default) > near:
            found[row.name] = value
    for exact, rounded in _ROUNDED.items():
        if exact in found:
            found.pop(rounded, None)
    return tuple(sorted(found.items()))
