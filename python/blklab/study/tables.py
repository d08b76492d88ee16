"""Tables of a TOML file, checked by their keys. Errors name the file, line, key and value."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any

from blklab.base.catalogue import Entry
from blklab.errors import InputError, closest, nearest
from blklab.study.keys import Key, Shape
from blklab.study.model import wrong
from blklab.study.places import KeyPath

_CHARACTERS_MAX = 1 << 20
_SHOWN_MAX = 60
_DOTS_MAX = 200
_SYNTAX = re.compile(r"(.*?)\s*\(at (?:line (\d+), column \d+|end of document)\)", re.DOTALL)


def document(file: Entry, what: str) -> dict[str, Any]:
    """The whole file, which should be `what` (``a study``). InputError if it is not TOML."""
    if len(file.text) > _CHARACTERS_MAX:
        reason = f"not {what}: more than {_CHARACTERS_MAX} characters"
        raise InputError(reason, str(file.path))
    for place, row in enumerate(file.text.split("\n"), 1):
        # tomllib needs time quadratic in the parts of a key: more than an hour for 200 KB of dots.
        if max(part.count(".") for part in row.split("=")) > _DOTS_MAX:
            reason = f"more than {_DOTS_MAX} dots; no key has so many"
            raise InputError(reason, str(file.path), place)
    try:
        return tomllib.loads(file.text)
    except tomllib.TOMLDecodeError as error:
        found = _SYNTAX.fullmatch(str(error))
        text = " ".join((found[1] if found else str(error)).split())
        line = int(found[2]) if found and found[2] else file.text.count("\n") + 1
        raise InputError(text, str(file.path), line) from None
    except (RecursionError, ValueError):
        # Integers of thousands of digits, lists in lists in lists.
        raise InputError("numbers or lists are too long or too deep", str(file.path)) from None


def checked(
    file: Entry, table: dict[str, Any], path: KeyPath, rows: Sequence[Key]
) -> dict[str, Any]:
    """The table at `path`. InputError for an unknown key, a missing one, or a wrong value."""
    known = {key.name: key for key in rows}
    for name in table:
        if name not in known:
            raise wrong(
                file,
                (*path, name),
                f"there is no such key{nearest(name, known)}",
                found=name,
                nearest=closest(name, known),
            )
    for key in rows:
        if key.name in table:
            _fits(file, table[key.name], (*path, key.name), key.shape)
        elif key.default is None:
            where = f"[[{'.'.join(s for s in path if isinstance(s, str))}]] " if path else ""
            raise wrong(
                file,
                path,
                f"{where}the key '{key.name}' is missing ({key.help}); "
                f"expected {key.shape.expected}",
                expected=key.shape.expected,
            )
    return table


def _fits(file: Entry, value: Any, path: KeyPath, shape: Shape) -> None:
    if not shape.fits(value):
        found = shown_value(value)
        raise wrong(
            file,
            path,
            f"found {found}, expected {shape.expected}",
            found=found,
            expected=shape.expected,
        )
    if shape.of_each is not None:
        for name, item in value.items():
            _fits(file, item, (*path, name), shape.of_each)


def shown_value(value: Any) -> str:
    """The value in TOML, shortened."""
    match value:
        case bool():
            text = str(value).lower()
        case int() if abs(value) >= 1 << 64:
            text = "a number beyond 64 bits"
        case str():
            text = f'"{value}"'
        case dict():
            text = "a table"
        case list() if value and all(isinstance(item, dict) for item in value):
            text = "tables"
        case _:
            text = str(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
