"""Small files and directories of sysfs, procfs and the like, or nothing where there are none."""

from __future__ import annotations

from pathlib import Path

# Attributes are a page; profiles, units and scripts are some kilobytes.
_BYTES_MAX = 1 << 20


def content(path: Path) -> str:
    """All of a small file; what is not UTF-8 is written ``\\xff``. OSError if it cannot be read."""
    with path.open("rb") as file:
        return file.read(_BYTES_MAX).decode(errors="backslashreplace")


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
        with path.open("rb") as file:
            if file.read(2) != b"#!":
                return []
    except OSError:
        return []
    return lines(path)


def names(directory: Path) -> list[str]:
    """What is in a directory, sorted; nothing if there is no such directory."""
    try:
        return sorted(path.name for path in directory.iterdir())
    except OSError:
        return []


def link_name(link: Path) -> str:
    """The last part of what a link leads to: a driver's, a subsystem's name. Empty if none."""
    try:
        return link.readlink().name
    except OSError:
        return ""
