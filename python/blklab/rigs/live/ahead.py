"""Threads that run before all other programs while a measurement lasts.

The measured program gets the highest priority of the normal class in a session of its own, which it
must not leave (fio: `thread`). So do the kernel's threads that work for it: ``ksoftirqd``, workers
of unbound queues, of which loop's are some, and of ``kblockd``. Among each other they compete as
ever. Slices shorter than the default let them preempt other programs when they wake up, since Linux
6.12. The kernel's threads are in the journal before they change: the next run, or ``blklab
restore``, restores those of a killed one.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab.base.journal import Journal, boot_id
from blklab.base.signals import Signals
from blklab.errors import RunError

KIND = "threads"
"""The kind of its records."""
_KEY = f"{KIND}-ahead"
_NICE, _SLICE_NS = -20, 500_000
_SCHED_SETATTR = 314
"""The number on x86_64."""
WALL = ("sh", "-c", f'echo {_NICE} >/proc/self/autogroup 2>/dev/null; exec "$@"', "sh")
"""The words in front of a program's: a session is a group of its own, whose priority counts."""
_THREADS = re.compile(r"ksoftirqd/\d+|kworker/u\d+:.*|kworker/\d+:\d+H.*")
# Fields of /proc/PID/stat behind the name.
_NICE_FIELD, _START_FIELD = 16, 19


@dataclass(frozen=True)
class _Thread:
    pid: int
    start_ticks: int
    nice: int


def why_not() -> str:
    """The reason if priorities cannot be raised here; else empty."""
    if os.geteuid() != 0:
        return "that needs root"
    return "" if os.uname().machine == "x86_64" else "only on x86_64"


@contextlib.contextmanager
def ahead(journal: Journal, signals: Signals, told: list[str]) -> Iterator[Ahead]:
    """The kernel's threads are raised; the end of the ``with`` restores them. RunError."""
    with journal.locked(_KEY, "priorities of the kernel's threads", once=True):
        told += recover(journal, _KEY)
        raised: dict[int, _Thread] = {}

        own = os.nice(0)

        def undo() -> None:
            _restore(raised.values())
            _set(0, own, 0)
            journal.remove(_KEY)

        with signals.undoing(undo):
            # The programs that this process starts inherit it.
            _set(0, _NICE, _SLICE_NS)
            yield Ahead(journal, raised)


@dataclass(frozen=True)
class Ahead:
    """Raises threads as long as it lives."""

    _journal: Journal
    _raised: dict[int, _Thread]

    def refresh(self) -> None:
        """Raise the kernel's threads that have come since. RunError if the kernel refuses."""
        new = [thread for thread in _threads() if self._raised.get(thread.pid) != thread]
        new = [thread for thread in new if thread.nice != _NICE or thread.pid not in self._raised]
        if not new:
            return
        self._raised.update((thread.pid, thread) for thread in new)
        rows = [[one.pid, one.start_ticks, one.nice] for one in self._raised.values()]
        self._journal.write(_KEY, KIND, {"threads": rows})
        for thread in new:
            _set(thread.pid, _NICE, _SLICE_NS)


def recover(journal: Journal, key: str) -> list[str]:
    """Restore the threads of record `key`; returns a line for each result. Needs the lock."""
    record = journal.read(key)
    if record is None:
        return []
    threads = _checked(record, journal, key)
    if record["boot_id"] == boot_id():
        _restore(threads)
    journal.remove(key)
    return ["priorities of the kernel's threads: restored"]


def _checked(record: Mapping[str, Any], journal: Journal, key: str) -> list[_Thread]:
    rows = record.get("threads")
    try:
        found = [_Thread(*map(int, row)) for row in rows or ()]
    except (TypeError, ValueError):
        found = []
    if key != _KEY or not found or not all(-20 <= one.nice < 20 for one in found):  # noqa: PLR2004
        raise RunError(f"{journal.directory / key}.json: not a record of threads")
    return found


def _restore(threads: Any) -> None:
    now = {thread.pid: thread for thread in _threads()}
    for thread in threads:
        found = now.get(thread.pid)
        # Another thread may have the number by now.
        if found is not None and found.start_ticks == thread.start_ticks:
            with contextlib.suppress(RunError):
                _set(thread.pid, thread.nice, 0)


def _threads() -> list[_Thread]:
    """The kernel's threads of this kind."""
    found = []
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        try:
            text = (directory / "stat").read_text(errors="replace")
            is_kernels = not (directory / "cmdline").read_bytes()
            name = (directory / "comm").read_text(errors="replace").strip()
        except OSError:
            continue
        if is_kernels and _THREADS.fullmatch(name):
            fields = text.rpartition(")")[2].split()
            found.append(
                _Thread(int(directory.name), int(fields[_START_FIELD]), int(fields[_NICE_FIELD]))
            )
    return found


def _set(pid: int, nice: int, slice_ns: int) -> None:
    """The normal class, this priority, and this slice; 0 is the default. RunError."""
    attributes = struct.pack("=IIQiIQQQ", 48, 0, 0, nice, 0, slice_ns, 0, 0)
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    if syscall(_SCHED_SETATTR, pid, attributes, 0) != 0:
        number = ctypes.get_errno()
        # A worker may have ended since.
        if number != errno.ESRCH:
            raise RunError(f"priority of thread {pid}: {os.strerror(number)}")
