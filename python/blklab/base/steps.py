"""Progress of long work; the command draws it."""

from __future__ import annotations


class Steps:
    """Told what is being done and how far it is. This one is silent."""

    def begin(self, what: str, total: int | None = None, unit: str = "") -> None:
        """A new step; `total` is how many `unit` it will be, if that is known or guessed."""

    def reached(self, done: int) -> None:
        """So much of the step's total is done."""

    def note(self, text: str) -> None:
        """Something a person should know, one line."""
