"""One event of one device, rule by rule: does a line apply, and which properties are known there?

Answers are yes, no, or None if only a running udev knows: the line runs a program, or tests a
property that such a program would have set. Properties become known in the order of the rules:
before the first line that imports them, the properties of udev's database do not exist, so a rule
that tests ``ENV{ID_SERIAL}`` too early never applies.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from blklab.host import reading
from blklab.host.udev.node import Device, Node
from blklab.host.udev.parse import Line, Token
from blklab.host.udev.patterns import matches

_SCHEDULER = "queue/scheduler"
_OF_QUEUE = "queue/"
_PARENT_KEYS = frozenset({"KERNELS", "SUBSYSTEMS", "DRIVERS", "ATTRS", "TAGS"})
_SUBSTITUTION = re.compile(
    r"\$(?P<long>kernel|number|devpath|driver|attr|sysfs|env|major|minor|sys|root|devnode|name|"
    r"links|id|result|parent|tempnode)(?:\{(?P<long_name>[^}]*)\})?"
    r"|%(?P<short>[knpsEMmSrNbcPD%])(?:\{(?P<short_name>[^}]*)\})?"
    r"|(?P<dollar>\$\$)"
)
_LONG = {
    "k": "kernel",
    "n": "number",
    "p": "devpath",
    "s": "attr",
    "sysfs": "attr",
    "E": "env",
    "M": "major",
    "m": "minor",
    "S": "sys",
    "r": "root",
    "N": "devnode",
}
_SUBSYSTEM_NAMES = ("subsystem", "bus", "class")
_MACHINES = {"x86_64": "x86-64", "aarch64": "arm64", "i686": "x86"}


@dataclass
class Event:
    """A device, an action, and the properties known from the rules so far."""

    device: Device
    action: str
    properties: dict[str, str] = field(default_factory=dict)
    """Certain properties: those from the kernel, and those set by lines that apply."""
    uncertain: set[str] = field(default_factory=set)
    """Set by a line that only may apply."""
    imported: bool = False
    """Whether a line so far may have imported unknown properties."""
    written: set[str] = field(default_factory=set)
    """Attributes that rules have set: sysfs no longer shows the values from before."""

    def __post_init__(self) -> None:
        self.properties = self.device.properties | {"ACTION": self.action} | self.properties

    def property(self, name: str) -> str | None:
        """Its value at this line; empty if it has none, None if that is not known."""
        if name in self.uncertain:
            return None
        if name in self.properties:
            return self.properties[name]
        if not self.imported:
            return ""
        stored = self.device.database
        # Names with a dot are never stored.
        if stored is None or name.startswith("."):
            return None
        return stored.get(name, "")

    def applies(self, line: Line) -> tuple[bool | None, str]:
        """Whether all matches of a line hold; if not known, the key that decides it."""
        doubt = ""
        for token in line.tokens:
            if not token.is_match or token.key in _PARENT_KEYS:
                continue
            holds = self._holds(token)
            if holds is False:
                return False, ""
            if holds is None:
                doubt = doubt or _key(token)
        of_parents = [token for token in line.tokens if token.key in _PARENT_KEYS]
        if of_parents:
            answers = [self._all_of(node, of_parents) for node in self.device.parents]
            if True not in answers:
                if None not in answers:
                    return False, ""
                doubt = doubt or _key(of_parents[0])
        return (None, doubt) if doubt else (True, "")

    def follow(self, line: Line, applies: bool) -> None:
        """Add the properties of a line that applies or may apply."""
        for token in line.tokens:
            if token.key == "IMPORT":
                self.imported = True
            elif token.key == "ENV" and not token.is_match:
                self._set(token, applies)
            elif token.key == "ATTR" and not token.is_match:
                self.written.add(self.substituted(token.name) or token.name)

    def substituted(self, text: str) -> str | None:
        """`text` with ``%k``, ``$attr{...}`` and so on filled in; None if one is not known."""
        unknown = []

        def fill(found: re.Match[str]) -> str:
            if found["dollar"] or found["short"] == "%":
                return found[0][0]
            key = found["long"] or found["short"]
            name = found["long_name"] if found["long"] else found["short_name"]
            value = self._substitute(_LONG.get(key, key), name or "")
            if value is None:
                unknown.append(key)
            return value or ""

        made = _SUBSTITUTION.sub(fill, text)
        return None if unknown else made

    def _substitute(self, key: str, name: str) -> str | None:
        node, known = self.device.node, self.device.properties
        makers: dict[str, Callable[[], str | None]] = {
            "kernel": lambda: node.name,
            "number": lambda: re.sub(r"^.*?([0-9]*)$", r"\1", node.name),
            "devpath": lambda: node.devpath,
            "attr": lambda: self._attribute_of_any(name),
            "env": lambda: self.property(name),
            "major": lambda: known.get("MAJOR", ""),
            "minor": lambda: known.get("MINOR", ""),
            "sys": lambda: "/sys",
            "root": lambda: "/dev",
            "devnode": lambda: known.get("DEVNAME", ""),
        }
        return makers[key]() if key in makers else None

    def _attribute_of_any(self, name: str) -> str:
        values = (node.attribute(name) for node in self.device.parents)
        return next((value for value in values if value is not None), "").strip()

    def _set(self, token: Token, applies: bool) -> None:
        value = self.substituted(token.value)
        if token.operator == "+=" and value is not None:
            before = self.property(token.name)
            value = None if before is None else f"{before} {value}".strip()
        if not applies or value is None:
            self.uncertain.add(token.name)
        else:
            self.properties[token.name] = value
            self.uncertain.discard(token.name)

    def _holds(self, token: Token) -> bool | None:
        """A match on the device itself, not on its parents."""
        node = self.device.node
        match token.key:
            case "ACTION":
                return _compared(token, self.action)
            case "DEVPATH":
                return _compared(token, node.devpath)
            case "KERNEL":
                return _compared(token, node.name)
            case "SUBSYSTEM":
                return _compared_subsystem(token, node.subsystem)
            case "DRIVER":
                return _compared(token, node.driver)
            case "ENV":
                value = self.property(token.name)
                return None if value is None else _compared(token, value)
            case "ATTR":
                return self._holds_attribute(token)
            case "TEST":
                return self._holds_test(token)
            case "CONST" if token.name == "arch":
                machine = os.uname().machine
                return _compared(token, _MACHINES.get(machine, machine))
            case "SYSCTL":
                path = token.name.replace(".", "/")
                return _compared(token, reading.value(self.device.roots.proc / "sys" / path))
            case "IMPORT" if token.name == "cmdline":
                line = reading.value(self.device.roots.proc / "cmdline")
                named = {word.partition("=")[0] for word in line.split()}
                return (token.value in named) != (token.operator == "!=")
            case _:
                return None

    def _holds_attribute(self, token: Token) -> bool | None:
        name = self.substituted(token.name)
        if name is None:
            return None
        value = self.device.node.attribute(name)
        if value is None:
            # A line that tests a missing attribute never applies in udev, not even with !=.
            return False
        if name == _SCHEDULER:
            return _agreed(_compared(token, text) for text in _each_active(value))
        if name in self.written or name.startswith(f"{_OF_QUEUE}iosched/"):
            return None
        return _compared(token, value)

    def _holds_test(self, token: Token) -> bool | None:
        text = self.substituted(token.value)
        if text is None:
            return None
        path = Path(text)
        if path.is_absolute() and path.is_relative_to("/sys"):
            path = self.device.roots.sys / path.relative_to("/sys")
        elif not path.is_absolute():
            path = self.device.node.path / path
        if "queue/iosched" in text:
            return None
        # Here udev allows only a whole part of the path as a pattern.
        first, star, last = str(path).partition("/*/")
        paths = [Path(first, name, last) for name in reading.names(Path(first))] if star else [path]
        there = any(map(reading.exists, paths))
        return there != (token.operator == "!=")

    def _all_of(self, node: Node, tokens: Iterable[Token]) -> bool | None:
        """All matches on parents must hold for one and the same parent."""
        answers: list[bool | None] = []
        for token in tokens:
            match token.key:
                case "KERNELS":
                    answers.append(_compared(token, node.name))
                case "SUBSYSTEMS":
                    answers.append(_compared_subsystem(token, node.subsystem))
                case "DRIVERS":
                    answers.append(_compared(token, node.driver))
                case "ATTRS":
                    value = node.attribute(token.name)
                    answers.append(False if value is None else _compared(token, value))
                case _:
                    answers.append(None)
        return False if False in answers else None if None in answers else True


def _compared(token: Token, value: str) -> bool:
    if token.value and not token.value[-1].isspace():
        value = value.rstrip()
    return matches(token.value, value, ignore_case=token.ignore_case) != (token.operator == "!=")


def _compared_subsystem(token: Token, value: str) -> bool:
    if token.value in _SUBSYSTEM_NAMES:
        return (value in _SUBSYSTEM_NAMES) != (token.operator == "!=")
    return _compared(token, value)


def _each_active(text: str) -> list[str]:
    """The text of ``queue/scheduler`` with each of its schedulers active: it is not known which one
    was active when udev evaluated the rule."""
    every = [word.strip("[]") for word in text.split()]
    return [" ".join(f"[{one}]" if one == active else one for one in every) for active in every]


def _agreed(answers: Iterable[bool]) -> bool | None:
    found = set(answers)
    return found.pop() if len(found) == 1 else None


def _key(token: Token) -> str:
    return f"{token.key}{{{token.name}}}" if token.name else token.key
