"""Real programs as workloads: one file each with a `PROGRAM`, and one line in `NAMES`.

On the command line ``sqlite`` or ``sqlite:insertions=100,copies=2``; any other program is
``command:WORDS`` (`blklab.programs.command`). An experiment holds a text like a job file, so that
it is stored, shown and compared like one: ``program=NAME``, then each parameter with its value, or
the words, and the file system if there is one. The kind of its `Entry` tells it from a job file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

from blklab import _core
from blklab.base.catalogue import Entry
from blklab.base.text import shown, utf8
from blklab.errors import InputError, nearest
from blklab.programs import command, file_system
from blklab.programs.file_system import FileSystem
from blklab.programs.program import Program

NAMES = (
    "dbench",
    "hdparm",
    "kernel-tree",
    "nfs-files",
    "pgbench",
    "record-write",
    "sqlite",
    "startup",
    "sysbench-fileio",
    "sysbench-oltp",
    "tpcc",
)
"""In the order of lists; the module has ``_`` for ``-``."""

_HEAD = "program="
_WORDS, _FILE_SYSTEM = "words", "fs"
_ON = " on "
"""In a workload's name, before its file system."""


@dataclass(frozen=True)
class Chosen:
    """A program with its parameters."""

    program: Program
    values: Mapping[str, int]
    """The value of every parameter."""
    file_system: FileSystem | None = None
    """Its file system on a modelled disk; None is the rig's."""
    words: tuple[str, ...] = ()
    """The words of `command`."""


def known(name: str) -> Program:
    """The program of that name. InputError if it does not exist, or is a command, which has no
    name of its own."""
    if name not in NAMES:
        raise InputError(f"no program '{name}'{nearest(name, (*NAMES, command.NAME))}")
    found: Program = import_module(f"{__name__}.{name.replace('-', '_')}").PROGRAM
    return found


def entry(spec: str) -> Entry:
    """``name:parameter=value,...`` as a workload. InputError if it is wrong."""
    name, colon, changes = spec.partition(":")
    if name == command.NAME:
        return _of_command(spec, command.words(changes))
    program = known(name)
    given = dict(_core.pairs(utf8(changes), name, "parameter=value")) if colon else {}
    values = program.check(given)
    lines = [f"# {program.summary}", f"{_HEAD}{name}"]
    lines += [f"{key}={value}" for key, value in values.items()]
    return Entry(spec, Path(spec), "\n".join(lines) + "\n", kind="program")


def _of_command(spec: str, words: list[str]) -> Entry:
    program = command.program(words)
    line = f"{_WORDS}={command.to_line(words)}"
    lines = [f"# {program.summary}", f"{_HEAD}{command.NAME}", line]
    return Entry(shown(spec), Path(command.NAME), "\n".join(lines) + "\n", kind="program")


def is_command(spec: str) -> bool:
    """Whether a workload's text is a command, which may contain anything behind its name."""
    return spec.startswith(f"{command.NAME}:")


def on_file_system(workload: Entry, text: str) -> Entry:
    """The same program on the file system that `text` names: see `blklab.programs.file_system`.
    InputError if that is wrong."""
    chosen_one = file_system.parse(text)
    line = f"{_FILE_SYSTEM}={chosen_one.text}\n"
    name = f"{workload.name}{_ON}{chosen_one.text}"
    return replace(workload, name=name, text=workload.text + line)


def is_program(workload: Entry) -> bool:
    """Whether it is a program, not a fio job file."""
    return workload.kind == "program"


def of_stored(workload: Entry) -> Entry:
    """A workload of the store. Versions without kinds told programs from job files by their head,
    outside a section, where fio refuses options."""
    older = any(line.startswith(_HEAD) for line in _lines(workload)[:1])
    return replace(workload, kind="program") if older else workload


def chosen(workload: Entry) -> Chosen:
    """The program that an `entry` names. InputError if the program or a parameter no longer
    exists."""
    head, *rest = _lines(workload)
    given = dict(line.split("=", 1) for line in rest)
    on = given.pop(_FILE_SYSTEM, None)
    place = None if on is None else file_system.parse(on)
    name = head.removeprefix(_HEAD)
    if name == command.NAME:
        words = command.from_line(given.get(_WORDS, ""))
        return Chosen(command.program(words), {}, place, tuple(words))
    program = known(name)
    return Chosen(program, program.check(given), place)


def _lines(workload: Entry) -> list[str]:
    lines = (line.strip() for line in workload.text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]
