"""This machine's memory, which guests share: one that may need too much beside the others waits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Condition

_LOOK_UP_S = 0.2
"""How often a waiting guest looks whether it is still wanted."""


class Memory:
    """What the guests of this process may need."""

    def __init__(self, available: Callable[[], int]) -> None:
        self._available = available
        self._change = Condition()
        self._guests = self._taken = self._free = 0

    @contextmanager
    def taken(self, needed_bytes: int, is_unwanted: Callable[[], bool]) -> Iterator[None]:
        """Wait until there are so many bytes beside what other guests may need, or no other guest;
        the ``with`` block has them. Returns at once if `is_unwanted`."""
        with self._change:
            while not (self._has(needed_bytes) or is_unwanted()):
                self._change.wait(_LOOK_UP_S)
            self._guests += 1
            self._taken += needed_bytes
        try:
            yield
        finally:
            with self._change:
                self._guests -= 1
                self._taken -= needed_bytes
                self._change.notify_all()

    def _has(self, needed_bytes: int) -> bool:
        if not self._guests:
            # Later a part of it has become theirs.
            self._free = self._available()
            return True
        return self._taken + needed_bytes <= self._free


def available_bytes() -> int:
    """Memory that this machine can still give; all of it, if it does not tell."""
    try:
        with Path("/proc/meminfo").open(encoding="ascii") as lines:
            found = next(line for line in lines if line.startswith("MemAvailable:"))
        return int(found.split()[1]) << 10
    except (OSError, StopIteration, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


GUESTS = Memory(available_bytes)
"""The guests of this process."""
