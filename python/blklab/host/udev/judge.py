"""What udev's rules set in one disk's queue, with file and line."""

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
from blklab.host.udev.node import Device
from blklab.host.udev.parse import Line, Token, ordered, parse

ACTIONS = ("add", "change")
"""The events at which rules set a disk: when it appears, and when its content changes or after
``udevadm trigger``."""

_IN_SHELL = re.compile(r"queue/(?P<attribute>[a-z_]+(?:/[a-z_]+)?)")
_QUEUE = "queue/"


@dataclass(frozen=True)
class Effect:
    """A line that changes a setting of the queue, or may change it."""

    line: Line
    attribute: str
    """Below ``queue``."""
    value: str | None
    """None if the written value is not known."""
    sure: bool
    why: str = ""
    """What it depends on, if it is not certain."""
    program: bool = False
    """Done by a program, after all rules."""


def effects(
    disk: Path,
    action: str,
    roots: Roots,
    contents: Mapping[Path, str] | None = None,
    *,
    imported: bool = False,
) -> list[Effect]:
    """The settings of the disk's queue that the rules change at that event, in order.

    `disk` is the disk's directory in sysfs. `contents` replaces some files or adds files that do
    not exist yet. udev runs programs after all rules, so they come last here too. `imported` if
    rules before these have imported the properties of the disk's database.
    """
    event = Event(node.device(disk, roots), action, imported=imported)
    new = contents or {}
    files = {file.name: file for file in ordered(roots)} | {file.name: file for file in new}
    found = [
        effect
        for _, file in sorted(files.items())
        for effect in _of_file(parse(file, new.get(file)), event, roots)
    ]
    return sorted(found, key=lambda effect: effect.program)


def of_lines(
    lines: Sequence[Line], device: Device, action: str, roots: Roots, *, imported: bool = False
) -> list[Effect]:
    """The settings of the device's queue that the lines of one file alone change at that event, in
    order; `imported` as of `effects`."""
    found = _of_file(lines, Event(device, action, imported=imported), roots)
    return sorted(found, key=lambda effect: effect.program)


def broken(roots: Roots) -> list[Line]:
    """Lines of any file that concern a queue and that udev cannot parse."""
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
    # The line up to which it is unknown whether lines are reached, and the reason.
    doubt_until, doubt = -1, ""
    while place < len(lines):
        line = lines[place]
        if place >= doubt_until:
            doubt = ""
        applies, depends_on = event.applies(line) if not line.error else (False, "")
        if applies is not False:
            sure = applies is True and not doubt
            why = doubt or (f"{depends_on} is not known" if depends_on else "")
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
                    doubt = (
                        f"whether line {line.number} jumps over it depends on {depends_on or why}"
                    )
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
    """The program's path as udev finds it."""
    if not program.is_absolute():
        return roots.usr / "lib/udev" / program
    # Two slashes at the start are a root of their own to Python, not to Linux.
    program = Path("/", *program.parts[1:])
    if program.is_relative_to("/usr"):
        return roots.usr / program.relative_to("/usr")
    if program.is_relative_to("/etc"):
        return roots.etc / program.relative_to("/etc")
    return program if roots == Roots() else roots.usr / program.relative_to("/")
