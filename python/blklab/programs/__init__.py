"""Real programs as workloads: one file each with a `PROGRAM`, and one line in `NAMES`.

On the command line ``sqlite`` or ``sqlite:insertions=100,copies=2``. An experiment holds a text
like a job file, so that it is stored, shown and compared like one: ``program=NAME``, then each
parameter with its value. The kind of its `Entry` tells it from a job file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

from blklab import _core
from blklab.base.catalogue import Entry
from blklab.base.text import utf8
from blklab.errors import InputError, nearest
from blklab.programs.program import Program

NAMES = (
    "dbench",
    "hdparm",
    "kernel-tree",
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


@dataclass(frozen=True)
class Chosen:
    """A program with its parameters."""

    program: Program
    values: Mapping[str, int]
    """The value of every parameter."""


def known(name: str) -> Program:
    """The program of that name. InputError if it does not exist."""
    if name not in NAMES:
        raise InputError(f"no program '{name}'{nearest(name, NAMES)}")
    found: Program = import_module(f"{__name__}.{name.replace('-', '_')}").PROGRAM
    return found


def entry(spec: str) -> Entry:
    """``name:parameter=value,...`` as a workload. InputError if it is wrong."""
    name, colon, changes = spec.partition(":")
    program = known(name)
    given = dict(_core.pairs(utf8(changes), name, "parameter=value")) if colon else {}
    values = program.check(given)
    lines = [f"# {program.summary}", f"{_HEAD}{name}"]
    lines += [f"{key}={value}" for key, value in values.items()]
    return Entry(spec, Path(spec), "\n".join(lines) + "\n", kind="program")


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
    program = known(head.removeprefix(_HEAD))
    return Chosen(program, program.check(dict(line.split("=", 1) for line in rest)))


def _lines(workload: Entry) -> list[str]:
    lines = (line.strip() for line in workload.text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]
