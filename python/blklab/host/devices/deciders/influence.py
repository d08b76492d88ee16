"""One line of one file that sets something of a disk's queue, or may do so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from blklab.host import reading
from blklab.host.reading import ECHOED, TARGET

_QUEUE = re.compile(r"queue/(?P<attribute>scheduler|nr_requests|read_ahead_kb|iosched/[a-z_]+)")


@dataclass(frozen=True)
class Influence:
    """A setting, the file and line that make it, and whether it surely takes effect."""

    by: str
    """``udev rule``, ``tuned profile`` ..."""
    file: str
    line: int
    """From 1; 0 if the whole file makes the setting."""
    attribute: str
    """Below ``queue``."""
    value: str | None
    """None if the text does not show it."""
    sure: bool
    why: str = ""
    """Why it may not take effect; empty if it surely does."""
    program: bool = False
    """A program that udev runs after all rules."""

    @property
    def place(self) -> str:
        """``file:line``."""
        return f"{self.file}:{self.line}" if self.line else self.file


def in_shell(by: str, file: Path, number: int, text: str, disk: str) -> Iterator[Influence]:
    """The changes that a shell's command line makes to the queue of `disk`."""
    targets = list(TARGET.finditer(text))
    echoed = ECHOED.findall(text)
    for place, target in enumerate(targets):
        named = target["disk"]
        known = not re.search(r"[$%`{]", named)
        if known and not fnmatchcase(disk, named):
            continue
        value = echoed[place] if len(echoed) == len(targets) else None
        why = "" if known else f"which disks {named} stands for is not known"
        if value is None:
            why = why or "what the command writes is not known"
        yield Influence(by, str(file), number, target["attribute"], value, not why, why)
    if not targets and (found := _QUEUE.search(text)):
        why = "for which disk is not known"
        yield Influence(by, str(file), number, found["attribute"], None, False, why)


def in_script(by: str, file: Path, disk: str) -> Iterator[Influence]:
    """The changes of all lines of a script, comments left out."""
    for number, line in enumerate(reading.script(file), 1):
        if not line.lstrip().startswith("#"):
            yield from in_shell(by, file, number, line, disk)
