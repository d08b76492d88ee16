"""Reports of a running call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from blklab.base.steps import Steps

if TYPE_CHECKING:
    from blklab.rigs import Rig
    from blklab.settings.change import Plan
    from blklab.settings.record import AppliedEntry
    from blklab.settings.unit import WatchUnit


class Listener:
    """Receives the events of a call. This one ignores all of them; override what you need."""

    def note(self, line: str) -> None:
        """One line for a person: an ignored option, a store that cannot be used, a long wait."""

    def kept(self, numbers: Sequence[str], *, study: bool) -> None:
        """The store keeps the runs to come, as comparisons of these numbers."""

    def runs(
        self, total: int | None, what: str
    ) -> AbstractContextManager[Callable[[object], None]]:
        """Surrounds all runs of a call; it yields a function that is called at the end of each run.
        `total` is None if the number of runs depends on their results. `what` describes the
        runs."""
        return nullcontext(lambda _: None)

    def run(self, rig: Rig) -> AbstractContextManager[None]:
        """Surrounds a single run; `Rig.position` gives its progress."""
        return nullcontext()

    def chosen(self, reason: str) -> None:
        """The settings that `apply` makes, and the measurement behind them; for a recommendation or
        a preset."""

    def planned(self, plan: Plan) -> None:
        """`apply` is about to set this."""

    def applied(self, notes: Sequence[str]) -> None:
        """It is set and verified; `notes` list unexpected findings."""

    def undone(self, entry: AppliedEntry) -> None:
        """`undo` has reverted this."""

    def unwatched(self, unit: WatchUnit, notes: Sequence[str]) -> None:
        """`undo` has removed the unit of `watch`; `notes` list unexpected findings."""

    def building(self) -> AbstractContextManager[Steps]:
        """Surrounds the build of a kernel."""
        return nullcontext(Steps())


SILENT = Listener()
