"""``blklab.devices`` and ``blklab.restore``: this machine's disks."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab.base.journal import Journal, default_directory
from blklab.host import roots
from blklab.host.devices import device, modules, queue
from blklab.host.devices.device import Device
from blklab.host.udev import judge
from blklab.host.udev.parse import Line
from blklab.rigs.live import leftovers, target


@dataclass(frozen=True)
class Devices:
    """Block devices, and the settings of the kernel and udev for all of them."""

    devices: tuple[Device, ...]
    """The requested disks; without a name all devices, also partitions and empty ones."""
    partitions: dict[str, Device]
    """The partitions of the named disks, by name."""
    kernel: str
    kernel_config: dict[str, str]
    """By scheduler ``y``, ``m`` or ``n``; empty if the configuration is not found."""
    blocked_modules: dict[str, str]
    """Modules of schedulers that may not be loaded, with the reason."""
    unreadable_rules: tuple[Line, ...]
    """Lines of udev's rules that cannot be parsed."""

    def to_json(self) -> dict[str, Any]:
        """Plain data, as ``blklab devices --json`` prints it."""
        return {
            "format": 1,
            "kernel": self.kernel,
            "kernel_config": self.kernel_config,
            "blocked_modules": self.blocked_modules,
            "unreadable_rules": [
                {"file": str(line.file), "line": line.number, "error": line.error}
                for line in self.unreadable_rules
            ],
            "devices": [one.to_json() for one in self.devices],
        }


@dataclass(frozen=True)
class Restored:
    """Leftovers of killed runs, a line each."""

    done: tuple[str, ...]
    """Restored or removed."""
    busy: tuple[str, ...]
    """Skipped, because a running blklab uses them."""
    problems: tuple[str, ...]
    """Failures to restore, with the reason."""


def devices(names: Sequence[str] = ()) -> Devices:
    """This machine's disks: schedulers, settings, contents, and what sets them.

    Args:
        names: ``sda``, ``/dev/sda``, ``/dev/disk/by-id/...``; a directory means the disks below
            it. None: all devices.

    Raises:
        blklab.errors.InputError: there is no such device, or no disk below the directory.
    """
    around = device.Surroundings.read(roots.HERE)
    parts: dict[str, Device] = {}
    if names:
        meant = dict.fromkeys(name for one in names for name in _meant(one))
        found = [device.describe(name, around) for name in meant]
        parts = {name: device.describe(name, around) for one in found for name in one.partitions}
    else:
        found = sorted(device.devices(roots.HERE), key=lambda one: _as_counted(one.name))
    return Devices(
        tuple(found),
        parts,
        modules.release(roots.HERE),
        modules.configured(roots.HERE),
        modules.blocked(modules.loadable(roots.HERE).values(), roots.HERE),
        tuple(judge.broken(roots.HERE)),
    )


def restore() -> Restored:
    """Restore disk settings and remove test files that a killed blklab left, as far as that is
    possible."""
    found = leftovers.restore(Journal(default_directory()))
    return Restored(tuple(found.done), tuple(found.busy), tuple(found.problems))


def forget(what: str) -> str:
    """Discard the record of a disk or of a directory of test files; both stay unchanged. Returns a
    line for the user.

    Raises:
        blklab.errors.InputError: there is no such record.
    """
    return leftovers.forget(Journal(default_directory()), what)


def _meant(what: str) -> Sequence[str]:
    """The kernel's names of the disks that the user named."""
    if Path(what).is_dir():
        return target.find(what, roots.HERE).disks
    return [queue.device_name(what, roots.HERE)]


def _as_counted(name: str) -> list[tuple[int, str]]:
    """A sort key: loop10 after loop9."""
    words: list[str] = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(int(word) if word[0] in string.digits else -1, word) for word in words]
