"""Small files and directories of sysfs, procfs and the like, or nothing where there are none; and
what commands in them write to a disk's queue.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import BinaryIO

# Attributes are a page; profiles, units and scripts are some kilobytes.
_BYTES_MAX = 1 << 20


def content(path: Path) -> str:
    """All of a small file; what is not UTF-8 is written ``\\xff``. OSError if it cannot be read."""
    try:
        with _opened(path) as file:
            return (file.read(_BYTES_MAX) or b"").decode(errors="backslashreplace")
    except ValueError as error:
        # A NUL, which no file's name has: rules and profiles may say anything.
        raise FileNotFoundError(str(path)) from error


def value(path: Path) -> str:
    """The same without white space around it; empty if there is no such file, or not for us."""
    try:
        return content(path).strip()
    except OSError:
        return ""


def lines(path: Path) -> list[str]:
    """The lines of a file; none if it cannot be read."""
    try:
        return content(path).split("\n")
    except OSError:
        return []


def script(path: Path) -> list[str]:
    """The lines of a script; none of a program, which is not to be read."""
    try:
        with _opened(path) as file:
            if file.read(2) != b"#!":
                return []
    except (OSError, ValueError):
        return []
    return lines(path)


def _opened(path: Path) -> BinaryIO:
    """Never waits for the other end of a pipe, nor for a driver."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


def names(directory: Path) -> list[str]:
    """What is in a directory, sorted; nothing if there is no such directory."""
    try:
        return sorted(path.name for path in directory.iterdir())
    except (OSError, ValueError):
        return []


def exists(path: Path) -> bool:
    """Whether it is there. A name from a rule or a profile may be longer than one can be, at which
    Path's own would raise."""
    return os.path.exists(path)  # noqa: PTH110


def end_name(path: Path) -> str:
    """The name of the file that all links of a path lead to, be it there or not. Empty if they lead
    in a circle, or if the path has a name that no file can have."""
    try:
        return path.resolve().name
    except (OSError, RuntimeError, ValueError):
        return ""


def link_name(link: Path) -> str:
    """The last part of what a link leads to: a driver's, a subsystem's name. Empty if none."""
    try:
        return link.readlink().name
    except (OSError, ValueError):
        return ""


# Of a pattern or a variable only the end.
TARGET = re.compile(
    r"/sys/(?:block|class/block)/(?P<disk>[^/\s\"']+)/queue/(?P<attribute>[a-z_]+(?:/[a-z_]+)?)"
)
"""A file of a queue, by its whole path."""
ECHOED = re.compile(r"\becho\s+(?:-n\s+)?[\"']?(?P<value>[A-Za-z0-9_-]+)[\"']?\s*>")
"""What is written."""
