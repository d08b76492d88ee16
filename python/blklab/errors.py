"""Errors, each with one line for the user. The command prints the line, never a traceback."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

INTERRUPTED = 130
"""The exit code after Ctrl-C."""
INTERRUPTED_TEXT = "interrupted; nothing was written"


class BlklabError(Exception):
    """Base class; the message is one line."""

    exit_code = 1
    detail: Sequence[str] = ()
    """Lines of another program, such as a compiler, to show above the message."""


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
    import difflib

    names = sorted(right)
    close = difflib.get_close_matches(wrong, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; there is: {', '.join(names)}" if names else ""
