"""Groups of disks with one model and one kind of load: each gets one recommendation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab._core import TraceReading
from blklab.fleet.disks import FleetDisk
from blklab.watching import kinds
from blklab.watching.load import Load


@dataclass(frozen=True)
class DiskLoad:
    """What a disk does."""

    name: str
    """``oltp``, or ``db1/oltp.rec`` for a recording."""
    kind: str
    """A workload's own name, or the kind of load that a recording shows."""
    workload: str = ""
    """As of `blklab.compare`; empty for a recording."""
    file: Path | None = None
    """The recording."""
    device: str | None = None
    """The device in the recording, if it has several."""

    @property
    def is_idle(self) -> bool:
        """Whether a recording shows a disk that does next to nothing."""
        return self.file is not None and self.kind == kinds.IDLE.name


@dataclass(frozen=True)
class Member:
    """A disk with its loads, at least one."""

    disk: FleetDisk
    loads: tuple[DiskLoad, ...]

    @property
    def kind(self) -> str:
        """The kinds of all its loads together."""
        return " + ".join(sorted({one.kind for one in self.loads}))


@dataclass(frozen=True)
class Group:
    """Disks of one model under one kind of load."""

    number: int
    """From 1."""
    model: str
    """May be empty."""
    transport: str
    rotational: bool
    kind: str
    """The kind of the load."""
    members: tuple[Member, ...]

    @property
    def loads(self) -> list[DiskLoad]:
        """All loads of its disks, each once."""
        return list(dict.fromkeys(load for one in self.members for load in one.loads))

    @property
    def name(self) -> str:
        """For a person: ``ST4000DM000 (sata hdd) under oltp``."""
        kind = self.members[0].disk.kind
        return f"{self.model or 'disks without a model'} ({kind}) under {self.kind}"


def groups(members: Sequence[Member]) -> list[Group]:
    """All groups, in the order of models and kinds of load."""
    found: dict[tuple[str, str, bool, str], list[Member]] = {}
    for one in members:
        disk = one.disk
        key = (disk.model, disk.transport, disk.rotational, one.kind)
        found.setdefault(key, []).append(one)
    return [Group(number, *key, tuple(found[key])) for number, key in enumerate(sorted(found), 1)]


def kind_of(reading: TraceReading, host: str) -> str:
    """The kind of load of a recording, as `blklab watch` has them. What is of no known kind is like
    no other host's."""
    kind = kinds.seen(load_of(reading)).kind
    return f"{kind.name} ({host})" if kind is kinds.UNKNOWN else kind.name


def load_of(reading: TraceReading) -> Load:
    """The load of a recording, over its whole time."""
    span_s = max(reading.end_ns, reading.last_ns, 1) / 1e9
    counts = dict.fromkeys(("read", "write", "flush"), 0)
    sizes = dict.fromkeys(counts, 0)
    waits_ns = dict.fromkeys(counts, 0.0)
    flushes = 0
    for one in reading.operations:
        if one.name in counts:
            counts[one.name] += one.count
            sizes[one.name] += one.bytes
            waits_ns[one.name] += one.q2c_ns.mean * one.q2c_ns.count
            flushes += one.preflush
    in_flight = {name: wait / 1e9 / span_s for name, wait in waits_ns.items()}
    return Load(
        requests=counts["read"] + counts["write"],
        reads_per_s=counts["read"] / span_s,
        writes_per_s=counts["write"] / span_s,
        flushes_per_s=(counts["flush"] + flushes) / span_s,
        read_bytes=sizes["read"] / max(counts["read"], 1),
        write_bytes=sizes["write"] / max(counts["write"], 1),
        reads_in_flight=in_flight["read"],
        writes_in_flight=in_flight["write"],
        # At most: I/Os may overlap.
        busy=min(sum(in_flight.values()), 1.0) if reading.end_ns else 1.0,
    )
