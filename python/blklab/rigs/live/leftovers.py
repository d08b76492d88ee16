"""What killed processes have left, put right: all kinds of records of the journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from blklab.base import scratch
from blklab.base.journal import BusyError, Journal
from blklab.errors import InputError, RunError, nearest
from blklab.rigs.live import borrowed, cgroups, files, tracefs

_KINDS: Mapping[str, Callable[[Journal, str], list[str]]] = {
    borrowed.KIND: borrowed.recover,
    cgroups.KIND: cgroups.recover,
    files.KIND: files.recover,
    tracefs.KIND: tracefs.recover,
    scratch.KIND: scratch.recover,
}
_ONCE = (cgroups.KIND, files.KIND, tracefs.KIND, scratch.KIND)


@dataclass
class Found:
    """A line each."""

    done: list[str] = field(default_factory=list)
    """What was put right."""
    busy: list[str] = field(default_factory=list)
    """What a process that lives is at."""
    problems: list[str] = field(default_factory=list)
    """What could not be."""


def restore(journal: Journal) -> Found:
    """Put right all that no process that lives is at."""
    found = Found()
    for key in sorted({*journal.keys(), *journal.unfinished()}):
        kind = key.partition("-")[0]
        try:
            with journal.locked(key, key, once=kind in _ONCE):
                lines = _KINDS[kind](journal, key) if kind in _KINDS else []
                (found.problems if journal.read(key) else found.done).extend(lines)
        except BusyError as error:
            found.busy.append(f"{error}: left alone")
        except RunError as error:
            found.problems.append(str(error))
    return found


def forget(journal: Journal, what: str) -> str:
    """Drop the record of a disk, or of a directory with test files; a line that says so.
    InputError if there is none."""
    key, keys = f"{borrowed.KIND}-{what}", journal.keys()
    if Path(what).name.startswith(files.PREFIX):
        key = f"{files.KIND}-{Path(what).name.removeprefix(files.PREFIX)}"
    if key not in keys:
        known = [other.removeprefix(f"{borrowed.KIND}-") for other in keys]
        raise InputError(f"--forget: nothing is written down of '{what}'{nearest(what, known)}")
    with journal.locked(key, what, once=not key.startswith(f"{borrowed.KIND}-")):
        journal.remove(key)
    return f"{what}: forgotten; it stays as it is"
