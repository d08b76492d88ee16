"""What udev's rules do to one disk's queue, and which line does it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.host import reading
from blklab.host.reading import ECHOED
from blklab.host.roots import Roots
from blklab.host.udev import node
from blklab.host.udev.event import Event
from blklab.host.udev.parse import Line, Token, ordered, parse

ACTIONS = ("add", "change")
"""The events that set a disk: when it appears, and when its content changes or somebody says
``udevadm trigger``."""

_IN_SHELL = re.compile(r"queue/(?P<attribute>[a-z_]+(?:/[a-z_]+)?)")
_QUEUE = "queue/"


@dataclass(frozen=True)
class Effect:
    """A line that sets something of the queue, or may do so."""

    line: Line
    attribute: str
    """Below ``queue``."""
    value: str | None
    """None if what it writes is not known."""
    sure: bool
    why: str = ""
    """If it is not sure: what it hangs on."""
    program: bool = False
    """Done by a program, after all rules."""


def effects(
    disk: Path, action: str, roots: Roots, contents: Mapping[Path, str] | None = None
) -> list[Effect]:
    """What the rules set of the disk's queue at that event, in the order in which it happens.

    `disk` is the disk's directory in sysfs. Some files may have other `contents`, or not be there
    yet.
    Programs are run by udev after all rules, and come last here too.
    """
    event = Event(node.device(disk, roots), action)
    new = contents or {}
    files = {file.name: file for file in ordered(roots)} | {file.name: file for file in new}
    found = [
        effect
        for _, file in sorted(files.items())
        for effect in _of_file(parse(file, new.get(file)), event, roots)
    ]
    return sorted(found, key=lambda effect: effect.program)


def broken(roots: Roots) -> list[Line]:
    """Lines of any file that are about a queue and that udev cannot read."""
    return [
        line
        for file in ordered(roots)
        if _QUEUE in "\n".join(reading.lines(file))
        for line in parse(file)
        if line.error
    ]


def _of_file(lines: Sequence[Line], event: Event, roots: Roots) -> Iterator[Effect]:
    labels = {line.value_of("LABEL"): place for place, line in reversed(list(enumerate(lines)))}
    place = 0
    # Up to which line it is not known whether the lines are reached, and why.
    doubt_until, doubt = -1, ""
    while place < len(lines):
        line = lines[place]
        if place >= doubt_until:
            doubt = ""
        applies, hangs_on = event.applies(line) if not line.error else (False, "")
        if applies is not False:
            sure = applies is True and not doubt
            why = doubt or (f"{hangs_on} is not known" if hangs_on else "")
            yield from _of_line(line, event, sure, why, roots)
            event.follow(line, sure)
            target = labels.get(line.value_of("GOTO") or "", -1)
            # Only forwards: a jump back would never end.
            if target > place and line.value_of("GOTO"):
                if sure:
                    place = target
                    continue
                if target > doubt_until:
                    doubt_until = target
                    doubt = f"whether line {line.number} jumps over it hangs on {hangs_on or why}"
        place += 1


def _of_line(line: Line, event: Event, sure: bool, why: str, roots: Roots) -> Iterator[Effect]:
    for token in line.tokens:
        if token.is_match:
            continue
        if token.key == "ATTR":
            name = event.substituted(token.name) or token.name
            if name.startswith(_QUEUE):
                value = event.substituted(token.value)
                unknown = "" if value is not None else "its value is not known"
                yield Effect(
                    line, name.removeprefix(_QUEUE), value, sure and not unknown, why or unknown
                )
        elif token.key == "RUN" and token.name != "builtin":
            yield from _of_program(line, token, event, sure, why, roots)


def _of_program(
    line: Line, token: Token, event: Event, sure: bool, why: str, roots: Roots
) -> Iterator[Effect]:
    """A shell's command line, or a script that names the queue's files."""
    text = event.substituted(token.value) or token.value
    found = _IN_SHELL.search(text)
    if found:
        value = ECHOED.search(text)
        said = value["value"] if value else None
        plain = sure and text.count(_QUEUE) == 1 and said is not None
        unknown = "" if plain or why else "what its command writes is not known"
        yield Effect(line, found["attribute"], said, plain, why or unknown, program=True)
        return
    program = Path(text.split()[0]) if text.split() else Path()
    inside = "\n".join(reading.script(_program(program, roots))) if program.name else ""
    named = _IN_SHELL.search(inside)
    if named:
        yield Effect(line, named["attribute"], None, False, f"{program} is a program", program=True)


def _program(program: Path, roots: Roots) -> Path:
    """Where udev finds it."""
    if not program.is_absolute():
        return roots.usr / "lib/udev" / program
    # Two slashes at the start are a root of their own to Python, not to Linux.
    program = Path("/", *program.parts[1:])
    if program.is_relative_to("/usr"):
        return roots.usr / program.relative_to("/usr")
    if program.is_relative_to("/etc"):
        return roots.etc / program.relative_to("/etc")
    return program if roots == Roots() else roots.usr / program.relative_to("/")
