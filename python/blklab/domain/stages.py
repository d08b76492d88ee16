"""The two stages of a request's life: how long it waited in the queue, how long the disk had it.

Of the commands that a result's ``overview`` has, whatever the rig. What is measured by the
processes is both together, and what the kernel does around them.
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
    """How times are spread, ns."""

    min_ns: Count
    max_ns: Count
    mean_ns: Mean
    stddev_ns: Mean
    """Of the sample; 0 of a single one."""
    percentiles_ns: Percentiles
    """At `PERCENTILES`: the smallest time that so many per cent did not exceed."""

    @staticmethod
    def of(took_ns: Ints) -> Spread:
        """Of at least one time."""
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
    """Of the requests of one operation."""

    requests: AtLeastOne
    """That were looked at: one in `one_in`."""
    one_in: AtLeastOne
    queue: Spread
    """From when the scheduler got it to when the disk did; 0 without a scheduler."""
    disk: Spread
    """From there to its end."""


@dataclass(frozen=True, eq=False)
class Times:
    """Of each request of one operation, ns."""

    queue_ns: Ints
    disk_ns: Ints


def times(result: Result) -> dict[str, Times]:
    """By operation, in the order of `OPERATIONS`; those that were not seen are left out."""
    trace = result.overview
    found = {}
    for number, name in enumerate(OPERATIONS):
        rows = trace.op == number
        if rows.any():
            issued = trace.issued_ns[rows]
            found[name] = Times(issued - trace.queued_ns[rows], trace.completed_ns[rows] - issued)
    return found


def stages(result: Result) -> dict[str, Stages]:
    """The same, summed up."""
    one_in = result.overview.stride
    return {
        name: Stages(len(of.disk_ns), one_in, Spread.of(of.queue_ns), Spread.of(of.disk_ns))
        for name, of in times(result).items()
    }


def middle(several: Sequence[Stages]) -> Stages:
    """Medians of each figure over runs; of the requests their number in all."""

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
