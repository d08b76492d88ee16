"""What a program's work costs the disk: bytes of data, journal and metadata, flushes, commits.

A guest of the kernel rig counts them from its block layer's events (``costs/`` of
``blklab-guest``): requests are counted when they complete, after all merges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from blklab.domain.ranges import Count


@dataclass(frozen=True)
class Requests:
    """Requests of one kind."""

    count: Count
    bytes: Count


@dataclass(frozen=True)
class Moved:
    """All requests of a stretch of time, by kind."""

    read: Requests
    data: Requests
    """Writes of files' contents."""
    journal: Requests
    """Writes to the journal."""
    metadata: Requests
    """Other writes that the file system marks as metadata; without a journal of ext4 all of
    them."""
    flushes: Count
    """Flushes of the disk's cache."""
    fua: Count
    """Writes with FUA, counted above too."""


@dataclass(frozen=True)
class CpuTime:
    """Time that CPU work of a program took."""

    user_ns: Count
    kernel_ns: Count
    """For its system calls and page faults."""


@dataclass(frozen=True)
class Costs:
    """The costs of a run."""

    during: Moved
    """While the program ran."""
    after: Moved
    """What it left in the page cache, written by a sync after its end."""
    commits: Count | None = None
    """Commits of the journal while it ran; None if the file system does not count them."""
    asked_bytes: Count | None = None
    """Bytes given to write calls; None if the kernel does not count them."""
    cpu: CpuTime | None = None
    """None if CPU work took no time."""


@dataclass(frozen=True)
class OperationCosts:
    """The costs of one operation, or of a whole run, while the program ran; NaN if not known."""

    is_whole: bool
    """The costs of a run, whose operations the program does not report."""
    data_bytes: float
    journal_bytes: float
    metadata_bytes: float
    read_bytes: float
    writes: float
    """Write requests."""
    flushes: float
    fua: float
    commits: float
    amplification: float
    """Written bytes divided by the bytes given to write calls."""
    cpu_ns: float


def of_operations(costs: Costs, operations: int) -> OperationCosts:
    """The costs of one of these operations; of the run if there are none."""
    moved, count = costs.during, max(operations, 1)
    written = (moved.data, moved.journal, moved.metadata)
    asked = costs.asked_bytes or 0
    return OperationCosts(
        operations == 0,
        moved.data.bytes / count,
        moved.journal.bytes / count,
        moved.metadata.bytes / count,
        moved.read.bytes / count,
        sum(one.count for one in written) / count,
        moved.flushes / count,
        moved.fua / count,
        math.nan if costs.commits is None else costs.commits / count,
        sum(one.bytes for one in written) / asked if asked else math.nan,
        math.nan if costs.cpu is None else (costs.cpu.user_ns + costs.cpu.kernel_ns) / count,
    )


def middle(several: Sequence[OperationCosts]) -> OperationCosts | None:
    """Medians of each figure; None without any."""
    if not several:
        return None
    names = [name for name in OperationCosts.__dataclass_fields__ if name != "is_whole"]
    medians = {name: float(median(getattr(one, name) for one in several)) for name in names}
    return OperationCosts(is_whole=several[0].is_whole, **medians)
