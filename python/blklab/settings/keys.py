"""Keys for disks: one disk by its reported identity, all disks of its model, or all of its kind.

A udev rule compares a key. If the kernel has a name for the disk, the key comes from sysfs, because
that exists before any rule; else from udev's own properties. Special characters of rules and
patterns become ``?``, so a disk's name can be anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from blklab.base.text import shown
from blklab.errors import InputError, nearest
from blklab.host.devices.queue import Queue
from blklab.host.roots import Roots
from blklab.host.udev import node
from blklab.host.udev.node import Device

KINDS = ("id", "model", "kind")

_OF_ONE = (
    ("ATTR", "wwid"),
    ("ATTRS", "wwid"),
    ("ATTR", "serial"),
    ("ATTRS", "cid"),
    ("ATTRS", "serial"),
    ("ATTR", "dm/uuid"),
    ("ATTR", "md/uuid"),
    ("ATTR", "loop/backing_file"),
)
_OF_UDEV = ("ID_SERIAL", "ID_WWN")
_OF_MODEL = ("model", "name")
_FAMILIES = ("nvme", "sd", "vd", "mmcblk", "xvd", "dm-", "md", "loop", "zram", "ublk", "nbd")
_PLAIN = re.compile(r"[A-Za-z0-9_.:+=,@/ -]")
_MATCH = re.compile(
    r"(KERNEL|ATTRS?\{[a-z_/]+\}|ENV\{[A-Z_]+\})==\"[A-Za-z0-9_.:+=,@/?* -]+\"", re.ASCII
)
# Bytes that are not UTF-8 are read as \xff; udev may count them as any number of characters.
_ODD = re.compile(r"\\x[0-9a-f]{2}|[^\x00-\x7f]+")


@dataclass(frozen=True)
class Key:
    """The compared attribute, and its description."""

    kind: str
    """One of `KINDS`."""
    matches: tuple[str, ...]
    """Parts of a rule: ``ATTRS{wwid}=="naa.5000"``."""

    @property
    def text(self) -> str:
        """For a person."""
        return ", ".join(self.matches)


def key(kind: str, queue: Queue, roots: Roots) -> list[Key]:
    """Keys of that kind that match the disk, the best first. InputError if it has none."""
    if kind not in KINDS:
        raise InputError(f"--for: no '{shown(kind)}'{nearest(kind, KINDS)}")
    device = node.device(queue.disk, roots)
    makers = {"id": _of_one, "model": _of_model, "kind": _of_kind}
    found = makers[kind](device, queue.name)
    if found:
        return [Key(kind, matches) for matches in found]
    name = shown(queue.name)
    others = {"id": "kind", "model": "id", "kind": "id"}
    raise InputError(f"{name} does not report its {kind}; use --for {others[kind]}")


def of_one(queue: Queue, roots: Roots) -> str:
    """The identity of this disk; empty if it reports none."""
    found = _of_one(node.device(queue.disk, roots), queue.name)
    return ", ".join(found[0]) if found else ""


def check(key: Key) -> None:
    """InputError if a key from a file is not one that `key` makes."""
    if key.kind not in KINDS or not key.matches or not all(map(_MATCH.fullmatch, key.matches)):
        raise InputError(f"not a key of blklab's: {shown(key.text)}")


def is_identity(text: str) -> bool:
    """Whether `of_one` could have returned this text."""
    return not text or bool(_MATCH.fullmatch(text))


def pattern(text: str) -> str:
    """A udev pattern that matches `text` and is harmless in a rule."""
    made = _ODD.sub("\0", text)
    return "".join("*" if sign == "\0" else sign if _PLAIN.match(sign) else "?" for sign in made)


def _of_one(device: Device, _: str) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for word, name in _OF_ONE:
        nodes = device.parents[:1] if word == "ATTR" else device.parents[1:2]
        value = next((text for each in nodes if (text := each.attribute(name))), "")
        # A pattern of stars alone would match every disk.
        if re.search(r"[A-Za-z0-9]{3}", pattern(value)):
            found.append((f'{word}{{{name}}}=="{pattern(value.rstrip())}"',))
    for name in _OF_UDEV:
        value = (device.database or {}).get(name, "")
        if re.search(r"[A-Za-z0-9]{3}", pattern(value)):
            found.append((f'ENV{{{name}}}=="{pattern(value)}"',))
    return found


def _of_model(device: Device, _: str) -> list[tuple[str, ...]]:
    for name in _OF_MODEL:
        # Not from parents further up: a USB hub has a name too.
        for each in device.parents[1:2]:
            value = (each.attribute(name) or "").rstrip()
            if re.search(r"[A-Za-z0-9]{3}", pattern(value)):
                return [(f'ATTRS{{{name}}}=="{pattern(value)}"',)]
    return []


def _of_kind(device: Device, name: str) -> list[tuple[str, ...]]:
    rotational = device.node.attribute("queue/rotational")
    family = next((word for word in _FAMILIES if name.startswith(word)), "")
    if rotational not in ("0", "1") or not family:
        return []
    return [(f'KERNEL=="{family}*"', f'ATTR{{queue/rotational}}=="{rotational}"')]
