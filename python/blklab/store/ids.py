"""Numbers of comparisons, as a person writes them."""

from __future__ import annotations

from blklab.errors import InputError

_MOST = 2**31 - 1


def number(text: str) -> int:
    """``12``. InputError if it is no such number."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_MOST))):
        raise InputError(f"'{text}': not the number of a comparison; see: blklab results")
    found = int(text)
    if not 0 < found <= _MOST:
        raise InputError(f"'{text}': no comparison has that number; see: blklab results")
    return found


def numbers(text: str) -> list[int]:
    """``12`` or ``12,15``. InputError."""
    return list(dict.fromkeys(number(part) for part in text.split(",")))
