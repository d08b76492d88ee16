"""What a run did, as measured: beside a figure that is far from the published one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blklab.base.units import duration_text, number_text, size_text
from blklab.domain.costs import of_operations
from blklab.domain.measurement import Measurement

FAR = 1.5
"""A figure that is so many times the published one, or that part of it, is explained."""
_SECTOR_BYTES = 512
_EACH_LEAST = 0.1
"""Flushes of an operation; with fewer, the whole run is told."""


def is_far(factor: float | None) -> bool:
    """Whether the factor of a measured figure to the published one asks for an explanation."""
    return factor is not None and not 1 / FAR <= factor <= FAR


def explained(runs: Sequence[Measurement]) -> str:
    """What the first of a scheduler's runs did, in a sentence: its requests and flushes, what they
    took, and the time of its CPU work."""
    if not runs:
        return ""
    run = runs[0]
    return f"Measured under {run.scheduler}: {'; '.join(_parts(run))}"


def _parts(run: Measurement) -> Iterator[str]:
    counters, duration_ns = run.disk_counters, max(run.duration_ns, 1)
    operations = run.latencies.get("operation")
    count = int(operations.ios) if operations else 0
    if run.costs is not None:
        each = of_operations(run.costs, count)
        if each.flushes < _EACH_LEAST:
            each = of_operations(run.costs, 0)
        of = "in the run" if each.is_whole else "for each operation"
        journal = f"{size_text(round(each.journal_bytes))} of the journal"
        yield (
            f"{number_text(each.flushes)} flushes, {number_text(each.writes)} writes, {journal} "
            f"and {size_text(round(each.data_bytes))} of data {of}"
        )
    if flushes := counters.get("flush_ios", 0):
        took_ns = counters["flush_ticks_ns"]
        yield (
            f"a flush takes {duration_text(took_ns / flushes)}, all of them "
            f"{took_ns / duration_ns * 100:.0f} % of the time"
        )
    requests = counters["read_ios"] + counters["write_ios"]
    if requests:
        sectors = counters.get("read_sectors", 0) + counters.get("write_sectors", 0)
        merges = counters.get("read_merges", 0) + counters.get("write_merges", 0)
        size = size_text(round(sectors * _SECTOR_BYTES / requests))
        yield f"{requests} requests of {size} on average, after {merges} merges"
    if "disk_busy_ns" in counters:
        busy = min(counters["disk_busy_ns"] / duration_ns, 1.0)
        yield f"the disk is busy {busy * 100:.0f} % of the time"
    if run.costs is not None and run.costs.cpu is not None:
        cpu_ns = run.costs.cpu.user_ns + run.costs.cpu.kernel_ns
        yield f"CPU work takes {cpu_ns / duration_ns * 100:.0f} %"
