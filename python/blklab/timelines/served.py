"""What was served in a part of a trace: totals and waits, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blklab.base.text import shown
from blklab.base.units import duration_text, size_text

if TYPE_CHECKING:
    from blklab._core import ServedCounts, ServedGot, ServedIo, ServedOwner, ServedSlow, TraceServed

_SECTOR_BYTES = 512
_KERNEL = 2**32 - 1
"""The number of the kernel's writeback in the simulator's recordings."""


@dataclass(frozen=True)
class Share:
    """What came and was served of one process or cgroup; None where nothing is known."""

    name: str
    came: int
    reads: int
    others: int
    read_bytes: int
    other_bytes: int
    wait_ns: float | None
    """Mean wait of those that were issued, from queue to issue."""
    wait_max_ns: int | None
    disk_ns: float | None
    """Mean time at the disk, from issue to completion."""

    @property
    def ios(self) -> int:
        """I/Os that were served."""
        return self.reads + self.others

    @property
    def bytes(self) -> int:
        """Their bytes."""
        return self.read_bytes + self.other_bytes


def shares(owners: Sequence[str], counts: Iterable[ServedCounts]) -> list[Share]:
    """One row for each, the one that was served most first; of one step."""
    found = [
        Share(
            owners[one.row],
            one.came,
            one.ios[0],
            one.ios[1],
            one.bytes[0],
            one.bytes[1],
            one.wait_ns / one.waited if one.waited else None,
            one.wait_max_ns if one.waited else None,
            one.disk_ns / one.completed if one.completed else None,
        )
        for one in counts
    ]
    return sorted(found, key=lambda share: (-share.bytes, -share.ios, -share.came, share.name))


def process_text(name: str, number: int) -> str:
    """``reader 12``: a process's name and number, as far as they are known."""
    parts = (shown(name), str(number) if 0 < number < _KERNEL else "")
    return " ".join(part for part in parts if part) or "not known"


def process_name(owner: ServedOwner) -> str:
    """The same of a row."""
    return process_text(owner.name, owner.number)


def cgroup_name(owner: ServedOwner) -> str:
    """Its path, else its number."""
    return shown(owner.name) or (f"number {owner.number}" if owner.number else "not known")


def io_words(io: ServedIo) -> str:
    """``read of 4 KiB at 12.345 GB``."""
    if not io.bytes:
        return io.op
    return f"{io.op} of {size_text(io.bytes)} at {io.sector * _SECTOR_BYTES / 1e9:.3f} GB"


def slow_words(slow: ServedSlow, found: TraceServed) -> str:
    """What was slow, how long it waited, and how long the disk had it."""
    io = slow.io
    assert io.completed_ns is not None, "only I/Os that complete are kept"
    told = f"took {duration_text(io.completed_ns - io.queued_ns)}"
    if io.issued_ns is not None:
        told += f": {duration_text(io.issued_ns - io.queued_ns)} before it was issued"
        if io.inserted_ns is not None and io.inserted_ns > io.queued_ns:
            told += f" ({duration_text(io.inserted_ns - io.queued_ns)} until its insert)"
        told += f" and {duration_text(io.completed_ns - io.issued_ns)} at the disk"
    name = process_name(found.processes[io.process])
    return f"{name}: {io_words(io)}, came at {at_text(io.queued_ns)}, {told}"


def meanwhile_words(slow: ServedSlow, names: Sequence[str], most: int) -> list[str]:
    """What the disk did while it waited, and while the disk had it."""
    found = []
    if slow.io.issued_ns is not None and slow.io.issued_ns > slow.io.queued_ns:
        found.append(f"while it waited, the disk got {_got_words(slow.issued, names, most)}")
    found.append(
        f"while the disk had it, the disk completed {_got_words(slow.completed, names, most)}"
    )
    return found


def _got_words(got: Sequence[ServedGot], names: Sequence[str], most: int) -> str:
    """The I/Os of the processes with the most bytes."""
    if not got:
        return "nothing"
    count = sum(sum(one.ios) for one in got)
    parts = []
    for one in got[:most]:
        # The few flushes and discards count as writes.
        kinds = zip(("read", "write"), one.ios, one.bytes, strict=True)
        told = [
            f"{number:,} {_several(kind, number)} ({size_text(size)})"
            for kind, number, size in kinds
            if number
        ]
        parts.append(f"{names[one.process]}: {' and '.join(told)}")
    more = len(got) - most
    rest = f"; and {more} processes more" if more > 0 else ""
    return f"{count:,} {_several('I/O', count)}: {'; '.join(parts)}{rest}"


def _several(kind: str, count: int) -> str:
    return kind if count == 1 else f"{kind}s"


def at_text(at_ns: int) -> str:
    """A time of the trace, to the microsecond."""
    return f"{at_ns / 1e9:.6f} s"
