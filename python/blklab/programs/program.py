"""The description of a program: parameters, needs, its figure, how it runs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from blklab.errors import InputError, nearest
from blklab.programs.place import Place

Values: TypeAlias = Mapping[str, int]
"""The value of every parameter."""

_NUMBER = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True)
class Parameter:
    """A setting with a whole number."""

    name: str
    default: int
    min: int
    max: int
    unit: str
    """Empty if it is a count."""
    help: str


@dataclass(frozen=True)
class Outcome:
    """The result of a run."""

    value: float
    """In the program's unit."""
    took_ns: tuple[int, ...] = ()
    """The time of each operation, if the program reports each, or counts them in fine buckets."""
    raw: Mapping[str, str] = field(default_factory=dict)
    """Output of programs, by a file's name."""


@dataclass(frozen=True)
class Program:
    """See `blklab.programs`."""

    name: str
    summary: str
    unit: str
    """The unit of its figure: ``rows/s``."""
    higher_is_better: bool
    operation: str
    """The operation with known latencies: ``an insertion``; empty if there is none."""
    needs: Mapping[str, str]
    """Needed programs, with Debian's packages that contain them, or with another command to install
    them."""
    parameters: tuple[Parameter, ...]
    begin: Callable[[Values, Place], Callable[[], Outcome]]
    """Prepare the program's data; the returned function is measured."""
    room_bytes: Callable[[Values], int] = lambda _: 0
    """The maximum size of its directory."""
    duration_s: Callable[[Values], float | None] = lambda _: None
    """Its run time, if known in advance."""
    on_device: bool = False
    """It reads from the device itself and has no directory."""
    ends_by_cpu: bool = False
    """A part of it ends only if CPU work takes time."""
    spins: bool = False
    """A part of it waits in a loop, without sleeping and without reading the clock."""
    tcp: bool = False
    """Its programs talk TCP to each other, on 127.0.0.1."""
    nfsd_threads: Callable[[Values], int] | None = None
    """Its directory is on an NFS mount, whose server has so many threads; None: on the disk's file
    system itself."""
    other_user: bool = False
    """It starts programs as another user when run by root."""
    find: Callable[[str], str | None] = shutil.which
    """The path of a program of `needs`."""
    rigs: tuple[str, ...] = ("kernel", "live")
    """Where it can run."""

    def missing(self) -> str:
        """Missing needs, and the command that installs them; empty if it can run."""
        absent = [name for name in self.needs if self.find(name) is None]
        if not absent:
            return ""
        sources = list(dict.fromkeys(self.needs[name] for name in absent))
        # A package's name has no space, a command has one.
        commands = [source for source in sources if " " in source]
        packages = " ".join(source for source in sources if " " not in source)
        if packages:
            commands.insert(0, f"apt-get install {packages}")
        return f"needs {', '.join(absent)}: {'; '.join(commands)}"

    def check(self, given: Mapping[str, str]) -> dict[str, int]:
        """All parameters, with those `given`. InputError if one is wrong."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in given:
            if name not in known:
                raise InputError(f"{self.name}: no parameter '{name}'{nearest(name, known)}")
        return {
            name: self._value(parameter, given[name]) if name in given else parameter.default
            for name, parameter in known.items()
        }

    def _value(self, parameter: Parameter, text: str) -> int:
        low, high = parameter.min, parameter.max
        if not _NUMBER.fullmatch(text) or not low <= int(text) <= high:
            unit = f" {parameter.unit}" if parameter.unit else ""
            raise InputError(
                f"{self.name}: {parameter.name}: expected {low} to {high}{unit}, found '{text}'"
            )
        return int(text)
