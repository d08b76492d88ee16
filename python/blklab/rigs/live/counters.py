"""The kernel's counters of disks: current values, and differences over a run."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np

from blklab.domain.histogram import Ints
from blklab.domain.result import Series
from blklab.domain.summaries import DiskCounters
from blklab.host.roots import HERE, Roots

_SECTOR_BYTES = 512
_TEXT_BYTES_MAX = 4096
"""The size of an attribute of sysfs."""
_MS = 1_000_000
_NONE = np.zeros(0, np.int64)

INTERVAL_NS = 100 * _MS
"""The sampling interval of counters during a run: each sample takes some 30 us of CPU."""


@dataclass(frozen=True)
class Counters:
    """The columns of ``/sys/block/DISK/stat`` (``Documentation/admin-guide/iostats.rst``), in
    their order; times in ms. Older kernels have fewer."""

    read_ios: int = 0
    read_merges: int = 0
    read_sectors: int = 0
    read_ticks: int = 0
    write_ios: int = 0
    write_merges: int = 0
    write_sectors: int = 0
    write_ticks: int = 0
    in_flight: int = 0
    io_ticks: int = 0
    in_queue: int = 0
    discard_ios: int = 0
    discard_merges: int = 0
    discard_sectors: int = 0
    discard_ticks: int = 0
    flush_ios: int = 0
    flush_ticks: int = 0

    def __add__(self, other: Counters) -> Counters:
        return Counters(*(a + b for a, b in zip(self._row(), other._row(), strict=True)))

    def since(self, before: Counters) -> Counters:
        """The increase since then; the number in flight is the current one."""
        gone = [a - b for a, b in zip(self._row(), before._row(), strict=True)]
        gone[_IN_FLIGHT] = self.in_flight
        return Counters(*gone)

    def of_disk(self) -> DiskCounters:
        """In the common form of all rigs; counters that the kernel lacks are 0."""
        return DiskCounters(
            read_ios=self.read_ios,
            read_merges=self.read_merges,
            read_sectors=self.read_sectors,
            read_ticks_ns=self.read_ticks * _MS,
            write_ios=self.write_ios,
            write_merges=self.write_merges,
            write_sectors=self.write_sectors,
            write_ticks_ns=self.write_ticks * _MS,
            flush_ios=self.flush_ios,
            flush_ticks_ns=self.flush_ticks * _MS,
            discard_ios=self.discard_ios,
            discard_ticks_ns=self.discard_ticks * _MS,
            io_ticks_ns=self.io_ticks * _MS,
            in_queue_ns=self.in_queue * _MS,
            joined_ns=0,
            in_flight_ns=0,
            service_ns=0,
            disk_busy_ns=0,
            depth_max=0,
        )

    @property
    def read_bytes(self) -> int:
        """Bytes read from the disk."""
        return self.read_sectors * _SECTOR_BYTES

    @property
    def write_bytes(self) -> int:
        """Bytes written to the disk."""
        return self.write_sectors * _SECTOR_BYTES

    def _row(self) -> tuple[int, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))


_IN_FLIGHT = [field.name for field in fields(Counters)].index("in_flight")


def of(devices: Sequence[str], roots: Roots = HERE) -> Counters:
    """The sum over disks or partitions by name; a missing one counts as 0."""
    with _opened(devices, roots) as files:
        return _together(_texts(files))


@contextlib.contextmanager
def _opened(devices: Sequence[str], roots: Roots) -> Iterator[list[int]]:
    """Descriptors of the counters of existing disks."""
    with contextlib.ExitStack() as opened:
        files = []
        for name in devices:
            with contextlib.suppress(OSError):
                file = (roots.sys / "class/block" / name / "stat").open("rb", buffering=0)
                files.append(opened.enter_context(file).fileno())
        yield files


def _texts(files: Sequence[int]) -> list[bytes]:
    """The current values."""
    found = []
    for file in files:
        with contextlib.suppress(OSError):
            found.append(os.pread(file, _TEXT_BYTES_MAX, 0))
    return found


def _together(texts: Sequence[bytes]) -> Counters:
    total = Counters()
    for text in texts:
        numbers = [int(word) for word in text.split()]
        total += Counters(*numbers[: len(fields(Counters))])
    return total


class Sampler:
    """Samples the counters of disks during a run, in a separate thread.

    It stores the kernel's text, and parses it after the run.
    """

    def __init__(self, devices: Sequence[str], roots: Roots = HERE) -> None:
        self._devices, self._roots = devices, roots
        self._seen: list[list[bytes]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="blklab-sampler", daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def series(self, *, direct: bool) -> Series:
        """The disks' activity, interval by interval. The disk's bytes and I/Os equal the processes'
        own only if all of their I/O is `direct`; else those columns are empty."""

        rows = [_together(texts) for texts in self._seen]

        def steps(name: str) -> Ints:
            values = np.array([getattr(row, name) for row in rows], np.int64)
            stepped: Ints = values[1:] - values[:-1]
            return stepped

        in_flight = np.array([row.in_flight * 1000 for row in rows[1:]], np.int64)
        empty = {field.name: _NONE for field in fields(Series) if field.name != "interval_ns"}
        names = ("read_bytes", "write_bytes", "read_ios", "write_ios") if direct else ()
        return Series(
            INTERVAL_NS,
            **empty | {name: steps(name) for name in names} | {"in_flight_milli": in_flight},
        )

    def _look(self) -> None:
        start_s = time.monotonic()
        with _opened(self._devices, self._roots) as files:
            while True:
                self._seen.append(_texts(files))
                next_s = start_s + len(self._seen) * INTERVAL_NS / 1e9
                if self._ended.wait(max(next_s - time.monotonic(), 0)):
                    return
