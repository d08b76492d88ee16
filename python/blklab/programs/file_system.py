"""The file system of a program on a modelled disk, as users write it: ``ext4:data=journal``.

Behind the colon are options with commas between them: those that begin with a dash are for mkfs
(``-b=1024``, ``-O=fast_commit``), the others for mount (``data=journal``, ``noatime``). An option
of mkfs that is given several times has its values joined with commas, as mkfs takes them.
``aged=80`` is neither: old files have that part of the space, in per cent, and the free space is in
pieces between them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from blklab.errors import InputError, nearest

KINDS = ("ext4", "xfs", "btrfs", "f2fs")
"""File systems that a guest's kernel can have; blklab's own has the first."""
_OF_MKFS = re.compile(r"-(?P<name>[A-Za-z]|-[a-z-]+)(?:=(?P<value>.+))?")
_OF_MOUNT = re.compile(r"[a-z_][\w.-]*(?:=[\w.:/^-]+)?")
_AGED = re.compile(r"aged(?:=(?P<percent>\d{1,3})%?)?(?P<rest>.*)")
AGED_MIN, AGED_MAX = 10, 90
"""Bounds of the space that old files have, in per cent."""
_NOT_AGED = "f2fs"
_TAKEN = ("-F", "-q", "-f", "-K", "-n")
"""Options of mkfs that blklab itself gives, or with which mkfs makes nothing."""


@dataclass(frozen=True)
class FileSystem:
    """A file system and its options."""

    kind: str
    mkfs_options: tuple[str, ...] = ()
    """Words for mkfs."""
    mount_options: tuple[str, ...] = ()
    aged_percent: int | None = None
    """The part of the space that old files have, in per cent; None if it is new."""
    text: str = ""
    """As the user wrote it."""


def parse(text: str, option_name: str = "--fs") -> FileSystem:
    """The file system that `text` names. InputError if its form is wrong, with the option of the
    command in front; mkfs and the kernel check the options."""
    kind, colon, rest = text.partition(":")
    if kind not in KINDS:
        raise InputError(f"{option_name}: no file system '{kind}'{nearest(kind, KINDS)}")
    of_mkfs: dict[str, list[str]] = {}
    of_mount: list[str] = []
    aged = None
    for option in rest.split(",") if colon else []:
        if found := _AGED.fullmatch(option):
            aged = _aged(found, kind, f"{option_name}: {text}")
        elif found := _OF_MKFS.fullmatch(option):
            name = f"-{found['name']}"
            if name in _TAKEN:
                raise InputError(f"{option_name}: {text}: {name} is no option to choose")
            of_mkfs.setdefault(name, []).extend([found["value"]] if found["value"] else [])
        elif _OF_MOUNT.fullmatch(option):
            of_mount.append(option)
        else:
            raise InputError(
                f"{option_name}: {text}: expected options of mount (data=journal) or of mkfs "
                f"(-b=1024) between commas, found '{option}'"
            )
    words = [word for name, values in of_mkfs.items() for word in (name, ",".join(values)) if word]
    return FileSystem(kind, tuple(words), tuple(of_mount), aged, text)


def _aged(found: re.Match[str], kind: str, where: str) -> int:
    percent = int(found["percent"] or 0)
    if found["rest"] or not AGED_MIN <= percent <= AGED_MAX:
        raise InputError(
            f"{where}: expected aged=80, the space that old files have, {AGED_MIN} to {AGED_MAX} "
            "per cent"
        )
    if kind == _NOT_AGED:
        raise InputError(
            f"{where}: f2fs has an entry for each block that a file has: those of a disk full of "
            "old files would take gigabytes"
        )
    return percent
