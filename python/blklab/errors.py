"""What can go wrong, as one line for a person. The command prints it; nobody sees a traceback."""

from __future__ import annotations

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
    """Base of all; the message is one line."""

    exit_code = 1
    detail: Sequence[str] = ()
    """Lines of another program, a compiler's for one, to be shown above the message."""
    kept: Kept | None = None
    """What can be resumed."""


class InputError(BlklabError):
    """The user gave something that cannot be right: a name, a file, a value."""

    exit_code = 2


class RunError(BlklabError):
    """The input was right and the run failed nevertheless."""


class StoreError(BlklabError):
    """The store cannot be used; the line says which and why."""


class StoppedError(BlklabError):
    """The user has interrupted something of which a part is kept."""

    exit_code = INTERRUPTED


def nearest(wrong: str, right: Iterable[str]) -> str:
    """``; did you mean 'x'?`` or ``; there is: a, b, c``, to follow an error about `wrong`."""
    import difflib

    names = sorted(right)
    close = difflib.get_close_matches(wrong, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; there is: {', '.join(names)}" if names else ""
