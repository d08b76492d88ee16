"""The layers below a device: partition, device mapper, md, loop, down to the disks."""

from __future__ import annotations

import re
from pathlib import Path

from blklab.host import reading
from blklab.host.devices import mounts
from blklab.host.devices.mounts import Mount
from blklab.host.roots import Roots

_MAPPED = (
    ("LVM-", "lvm"),
    ("CRYPT-", "crypt"),
    ("mpath-", "multipath"),
    ("DMRAID-", "dmraid"),
    ("part", "partition map"),
)
_BY_NAME = (
    ("loop", "loop"),
    ("zram", "zram"),
    ("ram", "ram"),
    ("sr", "rom"),
    ("bcache", "bcache"),
    ("nbd", "network"),
    ("rbd", "network"),
    ("drbd", "drbd"),
    ("ublk", "ublk"),
    ("fd", "floppy"),
)
_NVME_HEAD = re.compile(r"nvme(\d+)n(\d+)")
_DELETED = " (deleted)"


def kind(name: str, roots: Roots) -> str:
    """``disk``, ``partition``, ``lvm``, ``crypt``, ``raid1``, ``loop`` ..."""
    directory = roots.sys / "class/block" / name
    if (directory / "partition").exists():
        return "partition"
    if (directory / "dm").is_dir():
        uuid = reading.value(directory / "dm/uuid")
        return next((word for start, word in _MAPPED if uuid.startswith(start)), "mapped")
    if level := reading.value(directory / "md/level"):
        return level
    return next((word for start, word in _BY_NAME if re.match(rf"{start}\d", name)), "disk")


def below(name: str, every: list[Mount], roots: Roots) -> list[str]:
    """The devices directly below it; none for a disk."""
    directory = roots.sys / "class/block" / name
    if (directory / "partition").exists():
        return [directory.resolve().parent.name]
    found = reading.names(directory / "slaves")
    if not found and (file := backing_file(name, roots)):
        mount = mounts.holding(file, every)
        found = mounts.sources(mount, roots) if mount else []
    if not found and (head := _NVME_HEAD.fullmatch(name)):
        paths = re.compile(rf"nvme{head[1]}c\d+n{head[2]}")
        found = [one for one in reading.names(roots.sys / "block") if paths.fullmatch(one)]
    return found


def disks_below(name: str, every: list[Mount], roots: Roots) -> list[str]:
    """The disks at the bottom, each once; a disk's own name for a disk."""
    bottom: dict[str, None] = {}
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        one = waiting.pop(0)
        if one in seen:
            continue
        seen.add(one)
        lower = below(one, every, roots)
        if not lower:
            bottom[one] = None
        waiting += lower
    return list(bottom)


def backing_file(name: str, roots: Roots) -> str:
    """The file below a loop device; empty for other devices and without a file."""
    text = reading.value(roots.sys / "class/block" / name / "loop/backing_file")
    return text.removesuffix(_DELETED)


def partitions(disk: Path) -> list[str]:
    """The partitions of a whole disk, by number."""
    found = [
        (int(reading.value(disk / name / "partition") or 0), name)
        for name in reading.names(disk)
        if (disk / name / "partition").exists()
    ]
    return [name for _, name in sorted(found)]


def mapped_name(name: str, roots: Roots) -> str:
    """``vg-root`` of ``dm-0``, as below ``/dev/mapper``; empty if there is none."""
    return reading.value(roots.sys / "class/block" / name / "dm/name")


def ids(roots: Roots) -> dict[str, list[str]]:
    """For each device, the names that it has in ``/dev/disk/by-id``, sorted."""
    place = roots.dev / "disk/by-id"
    found: dict[str, list[str]] = {}
    for name in reading.names(place):
        found.setdefault(reading.link_name(place / name), []).append(name)
    return found
