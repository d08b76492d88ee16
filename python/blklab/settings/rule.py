"""The whole rules file of blklab, from all applied settings.

One line for each setting, all with the same key, in the order of setting. The latest settings come
first, and their disks skip the rest: no event sets one scheduler after another. The file's name
sorts after the files of distributions (``60-...``), and after ``60-persistent-storage.rules``,
which imports the properties that a key may need.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import InputError
from blklab.host.devices import queue
from blklab.host.devices.queue import Queue
from blklab.host.roots import Roots
from blklab.host.udev import judge
from blklab.host.udev.judge import Effect
from blklab.settings.keys import Key

NAME = "99-blklab.rules"
_FIRST = "# Written by blklab; do not edit. See: blklab status, blklab undo"
_END = "blklab_end"
_ALWAYS = ('ACTION=="add|change"', 'SUBSYSTEM=="block"', 'ENV{DEVTYPE}=="disk"')


@dataclass(frozen=True)
class Part:
    """The settings of one `apply`."""

    key: Key
    settings: Mapping[str, str]


def place(roots: Roots) -> Path:
    """The file's path."""
    return roots.etc / "udev/rules.d" / NAME


def text(parts: Sequence[Part], head: str = _FIRST) -> str:
    """The file, for parts in the order in which they were applied; empty if there is none. `head`
    has its first lines, which are comments."""
    if not parts:
        return ""
    lines = [head]
    # For one key, only the last part would ever be reached.
    latest: dict[Key, Part] = {}
    for part in reversed(parts):
        latest.setdefault(part.key, part)
    for part in latest.values():
        head = ", ".join([*_ALWAYS, *part.key.matches])
        lines += ["", *(f'{head}, ATTR{{queue/{name}}}="{value}"'
                        for name, value in part.settings.items())]  # fmt: skip
        lines[-1] += f', GOTO="{_END}"'
    return "\n".join([*lines, "", f'LABEL="{_END}"']) + "\n"


def effects(content: str, disk: Queue, roots: Roots) -> list[Effect]:
    """The effect of this content on a disk, together with all other rules."""
    ours = place(roots)
    found = judge.effects(disk.disk, "change", roots, {ours: content})
    return [effect for effect in found if effect.line.file == ours]


def wanted(content: str, disk: Queue, roots: Roots) -> dict[str, str]:
    """The file's settings for a disk; empty if no key matches."""
    found = effects(content, disk, roots)
    return {effect.attribute: effect.value for effect in found if effect.value is not None}


def disks(parts: Sequence[Part], roots: Roots) -> dict[str, dict[str, str]]:
    """Every disk of this machine that matches these parts, with its settings."""
    content = text(parts)
    found = {}
    for name in queue.disks(roots):
        # A disk may disappear meanwhile.
        with contextlib.suppress(InputError, queue.GoneError):
            if settings := wanted(content, queue.named(name, roots), roots):
                found[name] = settings
    return found
