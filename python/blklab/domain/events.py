"""Events of a running comparison: the end of each run, and its receiver.

The layer that runs experiments calls a `Keeper` and does not depend on the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from blklab.domain.comparison import Planned
from blklab.domain.conditions import DeviceState
from blklab.domain.measurement import Measurement
from blklab.domain.setup import SetupData


@dataclass(frozen=True)
class Finished:
    """A run that has ended: its measurement, and the documents stored with it."""

    planned: Planned
    measurement: Measurement
    begun_at: datetime
    """UTC, as `ended_at`."""
    ended_at: datetime
    raw: Mapping[str, bytes] = field(default_factory=dict)
    """See :class:`blklab.domain.result.Result`, as the next two."""
    device_before: DeviceState | None = None
    device_after: DeviceState | None = None
    key: str = ""
    """The hash of what it is; empty if it may differ each time."""


class Keeper(Protocol):
    """Stores the runs of one comparison."""

    @property
    def name(self) -> str:
        """Its number, for the user; empty if it is not stored."""

    @property
    def kept(self) -> Mapping[int, Measurement]:
        """Runs stored before, by number in the plan."""

    @property
    def lost(self) -> str:
        """The reason if some runs could not be stored; empty if all were."""

    def keep(self, runs: Mapping[int, Finished]) -> None:
        """Store some runs, by number in the plan; a failing store raises no error. RunError if a
        run of the same key has other figures."""

    def take_over(self, keys: Mapping[int, str]) -> int:
        """Store runs of other comparisons that have these keys, by number in the plan; `kept` has
        them then. Returns their number; a failing store raises no error."""

    def revise(self, described: SetupData, planned: int) -> None:
        """Replace the set-up and the number of runs; a failing store raises no error."""

    def release(self) -> None:
        """This call stops here; a later one may resume the comparison."""

    def finish(self) -> None:
        """All have run."""


@dataclass
class Nowhere:
    """The keeper without a store, or with --no-keep."""

    lost: str
    name: str = ""
    kept: Mapping[int, Measurement] = field(default_factory=dict)

    def keep(self, runs: Mapping[int, Finished]) -> None:
        """See `Keeper`."""

    def take_over(self, keys: Mapping[int, str]) -> int:
        """See `Keeper`."""
        return 0

    def revise(self, described: SetupData, planned: int) -> None:
        """See `Keeper`."""

    def release(self) -> None:
        """See `Keeper`."""

    def finish(self) -> None:
        """See `Keeper`."""
