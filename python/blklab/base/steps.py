"""Progress of long work; the command draws it."""

from __future__ import annotations


class Steps:
    """Receives the current step and its progress. This class prints nothing."""

    def begin(self, what: str, total: int | None = None, unit: str = "") -> None:
        """A new step; `total` is its known or estimated size in `unit`."""

    def reached(self, done: int) -> None:
        """The part of the step's total that is done."""

    def note(self, text: str) -> None:
        """A note for the user, one line."""
