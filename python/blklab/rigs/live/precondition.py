"""Flash that was never written to, or was trimmed, returns zeros without reading: so a device is
overwritten once, sequentially, before the first run of jobs that write.

Only the part that the jobs use is overwritten. SNIA's "Solid State Storage Performance Test
Specification" demands the whole device, twice, which takes too long for users;
:mod:`blklab.rigs.live.steady` checks separately that the runs have reached a steady state.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from blklab.base.text import shown
from blklab.base.units import duration_text
from blklab.errors import RunError
from blklab.host import reading
from blklab.host.roots import HERE, Roots
from blklab.rigs.live.target import Target

_BLOCK_BYTES = 1 << 20
_FLUSHED_BYTES = 64 << 20
"""The maximum of dirty memory."""
_LONG_S = 10.0
"""Longer work is announced, as soon as its duration can be estimated."""

Extents = list[tuple[int, int]]
"""First byte and the byte after the last; rising and disjoint."""


def is_flash(target: Target, roots: Roots = HERE) -> bool:
    """Whether the target is a device with only non-rotating disks below."""
    kinds = {reading.value(roots.sys / "block" / disk / "queue/rotational")
             for disk in target.disks}  # fmt: skip
    return target.device is not None and kinds == {"0"}


def joined(places: Iterable[tuple[int, int]]) -> Extents:
    """The ranges of places by first byte and length, with overlapping and adjacent ones merged."""
    found: Extents = []
    for start, length in sorted(places):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], start + length))
        elif length > 0:
            found.append((start, start + length))
    return found


def total_bytes(extents: Extents) -> int:
    """The total of all ranges."""
    return sum(end - start for start, end in extents)


def write_over(path: Path, extents: Extents, tell: Callable[[str], None]) -> None:
    """Fill these ranges of the device with data that cannot be compressed; they are flushed when
    this returns. `tell` receives the expected time if it is long. RunError in one line if it
    fails."""
    if not extents:
        return
    total, written, told, begin_s = total_bytes(extents), 0, False, time.monotonic()
    try:
        with path.open("rb+", buffering=0) as device:
            for start, end in extents:
                device.seek(start)
                while (left := end - device.tell()) > 0:
                    written += device.write(os.urandom(min(left, _BLOCK_BYTES)))
                    if written % _FLUSHED_BYTES < _BLOCK_BYTES:
                        os.fdatasync(device.fileno())
                        os.posix_fadvise(device.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                        more_s = (time.monotonic() - begin_s) / written * (total - written)
                        if more_s > _LONG_S and not told:
                            told = True
                            tell(f"overwriting {shown(str(path))}: about "
                                 f"{duration_text(more_s * 1e9)} more")  # fmt: skip
            os.fsync(device.fileno())
    except OSError as error:
        raise RunError(
            f"{shown(str(path))}: could not be overwritten before the first run: {error.strerror}"
        ) from error
