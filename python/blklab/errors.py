"""Errors, each with one line for the user. The command prints the line, never a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

INTERRUPTED = 130
"""The exit code after Ctrl-C."""
INTERRUPTED_TEXT = "interrupted; nothing was written"


@dataclass(frozen=True)
class Kept:
    """The runs that were kept before an error ended the others."""

    numbers: tuple[str, ...]
    """Of their comparisons in the store."""
    study: bool = False
    """Whether they are parts of a study."""
    complete: bool = False
    """All have run; only the report is missing."""


class BlklabError(Exception):
    """Base class; the message is one line."""

    exit_code = 1
    detail: Sequence[str] = ()
    """Lines of another program, such as a compiler, to show above the message."""
    kept: Kept | None = None
    """What can be resumed."""


class InputError(BlklabError):
    """Bad input from the user: a name, a file, a value."""

    exit_code = 2


class RunError(BlklabError):
    """The input was correct, but the run failed."""


class StoreError(BlklabError):
    """The store cannot be used; the line says which one and why."""


class StoppedError(BlklabError):
    """The user interrupted a command; finished parts are stored."""

    exit_code = INTERRUPTED


def nearest(wrong: str, right: Iterable[str]) -> str:
    """``; did you mean 'x'?`` or ``; there is: a, b, c``, to follow an error about `wrong`."""
    names = sorted(right)
    close = difflib.get_close_matches(wrong, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; there is: {', '.join(names)}" if names else ""
