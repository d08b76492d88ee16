"""Events of a running comparison: the end of each run, and its receiver.

The layer that runs experiments tells a `Keeper` and knows no store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from blklab.domain.comparison import Planned
from blklab.domain.measurement import Measurement
from blklab.domain.setup import SetupData


@dataclass(frozen=True)
class Finished:
    """A run that has ended: what it measured, and what is kept beside that."""

    planned: Planned
    measurement: Measurement
    begun_at: datetime
    """UTC, as `ended_at`."""
    ended_at: datetime
    raw: Mapping[str, bytes] = field(default_factory=dict)
    """See :class:`blklab.domain.result.Result`, as the next two."""
    device_before: Mapping[str, Any] | None = None
    device_after: Mapping[str, Any] | None = None


class Keeper(Protocol):
    """Where the runs of one comparison go."""

    @property
    def name(self) -> str:
        """Its number, for the user; empty if it is not stored."""

    @property
    def kept(self) -> Mapping[int, Measurement]:
        """Runs stored before, by number in the plan."""

    @property
    def lost(self) -> str:
        """Why some runs could not be stored; empty if all were."""

    def keep(self, number: int, finished: Finished) -> None:
        """One run; never raises for the store's sake."""

    def revise(self, described: SetupData, planned: int) -> None:
        """Set-up and number of runs are other ones than it was begun with; never raises for the
        store's sake."""

    def release(self) -> None:
        """This call runs no more of it; a later one may resume it."""

    def finish(self) -> None:
        """All have run."""


@dataclass
class Nowhere:
    """Without a store, or with --no-keep."""

    lost: str
    name: str = ""
    kept: Mapping[int, Measurement] = field(default_factory=dict)

    def keep(self, number: int, finished: Finished) -> None:
        """See `Keeper`."""

    def revise(self, described: SetupData, planned: int) -> None:
        """See `Keeper`."""

    def release(self) -> None:
        """See `Keeper`."""

    def finish(self) -> None:
        """See `Keeper`."""
