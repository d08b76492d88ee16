"""Errors, each with one line for the user. The command prints the line, never a traceback."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

INTERRUPTED = 130
"""The exit code after Ctrl-C."""
INTERRUPTED_TEXT = "interrupted; nothing was written"


@dataclass(frozen=True)
class Kept:
    """The runs that were stored before an error ended the call."""

    numbers: tuple[str, ...]
    """The numbers of their comparisons in the store."""
    study: bool = False
    """Whether they are parts of a study."""
    complete: bool = False
    """All runs are complete; only the report is missing."""


class BlklabError(Exception):
    """Base class; the message is one line."""

    exit_code = 1
    detail: Sequence[str] = ()
    """Lines of another program, such as a compiler, to show above the message."""
    kept: Kept | None = None
    """The stored runs that can be resumed."""


class InputError(BlklabError):
    """Bad input from the user: a name, a file, a value.

    The fields form the text, ``file:line: reason``; unknown ones are None. The core raises it too.
    """

    exit_code = 2

    def __init__(
        self,
        reason: str,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        option: str | None = None,
        found: str | None = None,
        expected: str | None = None,
        nearest: str | None = None,
    ) -> None:
        # Only these: copying an exception creates it from `args`, and then sets the fields.
        super().__init__(reason)
        self.reason = reason
        """The error, one line."""
        self.file = file
        """The file's path or name, as given."""
        self.line = line
        """Its line, from 1."""
        self.column = column
        """The column in it, from 1, in bytes."""
        self.option = option
        """The option, key or tunable, as written."""
        self.found = found
        """The text found there."""
        self.expected = expected
        """The text expected there."""
        self.nearest = nearest
        """The valid name nearest to the one found."""

    def __str__(self) -> str:
        place = self.file or ""
        if place and self.line is not None:
            place += f":{self.line}"
        return f"{place}: {self.reason}" if place else self.reason

    def within(self, place: str) -> InputError:
        """The same error for a larger thing; its name says more than file and line."""
        told = copy.copy(self)
        told.file, told.line, told.column = place, None, None
        return told


class NoRoomError(InputError):
    """The files of a job do not fit on the disk."""

    def __init__(
        self,
        reason: str,
        file: str | None = None,
        line: int | None = None,
        job: str = "",
        need_bytes: int = 0,
        room_bytes: int = 0,
    ) -> None:
        found, expected = str(need_bytes), f"at most {room_bytes}"
        super().__init__(reason, file, line, option="size", found=found, expected=expected)
        self.job = job
        """The job's name."""
        self.need_bytes = need_bytes
        """The bytes that its files and those of the jobs before it need."""
        self.room_bytes = room_bytes
        """The bytes that the disk has."""


class RunError(BlklabError):
    """The input was correct, but the run failed."""


class MachineError(RunError):
    """The machine cannot do the run: a program is missing, or no space is left. Another machine
    may."""


class StoreError(BlklabError):
    """The store cannot be used; the message names it and gives the reason."""


class StoppedError(BlklabError):
    """The user interrupted a command; finished parts are stored."""

    exit_code = INTERRUPTED


def closest(wrong: str, right: Iterable[str]) -> str | None:
    """The name in `right` that is nearest to `wrong`."""
    return next(iter(difflib.get_close_matches(wrong, sorted(right), n=1, cutoff=0.6)), None)


def nearest(wrong: str, right: Iterable[str]) -> str:
    """``; did you mean 'x'?`` or ``; there is: a, b, c``, to follow an error about `wrong`."""
    names = sorted(right)
    if close := closest(wrong, names):
        return f"; did you mean '{close}'?"
    return f"; there is: {', '.join(names)}" if names else ""


def unknown(reason: str, wrong: str, right: Iterable[str]) -> InputError:
    """`reason`, followed by suggestions from `right` for the name `wrong`."""
    names = [*right]
    return InputError(
        f"{reason}{nearest(wrong, names)}", found=wrong, nearest=closest(wrong, names)
    )
