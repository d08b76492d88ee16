"""Tasks that wait, and the batches in which they are sent.

A message to a worker and back costs some milliseconds, so short runs go together: about a second of
them, by the measured times of runs of the same kind (workload, disk, scheduler). Kinds with the
longest runs go first, and before them one run of each kind, since its time is not known. Near the
end batches get smaller, so that all workers end at the same time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from blklab.domain.task import Task

BATCH_S = 1.0
"""The aim for a batch."""
_AHEAD = 10_000
"""Tasks that are known at a time; more are taken from the plan when these are sent."""
_TASKS_MAX = 1000
"""Tasks of a batch."""
_TAIL = 2
"""Batches for each thread into which the rest is divided."""

Numbered: TypeAlias = tuple[int, Task]
_Kind: TypeAlias = tuple[str, str, str, str]


@dataclass
class _Times:
    """The measured runs of a kind."""

    count: int = 0
    sum_s: float = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.sum_s += seconds

    @property
    def mean_s(self) -> float | None:
        """None before the first."""
        return self.sum_s / self.count if self.count else None


class Batches:
    """The waiting tasks of a call."""

    def __init__(self, tasks: Iterator[Numbered]) -> None:
        self._plan = tasks
        self._waiting: dict[_Kind, deque[Numbered]] = {}
        self._times: dict[_Kind, _Times] = {}
        self._all = _Times()
        self._sent: set[_Kind] = set()
        self._count = 0
        self._exhausted = False
        self._take()

    def __bool__(self) -> bool:
        return self._count > 0

    def ended(self, task: Task, seconds: float) -> None:
        """A run took this long."""
        self._times.setdefault(_kind(task), _Times()).add(seconds)
        self._all.add(seconds)

    def back(self, tasks: list[Numbered]) -> None:
        """They are to be sent again, before others of their kind."""
        for number, task in reversed(tasks):
            self._waiting.setdefault(_kind(task), deque()).appendleft((number, task))
        self._count += len(tasks)

    def next(self, threads: int) -> list[Numbered]:
        """A batch for one of `threads`, and the longest; empty if no task waits."""
        aim_s = self._aim_s(threads)
        batch: list[Numbered] = []
        sum_s = 0.0
        while self._count and len(batch) < _TASKS_MAX:
            kind = min(self._waiting, key=self._rank)
            each_s = self._mean_s(kind)
            if batch and (each_s is None or sum_s + each_s > aim_s):
                break
            batch.append(self._pop(kind))
            # Before the first end of any run a batch is one run.
            if each_s is None:
                break
            sum_s += each_s
        self._take()
        return batch

    def longest_s(self, batch: list[Numbered]) -> float:
        """The expected time of a batch."""
        return sum(self._mean_s(_kind(task)) or BATCH_S for _, task in batch)

    def _aim_s(self, threads: int) -> float:
        if not self._exhausted:
            return BATCH_S
        every = self._waiting.items()
        rest_s = sum(len(queue) * (self._mean_s(kind) or 0.0) for kind, queue in every)
        return min(BATCH_S, rest_s / (threads * _TAIL))

    def _mean_s(self, kind: _Kind) -> float | None:
        own = self._times.get(kind)
        return self._all.mean_s if own is None else own.mean_s

    def _rank(self, kind: _Kind) -> float:
        if kind not in self._times and kind not in self._sent:
            return float("-inf")
        return -(self._mean_s(kind) or 0.0)

    def _pop(self, kind: _Kind) -> Numbered:
        queue = self._waiting[kind]
        found = queue.popleft()
        self._sent.add(kind)
        if not queue:
            del self._waiting[kind]
        self._count -= 1
        return found

    def _take(self) -> None:
        while not self._exhausted and self._count < _AHEAD:
            one = next(self._plan, None)
            if one is None:
                self._exhausted = True
            else:
                self._waiting.setdefault(_kind(one[1]), deque()).append(one)
                self._count += 1


def _kind(task: Task) -> _Kind:
    experiment = task.experiment
    return (
        task.rig.name,
        experiment.job.name,
        experiment.disk.label,
        experiment.scheduler.label,
    )
