"""The line of a key in a TOML file, which the standard parser does not report.

The parser does report whether a text is TOML. The first lines of a file are TOML too, unless they
end within a value; so the key's statement ends with the shortest such beginning that contains the
key, and starts after the next shorter beginning. TOML is not parsed here a second time.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any, TypeAlias

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys and list indices, from the outside in."""

_STATEMENT_LINES_MAX = 200
"""For a longer list, the line may be that of an earlier entry."""


def line_of(text: str, path: KeyPath) -> int:
    """The line, from 1, of the statement that defines the value at `path`.

    If it is missing, the line of the nearest enclosing value, else 1.
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
