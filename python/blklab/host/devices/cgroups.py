"""The settings of control groups for a disk: I/O cost, weights, latency targets and limits.

For version 2, ``io.cost.*`` of the root and each group's ``io.weight``, ``io.bfq.weight``,
``io.latency`` and ``io.max``; for version 1 the corresponding files of ``blkio``. A group is listed
only if it changes a default.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from blklab.host import reading
from blklab.host.devices.mounts import Mount
from blklab.host.roots import Roots

_COST = ("io.cost.qos", "io.cost.model")
_OF_GROUP = (
    "io.weight",
    "io.bfq.weight",
    "io.latency",
    "io.max",
    "blkio.weight",
    "blkio.weight_device",
    "blkio.bfq.weight",
    "blkio.bfq.weight_device",
    "blkio.throttle.read_bps_device",
    "blkio.throttle.write_bps_device",
    "blkio.throttle.read_iops_device",
    "blkio.throttle.write_iops_device",
)
_DEFAULT = "100"
_GROUPS_MAX = 10_000


@dataclass(frozen=True)
class Setting:
    """A line of a group's file that applies to one device, or to all."""

    cgroup: str
    """``/`` for the root."""
    file: str
    number: str
    """``major:minor``, or ``default``."""
    value: str


def settings(mounts: list[Mount], roots: Roots) -> list[Setting]:
    """Every line that sets something for any block device."""
    found: list[Setting] = []
    for mount in mounts:
        if mount.type == "cgroup2" or (mount.type == "cgroup" and "blkio" in mount.point):
            found += _below(_place(mount.point, roots))
    return found


def of_device(number: str, every: list[Setting]) -> list[Setting]:
    """The lines for one device, or for all devices."""
    return [setting for setting in every if setting.number in (number, "default")]


def _place(point: str, roots: Roots) -> Path:
    path = Path(point)
    return roots.sys / path.relative_to("/sys") if path.is_relative_to("/sys") else path


def _below(top: Path) -> list[Setting]:
    found: list[Setting] = []
    if not reading.exists(top):
        return found
    for place, directories, files in islice(os.walk(top), _GROUPS_MAX):
        directories.sort()
        group = f"/{Path(place).relative_to(top)}".replace("/.", "/")
        for file in (*_COST, *_OF_GROUP):
            if file in files:
                lines = reading.lines(Path(place) / file)
                found += [made for line in lines if (made := _setting(group, file, line))]
    return found


def _setting(group: str, file: str, line: str) -> Setting | None:
    words = line.split()
    if not words:
        return None
    if len(words) == 1:
        words = ["default", words[0]]
    if words[0] == "default" and words[1:] == [_DEFAULT]:
        return None
    return Setting(group, file, words[0], " ".join(words[1:]))
