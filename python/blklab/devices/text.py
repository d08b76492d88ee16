"""Names that devices and users gave, made fit for a terminal, a message or a table.

A disk's model, a mount point or a file's name may hold escape codes that move the cursor, line
ends that forge a second line, and marks that reverse the direction of writing.
"""

from __future__ import annotations


def shown(text: str) -> str:
    r"""`text` with everything that is not to be seen as itself written as ``\x1b``, ``\n``,
    ``\u202e``; one line, whatever was given."""
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )
