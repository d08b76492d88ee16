"""What an executor is, and the events that it reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

from blklab.domain.conditions import DeviceState
from blklab.domain.measurement import Measurement
from blklab.domain.result import Result
from blklab.domain.task import Task
from blklab.errors import BlklabError
from blklab.rigs import Rig


@dataclass(frozen=True)
class KeptRun:
    """The part of a result that a comparison stores: the figures and the rig's documents."""

    measurement: Measurement
    raw: Mapping[str, bytes]
    """See :class:`blklab.domain.result.Result`, as the next two."""
    device_before: DeviceState | None
    device_after: DeviceState | None


Found: TypeAlias = KeptRun | Result
"""The result of a task: see `Task.wanted`."""


@dataclass(frozen=True)
class Ended:
    """A task that has ended."""

    number: int
    """The task's number."""
    found: Found
    begun_at: datetime
    """UTC, as `ended_at`."""
    ended_at: datetime


@dataclass(frozen=True)
class Failed:
    """A task without a result."""

    number: int
    """The task's number."""
    error: BlklabError


class Executor(Protocol):
    """Runs tasks somewhere."""

    def run(
        self,
        tasks: Sequence[Task],
        ended: Callable[[Sequence[Ended]], None],
        failed: Callable[[Failed], None] | None = None,
    ) -> None:
        """Run all. `ended` is called in this thread with the tasks that have ended since the last
        call, at least one; each task is in one call. `failed` is called for each that fails.

        Without `failed` the first task that fails ends the call: BlklabError. KeyboardInterrupt
        after Ctrl-C. Then running tasks are cancelled, and nothing runs when this raises.
        """


class Place(Protocol):
    """Where tasks run."""

    @property
    def max_parallel(self) -> int:
        """The maximum of parallel runs of this process, which replays what a cluster's workers do
        not."""

    @property
    def takes_over(self) -> bool:
        """Whether runs that the store has are not made again: of other comparisons too."""

    def executor(self, rig: Rig | None = None) -> Executor:
        """An executor there. `rig` is a prepared rig for the tasks of its own spec. InputError if
        tasks of this rig cannot run there."""
