"""A disk's load in one interval, as figures that do not depend on the interval's length."""

from __future__ import annotations

from dataclasses import dataclass

from blklab.domain.summaries import DiskCounters

_SECTOR_BYTES = 512


@dataclass(frozen=True)
class Load:
    """What a disk did in an interval. Requests are those of the disk: after merging."""

    requests: int
    """Reads and writes that completed in it."""
    reads_per_s: float
    writes_per_s: float
    flushes_per_s: float
    read_bytes: float
    """The mean size of a read; 0 without reads."""
    write_bytes: float
    """The mean size of a write; 0 without writes."""
    reads_in_flight: float
    """The mean number of reads in the scheduler and at the disk, by Little's law."""
    writes_in_flight: float
    busy: float
    """The part of the interval in which a request was in flight, 0 to 1."""

    @property
    def requests_per_s(self) -> float:
        """Reads and writes."""
        return self.reads_per_s + self.writes_per_s

    @property
    def bytes_per_s(self) -> float:
        """Reads and writes together."""
        return self.reads_per_s * self.read_bytes + self.writes_per_s * self.write_bytes

    @property
    def read_requests_share(self) -> float:
        """The part of the requests that are reads, 0 to 1."""
        return self.reads_per_s / max(self.requests_per_s, 1e-9)

    @property
    def read_bytes_share(self) -> float:
        """The part of the bytes that are read, 0 to 1."""
        return self.reads_per_s * self.read_bytes / max(self.bytes_per_s, 1e-9)


def load(since: DiskCounters, span_ns: int) -> Load:
    """The load of an interval of `span_ns`, from the increase of the counters in it."""
    span_s = max(span_ns, 1) / 1e9
    return Load(
        requests=since.read_ios + since.write_ios,
        reads_per_s=since.read_ios / span_s,
        writes_per_s=since.write_ios / span_s,
        flushes_per_s=since.flush_ios / span_s,
        read_bytes=since.read_sectors * _SECTOR_BYTES / max(since.read_ios, 1),
        write_bytes=since.write_sectors * _SECTOR_BYTES / max(since.write_ios, 1),
        reads_in_flight=since.read_ticks_ns / 1e9 / span_s,
        writes_in_flight=since.write_ticks_ns / 1e9 / span_s,
        busy=min(since.io_ticks_ns / 1e9 / span_s, 1.0),
    )
