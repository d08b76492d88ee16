"""udev's rules files in the order in which udev reads them, parsed into lines of matches and
assignments as udev does.

The files of all directories are sorted by name. Among files with one name only the one in the first
directory counts; an empty file, or a link to /dev/null, masks the name. A line that udev refuses
has no effect; it is kept with the reason, because it was meant to have one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.host import reading
from blklab.host.roots import Roots

MATCHES = ("==", "!=")

_WHERE_LOOKED_AT = (
    "ACTION DEVPATH KERNEL KERNELS NAME SYMLINK SUBSYSTEM SUBSYSTEMS DRIVER DRIVERS ATTR ATTRS "
    "SYSCTL ENV CONST TAG TAGS TEST PROGRAM RESULT IMPORT"
)
_WHERE_SET = "NAME SYMLINK OWNER GROUP MODE SECLABEL ATTR SYSCTL ENV TAG RUN LABEL GOTO OPTIONS"
LOOKED_AT = frozenset(_WHERE_LOOKED_AT.split())
"""Keys that may be compared."""
SET = frozenset(_WHERE_SET.split())
"""Keys that may be assigned."""
ALWAYS_LOOKED_AT = frozenset({"TEST", "PROGRAM", "IMPORT"})
"""Keys that decide whether a line applies even with ``=`` behind them."""

_TOKEN = re.compile(
    r"""[\s,]*
    (?P<key>[^\s={+\-!:",]+)
    (?:\{(?P<name>[^}]*)\})?
    \s*(?P<operator>==|!=|\+=|-=|:=|=)\s*
    (?P<prefix>[ei]{0,2})"(?P<value>(?:[^"\\]|\\.)*)"
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "s": " ",
            "\\": "\\", '"': '"', "'": "'"}  # fmt: skip
_ESCAPE = re.compile(
    r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL
)


@dataclass(frozen=True)
class Token:
    """``KEY{name}operator"value"``."""

    key: str
    name: str
    operator: str
    value: str
    ignore_case: bool = False

    @property
    def is_match(self) -> bool:
        """Whether the line applies only if this holds."""
        return self.operator in MATCHES or self.key in ALWAYS_LOOKED_AT


@dataclass(frozen=True)
class Line:
    """One rule, which may span several lines of the file."""

    file: Path
    number: int
    """The number of its first line, from 1."""
    tokens: tuple[Token, ...]
    error: str = ""
    """Why udev ignores it."""

    def value_of(self, key: str) -> str | None:
        """The value of ``LABEL`` or ``GOTO``, if the line has one."""
        return next((token.value for token in self.tokens if token.key == key), None)


def parse(file: Path, content: str | None = None) -> list[Line]:
    """The rules of a file, or of a file with this `content`; empty if it cannot be read."""
    lines = reading.lines(file) if content is None else content.split("\n")
    return _parsed(file, tuple(lines))


@functools.lru_cache(maxsize=1024)
def _parsed(file: Path, lines: tuple[str, ...]) -> list[Line]:
    """Once for all devices."""
    return [_line(file, number, text) for number, text in _logical(lines)]


def _logical(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """A line that ends in a backslash continues in the next; comments between them do not count."""
    begun, text = 0, ""
    for number, raw in enumerate(lines, 1):
        line = raw.lstrip(" \t\r")
        if line.startswith("#"):
            continue
        if not begun:
            begun = number
        if line.endswith("\\"):
            text += line[:-1]
            continue
        text += line
        if text.strip():
            yield begun, text
        begun, text = 0, ""


def _line(file: Path, number: int, text: str) -> Line:
    tokens, place = [], 0
    while rest := text[place:].strip(" \t\r,"):
        found = _TOKEN.match(text, place)
        if not found:
            return Line(file, number, (), f"expected KEY==\"value\", found '{rest[:40]}'")
        try:
            token = _token(found)
        except ValueError as error:
            return Line(file, number, (), str(error))
        allowed = LOOKED_AT if token.operator in MATCHES else SET | ALWAYS_LOOKED_AT
        if token.key not in allowed:
            return Line(file, number, (), f"no key {token.key} with {token.operator}")
        tokens.append(token)
        place = found.end()
    return Line(file, number, tuple(tokens))


def _token(found: re.Match[str]) -> Token:
    """ValueError with the reason, if the value is not valid."""
    prefix, value = found["prefix"], found["value"]
    if "e" in prefix:
        value = _ESCAPE.sub(_unescaped, value)
    else:
        value = value.replace('\\"', '"')
    return Token(found["key"], found["name"] or "", found["operator"], value, "i" in prefix)


def _unescaped(found: re.Match[str]) -> str:
    text = found[1]
    if text in _ESCAPES:
        return _ESCAPES[text]
    try:
        # One character alone would be the beginning of a number.
        if len(text) > 1:
            return chr(int(text.lstrip("xuU"), 8 if text.isdigit() else 16))
    except OverflowError:
        pass
    raise ValueError(f"'{found[0]}' is not an escape sequence")


SUFFIX = ".rules"


def directories(roots: Roots) -> list[Path]:
    """The directories that udev searches; the first wins."""
    tops = (roots.etc, roots.run, roots.usr / "local/lib", roots.usr / "lib", roots.lib)
    return [top / "udev/rules.d" for top in tops]


def ordered(roots: Roots) -> list[Path]:
    """The files in effect, in order."""
    found: dict[str, Path] = {}
    for directory in directories(roots):
        for name in reading.names(directory):
            if name.endswith(SUFFIX) and not name.startswith("."):
                found.setdefault(name, directory / name)
    return [found[name] for name in sorted(found, key=lambda name: name.encode(errors="replace"))]
