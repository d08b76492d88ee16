"""Where the I/O of a live run goes: a directory, or a device; and which disks are below it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from blklab.devices.queue import device_name, disk_of
from blklab.devices.roots import HERE, Roots
from blklab.devices.text import shown
from blklab.errors import InputError

_OCTAL = re.compile(r"\\([0-7]{3})")
# Layers below layers: md on LVM on dm-crypt on a partition is four.
_LAYERS_MAX = 32


@dataclass(frozen=True)
class Target:
    """A place for I/O."""

    path: Path
    """The directory, or the device's node."""
    device: str | None
    """The device's name in sysfs; None for a directory."""
    disks: tuple[str, ...]
    """The whole disks that I/O to it reaches, sorted: those whose schedulers count."""


@dataclass(frozen=True)
class Mount:
    """A line of ``/proc/self/mountinfo``."""

    number: str
    """``major:minor``."""
    point: Path
    kind: str
    """``ext4``."""
    source: str
    """``/dev/sda1``; not of every kind a path."""


def find(what: str, roots: Roots = HERE) -> Target:
    """The directory or the device called so. InputError if it is neither, or no disk is below."""
    path = Path(what)
    if path.is_dir():
        return Target(path, None, _below(_under(path, roots), roots))
    if path.is_file():
        raise InputError(
            f"{shown(what)}: expected a directory, where a test file is made, or a device; "
            "found a file"
        )
    name = device_name(what, roots)
    node = roots.dev / name.replace("!", "/")
    return Target(node, name, _below([name], roots))


def mounts(roots: Roots = HERE) -> list[Mount]:
    """Everything that is mounted, in the order in which it was."""
    found = []
    text = (roots.proc / "self/mountinfo").read_text(errors="surrogateescape")
    for line in filter(None, text.splitlines()):
        # Some optional fields, a dash, three more.
        first, _, last = line.partition(" - ")
        own, rest = first.split(" "), last.split(" ")
        found.append(Mount(own[2], Path(_plain(own[4])), rest[0], _plain(rest[1])))
    return found


def _under(directory: Path, roots: Roots) -> list[str]:
    """The devices that hold the directory's file system."""
    number = directory.stat().st_dev
    link = roots.sys / f"dev/block/{os.major(number)}:{os.minor(number)}"
    if link.exists():
        return [link.resolve().name]
    # btrfs has a number of its own, and may have several devices.
    inside = [mount for mount in mounts(roots) if directory.resolve().is_relative_to(mount.point)]
    # Of those at the same point the last one covers the others.
    mount = max(reversed(inside), key=lambda mount: len(mount.point.parts))
    try:
        first = device_name(mount.source, roots) if mount.source.startswith("/") else None
    except InputError:
        first = None
    if first is None:
        raise InputError(
            f"{shown(str(directory))}: lies on {shown(mount.kind)} "
            f"({shown(mount.source)}), with no disk of this machine below"
        )
    together = [place.parent for place in roots.sys.glob(f"fs/btrfs/*/devices/{first}")]
    return sorted(path.name for path in together[0].iterdir()) if together else [first]


def _below(names: list[str], roots: Roots) -> tuple[str, ...]:
    """The whole disks below, through partitions, LVM, dm-crypt and md."""
    disks = {disk_of(name, roots) for name in names}
    for _ in range(_LAYERS_MAX):
        layer = {disk: _slaves(disk, roots) for disk in disks}
        if not any(layer.values()):
            break
        disks = {
            disk_of(lower, roots) for disk, lowers in layer.items() for lower in lowers or [disk]
        }
    return tuple(sorted(disks))


def _slaves(disk: str, roots: Roots) -> list[str]:
    place = roots.sys / "block" / disk / "slaves"
    return sorted(path.name for path in place.iterdir()) if place.is_dir() else []


def _plain(text: str) -> str:
    """Spaces and the like are written in octal there."""
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), text)
