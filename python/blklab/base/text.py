"""Names from devices and users, made safe for a terminal, a message or a table.

A disk's model, a mount point or a file's name may hold escape codes that move the cursor, line
ends that forge a second line, and marks that reverse the direction of writing.
"""

from __future__ import annotations

from functools import lru_cache

# What stands for the bytes 80 to ff in a name that is not UTF-8 (PEP 383).
_BYTES = range(0xDC80, 0xDD00)


def shown(text: str) -> str:
    r"""`text` with everything that is not to be seen as itself written as ``\x1b``, ``\n``,
    ``\u202e``, and bytes that are not UTF-8 as ``\xff``; one line, whatever was given."""
    return text if text.isprintable() else "".join(map(_shown, text))


def harmless(text: str) -> str:
    """The same of a text that may have several lines and tabulators: these are kept."""
    if text.isprintable():
        return text
    return "".join(sign if sign in "\n\t" else _shown(sign) for sign in text)


def utf8(text: str) -> str:
    r"""`text` with bytes that are not UTF-8 as ``\xff``; Python has them as lone surrogates, which
    nothing else takes."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


@lru_cache(maxsize=1024)
def _shown(sign: str) -> str:
    if sign.isprintable():
        return sign
    if ord(sign) in _BYTES:
        return f"\\x{ord(sign) - 0xDC00:02x}"
    return sign.encode("unicode_escape").decode()
