"""Flash that was never written to, or was trimmed, answers without looking: so a device is written
over once, in order, before the first run of jobs that write.

It is the part that the jobs use. SNIA's "Solid State Storage Performance Test Specification" asks
for the whole device, twice, which no user waits for; that the runs have come to rest is judged by
:mod:`blklab.rigs.live.steady` besides.
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
"""As much is dirty in memory at most."""
_LONG_S = 10.0
"""What takes longer is announced, once that can be known."""

Extents = list[tuple[int, int]]
"""First byte and the one behind the last; rising, apart from each other."""


def is_flash(target: Target, roots: Roots = HERE) -> bool:
    """Whether the target is a device of which no disk below rotates."""
    kinds = {reading.value(roots.sys / "block" / disk / "queue/rotational")
             for disk in target.disks}  # fmt: skip
    return target.device is not None and kinds == {"0"}


def joined(places: Iterable[tuple[int, int]]) -> Extents:
    """Of places by first byte and length; what overlaps or touches is one."""
    found: Extents = []
    for start, length in sorted(places):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], start + length))
        elif length > 0:
            found.append((start, start + length))
    return found


def total_bytes(extents: Extents) -> int:
    """Of all of them."""
    return sum(end - start for start, end in extents)


def write_over(path: Path, extents: Extents, tell: Callable[[str], None]) -> None:
    """Fill these parts of the device with data that cannot be compressed; they are on it when this
    returns. `tell` hears how long it takes if that is long. RunError in one line if it fails."""
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
