"""udev's patterns: a plain word, or the shell's ``*``, ``?`` and ``[...]``, ``|`` between them.

Follows fnmatch(3) without flags. A backslash escapes the next character only if the pattern
contains one of ``*?[``; otherwise it is a plain backslash.
"""

from __future__ import annotations

import functools
import re

_SPECIAL = re.compile(r"[*?\[]")
_CLASSES = {
    "[:alnum:]": "a-zA-Z0-9",
    "[:alpha:]": "a-zA-Z",
    "[:digit:]": "0-9",
    "[:lower:]": "a-z",
    "[:space:]": " \t\n\r\f\v",
    "[:upper:]": "A-Z",
    "[:xdigit:]": "0-9a-fA-F",
}
_SET = re.compile(r"\[([!^]?)(\]?[^\]]*)\]")


def matches(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    """Whether `pattern` matches the whole of `text`."""
    flags = re.IGNORECASE if ignore_case else 0
    return re.fullmatch(_expression(pattern), text, re.DOTALL | flags) is not None


@functools.cache
def _expression(pattern: str) -> str:
    glob = _SPECIAL.search(pattern) is not None
    return "|".join(_glob(one) if glob else re.escape(one) for one in pattern.split("|"))


def _glob(pattern: str) -> str:
    for name, signs in _CLASSES.items():
        pattern = pattern.replace(name, signs)
    made, place = "", 0
    while place < len(pattern):
        sign = pattern[place]
        found = _SET.match(pattern, place) if sign == "[" else None
        if found:
            signs = re.sub(r"([\\\[&~|^])", r"\\\1", found[2]).replace("]", r"\]")
            made += f"[{'^' if found[1] else ''}{signs}]"
            place = found.end()
            continue
        if sign == "\\" and place + 1 < len(pattern):
            place += 1
            made += re.escape(pattern[place])
        elif sign != "*" or not made.endswith(".*"):
            made += {"*": ".*", "?": "."}.get(sign) or re.escape(sign)
        place += 1
    # A bad set, such as [z-a], matches nothing, and must not end in an error.
    try:
        re.compile(made)
    except re.error:
        return r"(?!)"
    return made
