"""Kinds of load that a disk's counters tell apart, each with a workload that stands for it.

Counters show how many requests there are, how large they are, how many are in flight, and which
part of them are reads. They do not show addresses: small reads that a program makes in order look
like random ones, unless the block layer merges them. A sample of the requests shows that
(`blklab.watching.evidence`).

The figures that decide must not change with the scheduler, or a change of the scheduler would
change the kind: sizes are compared with bounds that are far apart, and rates with none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from blklab.base.units import number_text, size_text
from blklab.watching.load import Load

SMALL_BYTES = 32 << 10
"""Requests up to this size are small: database pages, metadata."""
LARGE_BYTES = 64 << 10
"""Requests from this size are large: copies, backups, read-ahead, writeback."""
_WHOLE_BYTES = 512 << 10
"""Reads of this size are one reader's: read-ahead, or merging, has made them."""
_FEW = 0.05
"""A part of the requests, and of the bytes, that does not count."""
_DEEP = 4.0
"""In flight: more than a program that waits for each I/O has."""
_FLUSHES = 0.002
"""Flushes for each write that make it a database."""
_IDLE_BUSY = 0.01
_IDLE_PER_S = 2.0
_REQUESTS_LEAST = 20


@dataclass(frozen=True)
class Kind:
    """A kind of load."""

    name: str
    text: str
    """In words."""
    workload: str | None
    """The workload that stands for it, as of `blklab compare`; None if there is none."""


@dataclass(frozen=True)
class Seen:
    """What the counters of an interval show."""

    kind: Kind
    shade: str
    """Sizes and reads in flight by powers of four: evidence about one shade of a kind need not hold
    for another."""
    figures: str
    """The figures that decide the kind, in words."""

    @property
    def key(self) -> str:
        """The kind and its shade."""
        return f"{self.kind.name}/{self.shade}"


IDLE = Kind("idle", "idle", None)
UNKNOWN = Kind("not-known", "not known", None)
KINDS = {
    kind.name: kind
    for kind in (
        IDLE,
        UNKNOWN,
        Kind("sequential-reads", "large reads, a stream", "seqread"),
        Kind("streams", "large reads, several streams", "streams"),
        Kind("small-reads", "small reads, few at a time", "randread"),
        Kind("many-small-reads", "small reads, many at a time", "randread-qd32"),
        Kind("large-writes", "large writes", "seqwrite"),
        Kind(
            "small-writes",
            "small writes",
            "randwrite:direct=1,ioengine=libaio,iodepth=16,size=4g,runtime=10",
        ),
        Kind("mixed", "small reads and writes", "randrw-70"),
        Kind("database", "small reads and writes, with flushes", "oltp"),
        Kind("reads-beside-writes", "small reads beside large writes", "readers-vs-writer"),
        Kind("writes-beside-reads", "small writes beside large reads", "database-vs-backup"),
        Kind("copy", "large reads and large writes", "desktop"),
    )
}
"""By name."""


def seen(load: Load) -> Seen:
    """The kind of a load."""
    if load.busy < _IDLE_BUSY or load.requests_per_s < _IDLE_PER_S:
        return Seen(IDLE, "", f"busy {100 * load.busy:.1f} % of the time")
    told = _told(load)
    if load.requests < _REQUESTS_LEAST:
        return Seen(UNKNOWN, "", f"only {load.requests} requests")
    reads = load.read_requests_share > _FEW or load.read_bytes_share > _FEW
    writes = load.read_requests_share < 1 - _FEW or load.read_bytes_share < 1 - _FEW
    sizes = [_size(load.read_bytes)] * reads + [_size(load.write_bytes)] * writes
    if "" in sizes:
        between = f"{size_text(SMALL_BYTES)} and {size_text(LARGE_BYTES)}"
        return Seen(UNKNOWN, "", f"{told}: requests between {between} are neither small nor large")
    # Of writes in flight the scheduler decides how many there are; of large sizes merging.
    shades = [f"{_power(load.reads_in_flight)} in flight"] * reads
    shades += [
        f"{what} of {size_text(4096 * _power(of_bytes / 4096))}"
        for is_part, of_bytes, what in (
            (reads, load.read_bytes, "reads"),
            (writes, load.write_bytes, "writes"),
        )
        if is_part and _size(of_bytes) == "small"
    ]
    found = KINDS[_name(load, sizes, reads=reads, writes=writes)]
    return Seen(found, ", ".join(shades), told)


def _name(load: Load, sizes: list[str], *, reads: bool, writes: bool) -> str:
    if reads and writes:
        if sizes == ["small", "small"]:
            flushed = load.flushes_per_s > max(_FLUSHES * load.writes_per_s, 0.1)
            return "database" if flushed else "mixed"
        return {
            ("small", "large"): "reads-beside-writes",
            ("large", "small"): "writes-beside-reads",
            ("large", "large"): "copy",
        }[sizes[0], sizes[1]]
    if writes:
        return f"{sizes[0]}-writes"
    deep = load.reads_in_flight >= _DEEP
    if sizes == ["small"]:
        return "many-small-reads" if deep else "small-reads"
    return "streams" if deep and load.read_bytes < _WHOLE_BYTES else "sequential-reads"


def _size(of_bytes: float) -> str:
    """``small``, ``large``, or empty between the two."""
    if of_bytes <= SMALL_BYTES:
        return "small"
    return "large" if of_bytes >= LARGE_BYTES else ""


def _power(value: float) -> int:
    """The nearest power of four, at least one."""
    return 1 << 2 * round(math.log(max(value, 1.0), 4))


def _told(load: Load) -> str:
    parts = []
    for per_s, size, in_flight, what in (
        (load.reads_per_s, load.read_bytes, load.reads_in_flight, "reads"),
        (load.writes_per_s, load.write_bytes, load.writes_in_flight, "writes"),
    ):
        if per_s:
            parts.append(
                f"{number_text(per_s)} {what}/s of {size_text(size)}, "
                f"{number_text(in_flight)} in flight"
            )
    return "; ".join(parts)
