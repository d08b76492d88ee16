"""A tuned profile that stops tuned from undoing applied settings.

tuned assigns each disk to one section, the one with the lowest ``priority``. The profile includes
the active profiles and puts a section for the disk before theirs, with the scheduler and read-ahead
of the udev rule, and with the other settings that the replaced section would have made. The rule
makes all other settings: setting the active scheduler again does not change its tunables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from blklab.base.text import shown
from blklab.errors import InputError
from blklab.host.devices.deciders import tuned
from blklab.host.devices.deciders.tuned import Section
from blklab.host.devices.queue import SCHEDULER, Queue
from blklab.host.roots import Roots
from blklab.host.udev import node
from blklab.settings.rule import Part

NAME = "blklab"
_FIRST = "# Written by blklab; do not edit. See: blklab status, blklab undo"
# Options that select a section's disks, and are not settings.
_NOT_SETTINGS = ("type", "devices", "devices_udev_regex", "priority", "enabled", "replace")
_OPTIONS = {SCHEDULER: "elevator", "read_ahead_kb": "readahead"}
_SAFE = re.compile(r"[A-Za-z0-9_.-]+", re.ASCII)
_WHOLE = re.compile(
    re.escape(f"{_FIRST}\n[main]\nsummary=What blklab has applied to disks\n")
    + r"(include=[A-Za-z0-9_.,-]+\n)?"
    # Any setting of a disk in tuned's own sections, but not a section's type.
    r"(\n\[blklab_\d+\]\ntype=disk\npriority=-\d+\ndevices(_udev_regex)?=[^\0-\x1f]+\n"
    r"((?!type=)[A-Za-z0-9_]+=[^\0-\x1f]*\n)*)*",
    re.ASCII,
)
_PROPERTIES = ("ID_SERIAL", "ID_WWN", "DM_UUID", "MD_UUID")


def place(roots: Roots) -> Path:
    """The profile's path: tuned 2.23 has a directory for profiles, earlier versions do not."""
    newer = any((top / "tuned/profiles").is_dir() for top in (roots.etc, roots.usr / "lib"))
    return roots.etc / ("tuned/profiles" if newer else "tuned") / NAME / "tuned.conf"


def can_hold(part: Part) -> bool:
    """Whether tuned can make any of these settings."""
    return any(name in _OPTIONS for name in part.settings)


def text(parts: Sequence[tuple[Part, Sequence[Queue]]], before: Sequence[str], roots: Roots) -> str:
    """The profile for these parts, each with its disks; `before` are the previously active
    profiles."""
    lines = [_FIRST, "[main]", "summary=What blklab has applied to disks"]
    if before:
        lines.append(f"include={','.join(before)}")
    theirs = tuned.profiles(before, roots)
    sections = [
        _section(part, disk, theirs, roots)
        for part, disks in parts
        if can_hold(part)
        for disk in disks
    ]
    # The latest has the lowest priority, and so comes first.
    for number, section in enumerate(sections, 1):
        lines += ["", f"[blklab_{number}]", "type=disk", f"priority={-10 - number}", *section]
    return "\n".join(lines) + "\n"


def _section(part: Part, disk: Queue, theirs: Mapping[str, Section], roots: Roots) -> list[str]:
    known = [section for section, sure in tuned.of_disk(disk, theirs, roots) if sure]
    options = {
        name: option.value
        for section in known
        for name, option in section.options.items()
        if name not in _NOT_SETTINGS
    }
    options |= {
        option: part.settings[name] for name, option in _OPTIONS.items() if name in part.settings
    }
    return [_device(disk, roots), *(f"{name}={value}" for name, value in options.items())]


def _device(disk: Queue, roots: Roots) -> str:
    """By udev's name for it, or by the kernel's, which may change at the next boot."""
    known = node.device(disk.disk, roots).database or {}
    for name in _PROPERTIES:
        # tuned's files have no quoting: each special character becomes "any character".
        if value := known.get(name, ""):
            return f"devices_udev_regex=^{name}={re.sub(r'[^A-Za-z0-9_:-]', '.', value)}$"
    return f"devices={disk.name}"


def check(content: str) -> None:
    """InputError if a profile from a file is not one that `text` makes, which sets disks and starts
    no program."""
    if content and not _WHOLE.fullmatch(content):
        raise InputError("not a profile of blklab's")


def check_names(names: Sequence[str]) -> None:
    """InputError if these are not names of profiles."""
    if not all(_SAFE.fullmatch(name) and not name.startswith("-") for name in names):
        raise InputError(f"not profiles of tuned's: {shown(', '.join(names))}")


def active_without(roots: Roots) -> list[str]:
    """The active profiles except blklab's; names that tuned would not load are left out."""
    return [name for name in tuned.active(roots) if name != NAME and _SAFE.fullmatch(name)]
