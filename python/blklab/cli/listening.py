"""Notes and progress of a running call, on stderr."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypedDict

from blklab.api.listener import Listener
from blklab.cli import console, progress
from blklab.errors import BlklabError

if TYPE_CHECKING:
    from blklab import Rig, Steps


class Running(TypedDict):
    """Arguments of the functions that run experiments."""

    store: str | None
    max_parallel: int
    on: str
    listener: Listener


class Terminal(Listener):
    """Prints notes and draws the progress."""

    def note(self, line: str) -> None:
        """See `Listener`."""
        console.print_note(line)

    def kept(self, numbers: Sequence[str], *, study: bool) -> None:
        """See `Listener`."""
        if study:
            console.print_note(f"stored as {', '.join(numbers)}; to see them: blklab results")
        else:
            [number] = numbers
            console.print_note(f"stored as {number}; to see it: blklab results show {number}")

    def runs(self, total: int | None, what: str) -> AbstractContextManager[Callable[[Any], None]]:
        """See `Listener`."""
        return progress.progress(total, what)

    def run(self, rig: Rig) -> AbstractContextManager[None]:
        """See `Listener`."""
        return progress.watching(rig)

    def building(self) -> AbstractContextManager[Steps]:
        """See `Listener`."""
        return progress.building()


def error_text(error: BlklabError) -> str:
    """Its line, with the command that continues what is kept."""
    kept = error.kept
    if kept is None:
        return str(error)
    command = f"blklab {'run' if kept.study else 'compare'} --resume {kept.numbers[0]}"
    if kept.complete:
        return f"{error}; finished runs are stored: {command} --out DIRECTORY"
    return f"{error}; finished runs are stored; to continue: {command}"
