"""The page cache at the start of a run: without test files (cold), or with all (warm)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from blklab.errors import InputError, nearest

CACHES = ("cold", "warm")
_DROP = Path("/proc/sys/vm/drop_caches")
_EVERYTHING = "3\n"
_BLOCK_BYTES = 1 << 20


def check(name: str) -> None:
    """InputError if there is no such state."""
    if name not in CACHES:
        raise InputError(f"--cache: no '{name}'{nearest(name, CACHES)}")


def may_drop() -> bool:
    """Whether this user may empty the page cache."""
    return os.access(_DROP, os.W_OK)


def make_cold(files: Sequence[Path]) -> None:
    """Write back dirty pages, then drop the whole cache: pages, directories and inodes. Without the
    permission for this, only the test `files` are dropped."""
    if may_drop():
        os.sync()
        _DROP.write_text(_EVERYTHING)
        return
    for path in files:
        with _opened(path) as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def make_warm(places: Sequence[tuple[Path, int, int]]) -> None:
    """Write back dirty pages, then read all of each place: path, first byte, length."""
    os.sync()
    for path, start, length in places:
        with _opened(path) as file:
            os.posix_fadvise(file.fileno(), start, length, os.POSIX_FADV_WILLNEED)
            file.seek(start)
            left = length
            while left > 0 and (block := file.read(min(left, _BLOCK_BYTES))):
                left -= len(block)


def _opened(path: Path) -> IO[bytes]:
    """Opened for reading; follows no link, and does not wait for a pipe."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags), "rb", buffering=0)
