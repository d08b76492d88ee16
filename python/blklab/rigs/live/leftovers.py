"""Undo leftovers of killed processes: all kinds of journal records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from blklab.base import scratch
from blklab.base.journal import BusyError, Journal
from blklab.errors import InputError, RunError, nearest
from blklab.rigs.live import ahead, borrowed, cgroups, files, made, tracefs

_KINDS: Mapping[str, Callable[[Journal, str], list[str]]] = {
    borrowed.KIND: borrowed.recover,
    cgroups.KIND: cgroups.recover,
    files.KIND: files.recover,
    tracefs.KIND: tracefs.recover,
    scratch.KIND: scratch.recover,
    made.KIND: made.recover,
    ahead.KIND: ahead.recover,
}
_ONCE = (cgroups.KIND, files.KIND, tracefs.KIND, scratch.KIND, made.KIND, ahead.KIND)


@dataclass
class Found:
    """A line each."""

    done: list[str] = field(default_factory=list)
    """Undone leftovers."""
    busy: list[str] = field(default_factory=list)
    """Leftovers in use by a running process."""
    problems: list[str] = field(default_factory=list)
    """Leftovers that could not be undone."""


def restore(journal: Journal) -> Found:
    """Undo all leftovers except those in use by a running process."""
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
    """Discard the record of a disk, or of a directory with test files; returns a line.
    InputError if there is none."""
    key, keys = f"{borrowed.KIND}-{what}", journal.keys()
    if Path(what).name.startswith(files.PREFIX):
        key = f"{files.KIND}-{Path(what).name.removeprefix(files.PREFIX)}"
    if key not in keys:
        known = [other.removeprefix(f"{borrowed.KIND}-") for other in keys]
        raise InputError(f"--forget: no record of '{what}'{nearest(what, known)}")
    with journal.locked(key, what, once=not key.startswith(f"{borrowed.KIND}-")):
        journal.remove(key)
    return f"{what}: record discarded; it stays as it is"
