"""On which line of a TOML file does a key stand? The standard parser does not tell.

It does tell whether a text is TOML. The first lines of a file are TOML too, unless they end
within something; so the line is where the shortest such beginning ends that has the key,
counted from where the one before it ends. Nothing of TOML is parsed here a second time.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any, TypeAlias

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys and places in lists, from the outside in."""

_STATEMENT_LINES_MAX = 200
"""Of a longer list, the line may be that of something before it."""


def line_of(text: str, path: KeyPath) -> int:
    """The line, from 1, of the statement that brings what is at `path`.

    That of the nearest thing around it, if it is not there; 1 if there is nothing.
    """
    lines = text.split("\n")
    whole = _parsed(lines, len(lines))
    while path and not _has(whole, path):
        path = path[:-1]
    if not path:
        return 1
    without, having = 0, len(lines)
    while having - without > 1:
        middle = (without + having) // 2
        down = range(middle, max(without, middle - _STATEMENT_LINES_MAX), -1)
        up = range(middle + 1, min(having, middle + _STATEMENT_LINES_MAX))
        for end in (*down, *up):
            document = _parsed(lines, end)
            if document is not None:
                without, having = (without, end) if _has(document, path) else (end, having)
                break
        else:
            break
    return without + 1


def _parsed(lines: Sequence[str], end: int) -> dict[str, Any] | None:
    """The first `end` lines; None if they are not TOML."""
    try:
        return tomllib.loads("\n".join(lines[:end]) + "\n")
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def _has(document: Any, path: KeyPath) -> bool:
    for step in path:
        try:
            document = document[step]
        except (KeyError, IndexError, TypeError):
            return False
    return True
