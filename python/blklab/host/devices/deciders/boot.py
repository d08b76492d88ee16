"""Settings made once at boot from files: tmpfiles.d, sysfsutils, rc.local, TLP."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from blklab.host import reading
from blklab.host.devices.deciders.influence import Influence, in_script
from blklab.host.devices.queue import Queue
from blklab.host.roots import Roots

_TMPFILES_FIELDS = 7
_ATTRIBUTE = re.compile(r"(?:class/)?block/(?P<disk>[^/]+)/queue/(?P<attribute>.+)")


def tmpfiles(queue: Queue, roots: Roots) -> Iterator[Influence]:
    """Lines of type ``w`` of tmpfiles.d(5)."""
    for path in _by_name(roots, "tmpfiles.d"):
        for number, line in enumerate(reading.lines(path), 1):
            fields = line.split(maxsplit=_TMPFILES_FIELDS - 1)
            if len(fields) < _TMPFILES_FIELDS or fields[0].rstrip("!+-=~^") != "w":
                continue
            found = _ATTRIBUTE.fullmatch(fields[1].removeprefix("/sys/"))
            if found and fields[1].startswith("/sys/") and fnmatchcase(queue.name, found["disk"]):
                value = fields[-1].strip().removesuffix("\\n")
                yield Influence(
                    "tmpfiles.d line", str(path), number, found["attribute"], value, sure=True
                )


def sysfs_conf(queue: Queue, roots: Roots) -> Iterator[Influence]:
    """``/etc/sysfs.conf`` and ``/etc/sysfs.d`` of sysfsutils: ``block/sda/queue/x = y``."""
    directory = roots.etc / "sysfs.d"
    files = [directory / name for name in reading.names(directory) if name.endswith(".conf")]
    starter = roots.etc / "init.d/sysfsutils"
    for path in [*files, roots.etc / "sysfs.conf"]:
        for number, line in enumerate(reading.lines(path), 1):
            name, equals, value = line.partition("=")
            found = _ATTRIBUTE.fullmatch(name.strip())
            if equals and found and fnmatchcase(queue.name, found["disk"]):
                why = "" if starter.exists() else "sysfsutils does not seem to be installed"
                yield Influence("sysfsutils line", str(path), number, found["attribute"],
                                value.strip(), not why, why)  # fmt: skip


def rc_local(queue: Queue, roots: Roots) -> Iterator[Influence]:
    """``/etc/rc.local``, if it is executable."""
    path = roots.etc / "rc.local"
    if os.access(path, os.X_OK):
        yield from in_script("rc.local line", path, queue.name)


def tlp(queue: Queue, roots: Roots) -> Iterator[Influence]:
    """``DISK_IOSCHED`` beside ``DISK_DEVICES`` of TLP, each disk at its place in the list."""
    directory = roots.etc / "tlp.d"
    files = [directory / name for name in reading.names(directory) if name.endswith(".conf")]
    said: dict[str, tuple[Path, int, list[str]]] = {}
    for path in [*files, roots.etc / "tlp.conf"]:
        for number, line in enumerate(reading.lines(path), 1):
            name, equals, value = line.strip().partition("=")
            if equals and name in ("DISK_DEVICES", "DISK_IOSCHED"):
                said[name] = path, number, _words(value)
    if "DISK_IOSCHED" not in said:
        return
    path, number, schedulers = said["DISK_IOSCHED"]
    # TLP's own default.
    devices = said["DISK_DEVICES"][2] if "DISK_DEVICES" in said else ["nvme0n1", "sda"]
    for device, scheduler in zip(devices, schedulers, strict=False):
        by_id = device.startswith(("ata-", "nvme-", "usb-", "wwn-"))
        name = reading.end_name(roots.dev / "disk/by-id" / device) if by_id else device
        if name == queue.name and scheduler not in ("keep", "_"):
            yield Influence("TLP setting", str(path), number, "scheduler", scheduler, sure=True)


def _words(text: str) -> list[str]:
    try:
        return " ".join(shlex.split(text, comments=True)).split()
    except ValueError:
        return []


def _by_name(roots: Roots, kind: str) -> list[Path]:
    """The files of such a directory under /etc, /run and /usr; of those with one name, the
    first."""
    found: dict[str, Path] = {}
    for top in (roots.etc, roots.run, roots.usr / "local/lib", roots.usr / "lib", roots.lib):
        for name in reading.names(top / kind):
            if name.endswith(".conf"):
                found.setdefault(name, top / kind / name)
    return [found[name] for name in sorted(found)]
