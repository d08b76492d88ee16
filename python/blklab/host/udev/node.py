"""A device as udev sees it: sysfs, its parents, the kernel's properties, udev's database."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from blklab.host import reading
from blklab.host.roots import Roots

_LINKS = ("driver", "subsystem", "module")


@dataclass(frozen=True)
class Node:
    """One directory of ``/sys/devices``."""

    path: Path
    sys: Path

    @property
    def name(self) -> str:
        """``sda``, ``cciss/c0d0``: sysfs has ``!`` for the slash."""
        return self.path.name.replace("!", "/")

    @property
    def subsystem(self) -> str:
        """``block``, ``scsi``, ``pci``."""
        return reading.link_name(self.path / "subsystem")

    @property
    def driver(self) -> str:
        """``sd``, ``ahci``; empty for a block device itself."""
        return reading.link_name(self.path / "driver")

    @property
    def devpath(self) -> str:
        """The path below ``/sys``, with a slash before it."""
        return f"/{self.path.relative_to(self.sys)}"

    def attribute(self, name: str) -> str | None:
        """The attribute's text without line ends; None if it cannot be read."""
        path = self.path / name
        if name in _LINKS and path.is_symlink():
            return reading.link_name(path)
        try:
            return reading.content(path).rstrip("\n\r")
        except OSError:
            return None

    def and_above(self) -> list[Node]:
        """This device and its parents: the directories above that have a ``uevent``."""
        above = [self]
        for path in self.path.parents:
            if path == self.sys:
                break
            if (path / "uevent").exists():
                above.append(Node(path, self.sys))
        return above


@dataclass(frozen=True)
class Device:
    """A block device at an event."""

    node: Node
    roots: Roots

    @functools.cached_property
    def parents(self) -> list[Node]:
        """The device itself first."""
        return self.node.and_above()

    @functools.cached_property
    def properties(self) -> dict[str, str]:
        """The properties that the kernel sends with the event, before any rule."""
        text = self.node.attribute("uevent") or ""
        said = dict(line.split("=", 1) for line in text.split("\n") if "=" in line)
        if "DEVNAME" in said:
            said["DEVNAME"] = f"/dev/{said['DEVNAME'].removeprefix('/dev/')}"
        said |= {"DEVPATH": self.node.devpath, "SUBSYSTEM": self.node.subsystem}
        if sequence := reading.value(self.node.path / "diskseq"):
            said.setdefault("DISKSEQ", sequence)
        return said

    @functools.cached_property
    def database(self) -> dict[str, str] | None:
        """The properties that udev stored after its last event; None if it stored none."""
        place = self.roots.run / "udev/data" / f"b{reading.value(self.node.path / 'dev')}"
        try:
            text = reading.content(place)
        except OSError:
            return None
        stored = (line[2:] for line in text.split("\n") if line.startswith("E:"))
        return dict(line.split("=", 1) for line in stored if "=" in line)


def device(directory: Path, roots: Roots) -> Device:
    """The block device with this directory in sysfs."""
    return Device(Node(directory.resolve(), roots.sys.resolve()), roots)
