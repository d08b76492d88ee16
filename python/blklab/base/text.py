"""Names from devices and users, made safe for a terminal, a message or a table.

A disk's model, a mount point or a file's name may hold escape codes that move the cursor, line
ends that forge a second line, and marks that reverse the direction of writing.
"""

from __future__ import annotations

from functools import lru_cache

# Surrogates for the bytes 80 to ff in a name that is not UTF-8 (PEP 383).
_BYTES = range(0xDC80, 0xDD00)


def shown(text: str) -> str:
    r"""`text` on one line, with invisible and control characters written as ``\x1b``, ``\n``,
    ``\u202e``, and bytes that are not UTF-8 as ``\xff``."""
    return text if text.isprintable() else "".join(map(_shown, text))


def harmless(text: str) -> str:
    """The same for a text of several lines; line ends and tabs are kept."""
    if text.isprintable():
        return text
    return "".join(sign if sign in "\n\t" else _shown(sign) for sign in text)


def utf8(text: str) -> str:
    r"""`text` with bytes that are not UTF-8 as ``\xff``; Python keeps them as lone surrogates,
    which other programs refuse."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


@lru_cache(maxsize=1024)
def _shown(sign: str) -> str:
    if sign.isprintable():
        return sign
    if ord(sign) in _BYTES:
        return f"\\x{ord(sign) - 0xDC00:02x}"
    return sign.encode("unicode_escape").decode()
