"""The scalars of a run: the same types from every rig, and no other fields.

`crates/blklab-core/src/result.rs` explains them, under the same names. The core returns them as
objects, a guest writes them as JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from blklab import _core

Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""The range of a column."""


@dataclass(frozen=True)
class LatencySummary:
    """Exact moments of a latency, ns."""

    count: Count
    min_ns: Count
    max_ns: Count
    mean_ns: float
    stddev_ns: float


@dataclass(frozen=True)
class SampleSummary:
    """Moments of samples taken over time (fio's ``bw_*`` in KiB/s and ``iops_*``)."""

    count: Count
    min: float
    max: float
    mean: float
    stddev: float


@dataclass(frozen=True)
class DiskCounters:
    """The block layer's counters, as in ``/proc/diskstats``; times in ns."""

    read_ios: Count
    read_merges: Count
    read_sectors: Count
    read_ticks_ns: Count
    write_ios: Count
    write_merges: Count
    write_sectors: Count
    write_ticks_ns: Count
    flush_ios: Count
    flush_ticks_ns: Count
    discard_ios: Count
    discard_ticks_ns: Count
    io_ticks_ns: Count
    in_queue_ns: Count
    joined_ns: Count
    in_flight_ns: Count
    service_ns: Count
    disk_busy_ns: Count
    depth_max: Count


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Exactly these fields are required."""


class DirectionSummary(_Strict, frozen=True):
    """One direction of one job."""

    ios: Count
    bytes: Count
    runtime_ns: Count
    slat: LatencySummary
    clat: LatencySummary
    lat: LatencySummary
    bw: SampleSummary
    iops: SampleSummary


class JobSummary(_Strict, frozen=True):
    """One fio process."""

    name: str
    group: Count
    group_reporting: bool
    options: tuple[tuple[str, str], ...]
    percentiles: tuple[Annotated[float, Meta(ge=0, le=100)], ...]
    start_ns: Count
    end_ns: Count
    user_ns: Count
    system_ns: Count
    context_switches: Count
    read: DirectionSummary
    write: DirectionSummary
    trim: DirectionSummary
    sync_lat: LatencySummary
    depth_levels: tuple[Count, ...]
    submit_levels: tuple[Count, ...]
    complete_levels: tuple[Count, ...]
    latency_levels: tuple[Count, ...]


class RunSummary(_Strict, frozen=True):
    """One run."""

    duration_ns: Count
    jobs: tuple[JobSummary, ...]
    disk: DiskCounters
    series_interval_ns: Count
    overview_stride: Count
    detail_left_out: Count
    decisions_left_out: Count | None


# Made once, here: msgspec builds its data of a type at the first use, and crashes if two threads do
# so at the same time (msgspec 0.22). `from_core` uses the same data.
DECODER: msgspec.json.Decoder[RunSummary] = msgspec.json.Decoder(RunSummary)
"""Decodes a rig's document; msgspec.ValidationError if it is not valid."""


def from_core(summary: _core.RunSummary) -> RunSummary:
    """The core's scalars as data that can be compared and sent to another process.
    msgspec.ValidationError if a number does not fit into a column."""
    return msgspec.convert(summary, RunSummary, from_attributes=True)
