"""Completion latencies of jobs as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from blklab.domain.histogram import Histogram, Ints
from blklab.domain.ranges import Count, Mean, Percentiles
from blklab.domain.result import DIRECTIONS, Job

PERCENTILES = (50.0, 99.0, 99.9)
OPERATIONS = ("read", "write", "sync", "trim", "operation")
"""The operations with latencies."""
OPERATION_TEXT = {"read": "reads", "sync": "fsyncs", "write": "writes", "trim": "trims",
                  "operation": "operations", "": "-"}  # fmt: skip
RANKED_BY = 99.0
"""The percentile that ranks by `latency`."""

Operation = Annotated[str, Meta(pattern=rf"\A({'|'.join(OPERATIONS)})\Z")]


@dataclass(frozen=True)
class Latency:
    """Latencies of one kind of operation, ns."""

    ios: Count
    mean_ns: Mean
    percentiles_ns: Percentiles
    """At `PERCENTILES`."""
    value_ns: Annotated[tuple[Count, ...], Meta(min_length=1)]
    """Histogram in fio's buckets (64 per power of two)."""
    count: tuple[Count, ...]

    def histogram(self) -> Histogram:
        """As a histogram again."""
        return Histogram(np.array(self.value_ns, np.int64), np.array(self.count, np.int64))


def latencies(jobs: Sequence[Job]) -> dict[str, Latency]:
    """The latencies of all `jobs` together, by operation: ``read``, ``sync``, ``write``,
    ``trim``."""
    found = {}
    for name in ("read", "sync", "write", "trim"):
        if name == "sync":
            summaries = [job.sync_lat for job in jobs]
            hist = Histogram.merged(job.sync_hist for job in jobs)
        else:
            summaries = [job.direction(name).clat for job in jobs]
            hist = Histogram.merged(job.direction(name).clat_hist for job in jobs)
        count = sum(summary.count for summary in summaries)
        if count:
            folded = hist.folded()
            found[name] = Latency(
                count,
                sum(summary.mean_ns * summary.count for summary in summaries) / count,
                tuple(hist.percentiles(PERCENTILES).tolist()),
                tuple(folded.value_ns.tolist()),
                tuple(folded.count.tolist()),
            )
    return found


def latency_of(took_ns: Ints) -> Latency:
    """The figures of operations with these latencies; needs at least one."""
    value_ns, count = np.unique(took_ns, return_counts=True)
    hist = Histogram(value_ns, count.astype(np.int64))
    folded = hist.folded()
    return Latency(
        len(took_ns),
        float(took_ns.mean()),
        tuple(hist.percentiles(PERCENTILES).tolist()),
        tuple(folded.value_ns.tolist()),
        tuple(folded.count.tolist()),
    )


def io_seconds(jobs: Sequence[Job]) -> float:
    """The time that divides throughput: as in fio, the time of the slowest direction of parallel
    jobs; successive groups (`stonewall`) add up."""
    total_ns = longest_ns = end_ns = 0
    for job in sorted(jobs, key=lambda job: job.start_ns):
        if job.start_ns >= end_ns:
            total_ns += longest_ns
            longest_ns = 0
        longest_ns = max(longest_ns, *(job.direction(name).runtime_ns for name in DIRECTIONS))
        end_ns = max(end_ns, job.end_ns)
    return (total_ns + longest_ns) / 1e9
