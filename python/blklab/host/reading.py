"""Reads small files and directories of sysfs, procfs and the like, missing ones as empty; and finds
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
    """All of a small file; bytes that are not UTF-8 become ``\\xff``. OSError if it cannot be
    read."""
    try:
        with _opened(path) as file:
            return (file.read(_BYTES_MAX) or b"").decode(errors="backslashreplace")
    except ValueError as error:
        # A NUL, which no file's name has: rules and profiles may contain anything.
        raise FileNotFoundError(str(path)) from error


def value(path: Path) -> str:
    """The same without surrounding white space; empty if the file is missing or not readable."""
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
    """The lines of a script; none for a compiled program."""
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
    """The names in a directory, sorted; empty if there is no such directory."""
    try:
        return sorted(path.name for path in directory.iterdir())
    except (OSError, ValueError):
        return []


def exists(path: Path) -> bool:
    """Whether it exists. `Path.exists` would raise for a name from a rule or a profile that is
    longer than names can be."""
    return os.path.exists(path)  # noqa: PTH110


def end_name(path: Path) -> str:
    """The name of the file that all links of a path lead to, whether it exists or not. Empty if the
    links form a loop, or if no file can have the name."""
    try:
        return path.resolve().name
    except (OSError, RuntimeError, ValueError):
        return ""


def link_name(link: Path) -> str:
    """The last part of a link's target: a driver's or a subsystem's name. Empty without a link."""
    try:
        return link.readlink().name
    except (OSError, ValueError):
        return ""


# For a pattern or a variable, only its end.
TARGET = re.compile(
    r"/sys/(?:block|class/block)/(?P<disk>[^/\s\"']+)/queue/(?P<attribute>[a-z_]+(?:/[a-z_]+)?)"
)
"""A file of a queue, by its whole path."""
ECHOED = re.compile(r"\becho\s+(?:-n\s+)?[\"']?(?P<value>[A-Za-z0-9_-]+)[\"']?\s*>")
"""The value that is written."""
