r"""Stored inputs as text: one per line, so that changes appear as changed lines.

Printable ASCII is unchanged, except for the backslash; a backslash, a line's end and a tab are
``\\``, ``\n``, ``\t``, and any other byte is ``\xNN``. ``fuzz/oracles/src/packed.rs`` reads the
same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_NAMED = {"\\": 0x5C, "n": 0x0A, "t": 0x09}
_ESCAPED = {code: f"\\{letter}" for letter, code in _NAMED.items()}
PLAIN = range(0x20, 0x7F)
"""Printable ASCII."""
_PIECE = re.compile(r"\\(?:x([0-9a-f]{2})|([\\nt]))|([ -\[\]-~])")


def packed(inputs: Iterable[bytes]) -> str:
    """The file of these inputs, sorted, each once."""
    return "".join(f"{_line(one)}\n" for one in sorted(set(inputs)))


def read(text: str) -> list[bytes]:
    """The inputs of a file. ValueError if `packed` did not make it."""
    return [_bytes(line) for line in text.split("\n")[:-1]]


def _line(one: bytes) -> str:
    return "".join(
        _ESCAPED.get(code) or (chr(code) if code in PLAIN else f"\\x{code:02x}") for code in one
    )


def _bytes(line: str) -> bytes:
    found, place = bytearray(), 0
    while place < len(line):
        piece = _PIECE.match(line, place)
        if piece is None:
            raise ValueError(f"not an escape sequence: {line[place : place + 4]!r}")
        code, named, plain = piece.groups()
        found.append(int(code, 16) if code else _NAMED[named] if named else ord(plain))
        place = piece.end()
    return bytes(found)
