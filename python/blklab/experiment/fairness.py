"""How fairly the processes shared the disk.

The reference is the ideal fluid server of fair queueing: at every moment, each process that wants
the disk gets a part of its throughput that is proportional to its weight (Parekh and Gallager, "A
generalized processor sharing approach to flow control", 1993). A process's *lag* is the ideal
service minus its actual service so far; the largest lag of a run bounds the undue waiting of any
process. Jain's index measures how even the service per weight is at the end: 1 for perfectly even,
1/n if one of n processes gets everything (Jain, Chiu and Hawe, 1984).

Both cover the time from the start of the last job to the end of the first: only then do all
processes want the disk all the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from blklab.domain.histogram import Ints
from blklab.domain.job_figures import Service


@dataclass(frozen=True)
class Fairness:
    """How the processes shared the disk while all of them wanted it."""

    jain: float
    """Jain's index of the bytes per weight."""
    lag_bytes: float
    """The largest lag of any process, in bytes."""
    ends_apart: float
    """The time of the last process divided by that of the first."""


def fairness(served: Service, weights: Mapping[str, float]) -> Fairness | None:
    """`weights` are those of jobs, by name, 1 by default; each clone of a job has its weight. None
    if there was no time at which all of them wanted the disk and one of them got it."""
    weight = np.array([weights.get(name, 1.0) for name in served.names])
    process, end_ns = np.array(served.process), np.array(served.end_ns)
    count = len(weight)
    if not np.isin(np.arange(count), process).all():
        return None
    got = _received(process, np.array(served.bytes), count)
    ended_ns = np.array([end_ns[process == number][-1] for number in range(count)])
    begin_ns = max(served.start_ns)
    before = np.flatnonzero(end_ns <= begin_ns)
    all_want = np.flatnonzero((end_ns > begin_ns) & (end_ns <= ended_ns.min()))
    if not len(all_want):
        return None
    shared = got[all_want] - (got[before[-1]] if len(before) else 0)
    # A process that is not served falls behind until the turn ends, so the ends of turns are
    # enough.
    ideal = shared.sum(axis=1, keepdims=True) * (weight / weight.sum())
    if not shared[-1].any():
        return None
    per_weight = shared[-1] / weight
    return Fairness(
        float(per_weight.sum() ** 2 / (count * (per_weight**2).sum())),
        float((ideal - shared).max()),
        float((ended_ns.max() - begin_ns) / (ended_ns.min() - begin_ns)),
    )


def _received(process: Ints, served: Ints, count: int) -> Ints:
    """Bytes that each process has received by the end of each turn, ``(turns, processes)``; the
    kernel's own writes (process -1) belong to no process."""
    turns = np.zeros((len(process), count), np.int64)
    known = np.flatnonzero(process >= 0)
    turns[known, process[known]] = served[known]
    return turns.cumsum(axis=0)
