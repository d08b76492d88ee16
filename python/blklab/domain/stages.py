"""The two stages of a request: queue time and service time.

For the commands in a result's ``overview``, on every rig. The latency that a process measures is
their sum, with the kernel's own work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from blklab.domain.histogram import Ints
from blklab.domain.ranges import AtLeastOne, Count, Mean, Percentiles
from blklab.domain.result import Result

OPERATIONS = ("read", "write", "flush", "trim")
"""By number, as ``Trace.op`` has them."""
PERCENTILES = (50.0, 99.0, 99.9)

Operation = Annotated[str, Meta(pattern=rf"\A({'|'.join(OPERATIONS)})\Z")]


@dataclass(frozen=True)
class Spread:
    """The distribution of times, ns."""

    min_ns: Count
    max_ns: Count
    mean_ns: Mean
    stddev_ns: Mean
    """Standard deviation of the sample; 0 for a single value."""
    percentiles_ns: Percentiles
    """For each of `PERCENTILES`: the smallest time that this share did not exceed."""

    @staticmethod
    def of(took_ns: Ints) -> Spread:
        """The distribution of at least one time."""
        rising = np.sort(took_ns)
        places = [max(-(-len(rising) * p // 100), 1) - 1 for p in PERCENTILES]
        stddev = float(rising.std(ddof=1)) if len(rising) > 1 else 0.0
        return Spread(
            int(rising[0]),
            int(rising[-1]),
            float(rising.mean()),
            stddev,
            tuple(int(rising[int(place)]) for place in places),
        )


@dataclass(frozen=True)
class Stages:
    """The stages of the requests of one operation."""

    requests: AtLeastOne
    """The number of sampled requests: one in `one_in`."""
    one_in: AtLeastOne
    queue: Spread
    """From its arrival at the scheduler to its dispatch; 0 without a scheduler."""
    disk: Spread
    """From dispatch to completion."""


@dataclass(frozen=True, eq=False)
class Times:
    """The times of each request of one operation, ns."""

    queue_ns: Ints
    disk_ns: Ints


def times(result: Result) -> dict[str, Times]:
    """By operation, in the order of `OPERATIONS`, without operations that did not occur."""
    trace = result.overview
    found = {}
    for number, name in enumerate(OPERATIONS):
        rows = trace.op == number
        if rows.any():
            issued = trace.issued_ns[rows]
            found[name] = Times(issued - trace.queued_ns[rows], trace.completed_ns[rows] - issued)
    return found


def stages(result: Result) -> dict[str, Stages]:
    """The same as summaries."""
    one_in = result.overview.stride
    return {
        name: Stages(len(of.disk_ns), one_in, Spread.of(of.queue_ns), Spread.of(of.disk_ns))
        for name, of in times(result).items()
    }


def middle(several: Sequence[Stages]) -> Stages:
    """Medians of each figure over runs; for requests, their total number."""

    def median(values: Sequence[float]) -> float:
        return float(np.median(values))

    def spread(of: Sequence[Spread]) -> Spread:
        return Spread(
            min(one.min_ns for one in of),
            max(one.max_ns for one in of),
            median([one.mean_ns for one in of]),
            median([one.stddev_ns for one in of]),
            tuple(
                int(median(column))
                for column in zip(*(one.percentiles_ns for one in of), strict=True)
            ),
        )

    return Stages(
        sum(one.requests for one in several),
        max(one.one_in for one in several),
        spread([one.queue for one in several]),
        spread([one.disk for one in several]),
    )
