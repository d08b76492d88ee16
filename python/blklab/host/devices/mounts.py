"""Mounts, swap, and known file systems."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from blklab.host import reading
from blklab.host.devices import probe
from blklab.host.roots import Roots
from blklab.host.udev import node

_OCTAL = re.compile(r"\\([0-7]{3})")
# Anonymous device numbers, of file systems that span several devices: btrfs.
_ANONYMOUS = "0:"
_UDEVS = {"TYPE": "ID_FS_TYPE", "LABEL": "ID_FS_LABEL", "UUID": "ID_FS_UUID"}
"""The file system that blkid finds, with the names of udev's database."""


@dataclass(frozen=True)
class Mount:
    """One line of ``/proc/self/mountinfo``, proc(5)."""

    number: str
    """``major:minor``."""
    root: str
    """The directory of the file system that is mounted."""
    point: str
    type: str
    source: str
    options: str
    members: tuple[str, ...] = ()
    """The devices of its pool, if it belongs to one (ZFS)."""
    id: str = ""
    """The mount's number in the kernel."""


@dataclass(frozen=True)
class Filesystem:
    """From udev's database, else as it is mounted, else as the file system names itself."""

    type: str
    label: str = ""
    uuid: str = ""


def mounts(roots: Roots) -> list[Mount]:
    """Every mount that this process sees."""
    found = []
    pools: dict[str, tuple[str, ...]] = {}
    for line in reading.lines(roots.proc / "self/mountinfo"):
        first, dash, last = line.partition(" - ")
        before, after = first.split(" "), last.split(" ")
        if dash and len(before) >= 6 and len(after) >= 2:  # noqa: PLR2004
            root, point, options = map(_plain, before[3:6])
            kind, source = after[0], _plain(after[1])
            if kind == "zfs" and not pools:
                pools = _pools(roots)
            members = pools.get(source.partition("/")[0], ()) if kind == "zfs" else ()
            found.append(Mount(before[2], root, point, kind, source, options, members, before[0]))
    return found


def _pools(roots: Roots) -> dict[str, tuple[str, ...]]:
    """The devices of each ZFS pool; ``/sys`` and ``/proc`` do not show them."""
    members: dict[str, list[str]] = {}
    for name in reading.names(roots.sys / "class/block"):
        held = held_by(name, [], roots)
        if held is not None and held.type == "zfs_member":
            members.setdefault(held.label, []).append(name)
    return {pool: tuple(names) for pool, names in members.items()}


def of_device(name: str, number: str, every: list[Mount], roots: Roots) -> list[Mount]:
    """The mounts of one device, by its number or as one of a btrfs's devices."""
    return [
        mount
        for mount in every
        if mount.number == number
        or (mount.number.startswith(_ANONYMOUS) and name in sources(mount, roots))
    ]


def sources(mount: Mount, roots: Roots) -> list[str]:
    """The names of the block devices below a mounted file system."""
    if not mount.number.startswith(_ANONYMOUS):
        numbers = roots.sys / "dev/block"
        there = mount.number in reading.names(numbers)
        return [reading.end_name(numbers / mount.number)] if there else []
    if mount.members or not mount.source.startswith("/dev/"):
        return list(mount.members)
    name = reading.end_name(roots.dev / Path(mount.source).relative_to("/dev"))
    for uuid in reading.names(roots.sys / "fs/btrfs"):
        together = reading.names(roots.sys / "fs/btrfs" / uuid / "devices")
        if name in together:
            return together
    return [name] if name in reading.names(roots.sys / "class/block") else []


def holding(path: str, every: list[Mount]) -> Mount | None:
    """The mount that contains a path: the longest mount point, the latest of equals."""
    inside = [mount for mount in every if Path(path).is_relative_to(mount.point)]
    return max(reversed(inside), key=lambda mount: len(mount.point), default=None)


def swaps(roots: Roots) -> set[str]:
    """Names of the devices that are used as swap."""
    rows = (line.split() for line in reading.lines(roots.proc / "swaps")[1:])
    found = {
        reading.end_name(roots.dev / Path(_plain(row[0])).relative_to("/dev"))
        for row in rows
        if len(row) > 1 and row[1] == "partition" and row[0].startswith("/dev/")
    }
    return found - {""}


def held_by(name: str, mounted: list[Mount], roots: Roots) -> Filesystem | None:
    """The contents of the device; None if none are known. udev probes each device when it appears.

    If it has not (in a container, on a small system), blklab reads the device itself, if that is
    allowed.
    """
    stored = node.device(roots.sys / "class/block" / name, roots).database
    if stored is None:
        probed = probe.blkid(roots.dev / name.replace("!", "/"))
        stored = {_UDEVS[key]: value for key, value in probed.items() if key in _UDEVS}
    if kind := stored.get("ID_FS_TYPE", ""):
        label = stored.get("ID_FS_LABEL_ENC") or stored.get("ID_FS_LABEL", "")
        return Filesystem(kind, label, stored.get("ID_FS_UUID", ""))
    return Filesystem(mounted[0].type) if mounted else None


def _plain(text: str) -> str:
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), text)
