"""The cgroups of threads whose I/O is recorded.

The kernel's block events do not name a cgroup. That of an I/O is the cgroup of the thread that
queues it, unless a thread of the kernel writes for others, as writeback does: such I/O has none.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from blklab.host.devices import mounts
from blklab.host.roots import HERE, Roots

_KERNEL_THREAD = 0x0020_0000
"""PF_KTHREAD (include/linux/sched.h) in the flags of ``/proc/PID/stat``."""
_FLAGS = 6
"""Their place behind the name there, proc(5)."""
_AGAIN_S = 1.0
"""After this time a thread may be in another cgroup."""
_KEPT = 1 << 16
"""Threads that are kept, as many as Linux has numbers by default."""


@dataclass(frozen=True)
class Member:
    """A thread, and its cgroup."""

    thread: int
    number: int
    """The kernel's number of the cgroup; 0 if it is not known."""
    path: str
    """From the root of the hierarchy, which is ``/``; empty if it is not known."""


class Members:
    """Looks up cgroups, of each thread once a second."""

    def __init__(self, roots: Roots = HERE) -> None:
        self._roots = roots
        self._controller, self._top = _hierarchy(roots)
        self._numbers: dict[str, int] = {}
        self._looked_s: dict[int, float] = {}

    def look_up(self, threads: Iterable[int]) -> Iterator[Member]:
        """The cgroups of those that have to be looked up. A thread that has ended since is left
        out."""
        if self._top is None:
            return
        now_s = time.monotonic()
        if len(self._looked_s) > _KEPT:
            self._looked_s.clear()
        for thread in threads:
            if now_s - self._looked_s.get(thread, -_AGAIN_S) < _AGAIN_S:
                continue
            self._looked_s[thread] = now_s
            found = self._of(thread)
            if found is not None:
                yield found

    def _of(self, thread: int) -> Member | None:
        place = self._roots.proc / str(thread)
        try:
            stat = (place / "stat").read_text(errors="replace")
            lines = (place / "cgroup").read_text(errors="surrogateescape").splitlines()
        except OSError:
            return None
        # The name before may hold any sign.
        fields = stat.rpartition(")")[2].split()
        if len(fields) > _FLAGS and int(fields[_FLAGS]) & _KERNEL_THREAD:
            return Member(thread, 0, "")
        for line in lines:
            _, controllers, path = [*line.split(":", 2), "", ""][:3]
            if self._controller in controllers.split(",") and path.startswith("/"):
                number = self._number(path)
                return Member(thread, number, _printable(path) if number else "")
        return Member(thread, 0, "")

    def _number(self, path: str) -> int:
        """The inode number of a cgroup's directory; 0 if it is gone or outside our namespace."""
        if path in self._numbers:
            return self._numbers[path]
        if self._top is None or ".." in path.split("/"):
            return 0
        try:
            number = (self._top / path.lstrip("/")).stat().st_ino
        except (OSError, ValueError):
            return 0
        if len(self._numbers) > _KEPT:
            self._numbers.clear()
        self._numbers[path] = number
        return number


def _printable(path: str) -> str:
    """The path as UTF-8 without what cannot be encoded."""
    return path.encode(errors="surrogateescape").decode(errors="replace")


def _hierarchy(roots: Roots) -> tuple[str, Path | None]:
    """The controller's name in ``/proc/PID/cgroup``, and where its hierarchy is mounted: that of
    blkio if there is one of version 1, else that of version 2, which has no name."""
    every = mounts.mounts(roots)
    for mount in every:
        if mount.type == "cgroup" and "blkio" in Path(mount.point).name.split(","):
            return "blkio", Path(mount.point)
    two = next((Path(mount.point) for mount in every if mount.type == "cgroup2"), None)
    return "", two
