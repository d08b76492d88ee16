"""The target of a live run's I/O: a directory or a device; and the disks that schedule it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from blklab.base.text import shown
from blklab.errors import InputError
from blklab.host.devices import mounts, queue, stack
from blklab.host.devices.mounts import Mount
from blklab.host.devices.queue import MissingError, device_name
from blklab.host.roots import HERE, Roots


@dataclass(frozen=True)
class Target:
    """A place for I/O."""

    path: Path
    """The directory, or the device's node."""
    device: str | None
    """The device's name in sysfs; None for a directory."""
    disks: tuple[str, ...]
    """The disks that schedule the I/O, sorted: the first ones below with a choice of schedulers,
    else the disks at the bottom."""
    identity: tuple[int, int] | None = None
    """Device number and inode of the directory: a path is another directory once its file system
    has been unmounted."""


def find(what: str, roots: Roots = HERE) -> Target:
    """The directory or the device of that name. InputError if it is neither, or has no disk
    below."""
    if not what:
        raise InputError("expected a directory or a device, found an empty name")
    path, every = Path(what), mounts.mounts(roots)
    if path.is_dir():
        found = path.stat()
        disks = _scheduled(_under(found.st_dev, path, every, roots), every, roots)
        return Target(path, None, disks, (found.st_dev, found.st_ino))
    if path.is_file():
        raise InputError(
            f"{shown(what)}: expected a directory, where a test file is made, or a device; "
            "found a file"
        )
    if "/" in what and not path.exists() and not path.is_relative_to(HERE.dev):
        raise InputError(f"{shown(what)}: no such directory")
    name = device_name(what, roots)
    node = roots.dev / name.replace("!", "/")
    return Target(node, name, _scheduled([name], every, roots))


def _under(number: int, directory: Path, every: list[Mount], roots: Roots) -> list[str]:
    """The devices that hold the directory's file system, which has this `number`."""
    link = roots.sys / f"dev/block/{os.major(number)}:{os.minor(number)}"
    if link.exists():
        return [link.resolve().name]
    mount = mounts.holding(str(directory.resolve()), every)
    found = mounts.sources(mount, roots) if mount else []
    if found or mount is None:
        return found
    raise InputError(
        f"{shown(str(directory))}: is on {shown(mount.type)} ({shown(mount.source)}), with no "
        "disk of this machine below"
    )


def _scheduled(names: list[str], every: list[Mount], roots: Roots) -> tuple[str, ...]:
    found: set[str] = set()
    seen: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        # LVM, dm-crypt and md pass bios down; multipath and loop devices have a queue.
        lower = [] if _has_choice(name, roots) else stack.below(name, every, roots)
        if not lower:
            found.add(name)
        waiting += lower
    return tuple(sorted(found))


def _has_choice(name: str, roots: Roots) -> bool:
    if name not in queue.disks(roots):
        return False
    try:
        return len(queue.named(name, roots).schedulers().available) > 1
    except MissingError:
        return False
