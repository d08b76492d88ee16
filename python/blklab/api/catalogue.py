"""The available disks, schedulers and workloads, and the modelled host."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict, final

from blklab import _core, programs
from blklab.base.catalogue import Entry
from blklab.base.plain import plain
from blklab.disks import DISKS
from blklab.domain import core, plugins, recordings, scheduler, specs
from blklab.domain.core import JobDocument
from blklab.domain.experiment import Disk, SchedulerSpec
from blklab.domain.setup import DiskData, Value
from blklab.errors import InputError
from blklab.workloads import WORKLOADS, summary


class TunableDocument(TypedDict):
    """A tunable, as ``--json`` lists them."""

    name: str
    unit: str
    default: int
    min: int
    max: int
    words: list[tuple[str, int]]
    """The only values, each a word with its number; empty if all between `min` and `max` are."""
    help: str


class SchedulerDocument(TypedDict):
    """A scheduler of ``blklab schedulers --json``."""

    name: str
    summary: str
    follows: str
    tunables: list[TunableDocument]
    settings: dict[str, int | str]
    """Its tunables and the queue's, with what was changed."""


class ParameterDocument(TunableDocument):
    """A program's parameter with its value."""

    value: int


@final
class ProgramDocument(TypedDict):
    """A real program of ``blklab workloads NAME --json``."""

    name: str
    summary: str
    kind: Literal["program"]
    unit: str
    higher_is_better: bool
    operation: str
    target: str
    rigs: list[str]
    needs: dict[str, str]
    missing: str
    parameters: list[ParameterDocument]


class ListedDocument(TypedDict):
    """A job file of ``blklab workloads --json``."""

    name: str
    summary: str
    kind: Literal["fio"]


@dataclass(frozen=True)
class DiskParameter:
    """A key of a disk's file."""

    key: str
    value: str
    """As written in the file, in `unit`."""
    unit: str
    help: str
    source: str
    """The source of the number; empty if it needs none."""
    range: tuple[float, float] | None = None
    """The range of an estimate; for a list, of its first number."""


@dataclass(frozen=True)
class DiskModel:
    """A modelled disk."""

    disk: Disk
    """Its file and changes; the argument for other functions."""
    kind: str
    """``hdd`` or ``ssd``."""
    name: str
    """The maker's."""
    summary: str
    parameters: tuple[DiskParameter, ...]
    limits: Mapping[str, Value]
    """The properties that Linux sees: ``capacity_bytes``, ``queue_depth``, ``hw_queues`` and
    others."""
    validated: bool
    """Whether it meets enough independent figures."""
    validation: str
    """The result as text."""
    published: tuple[_core.PublishedFigure, ...]
    described: DiskData
    """All of it as plain data, as ``blklab disks NAME --json`` prints it."""


@dataclass(frozen=True)
class Tunable:
    """A setting with a whole number."""

    name: str
    value: int
    """In `unit`, as all numbers here."""
    unit: str
    """Empty for a count."""
    default: int
    least: int
    most: int
    help: str
    words: tuple[tuple[str, int], ...] = ()
    """The only values, each a word with its number; empty if all numbers are."""


@dataclass(frozen=True)
class SchedulerModel:
    """A scheduler of the simulator."""

    spec: SchedulerSpec
    """The argument for other functions."""
    name: str
    summary: str
    follows: str
    """The original, and its version."""
    tunables: tuple[Tunable, ...]
    """Its own."""
    of_queue: tuple[Tunable, ...]
    """The tunables of the queue, the same for all schedulers."""
    described: SchedulerDocument
    """All of it as plain data, as ``blklab schedulers --json`` prints it."""


@dataclass(frozen=True)
class Host:
    """The modelled computer around the disk."""

    host: tuple[Tunable, ...]
    """CPUs, and the CPU cost of I/O."""
    page_cache: tuple[Tunable, ...]
    """Memory and writeback."""
    guest: Mapping[str, int]
    """The values that a guest of the kernel rig has, for ``--host guest``."""
    described: Mapping[str, list[TunableDocument]]
    """The same as plain data, as ``blklab host --json`` prints it."""


@dataclass(frozen=True)
class Workload:
    """A job file or a real program."""

    entry: Entry
    """Its name, path and text; the argument for other functions."""
    kind: Literal["fio", "program"]
    summary: str
    ignored: tuple[str, ...]
    """Options of a job file that are not simulated, each with its line and the reason."""
    parameters: tuple[Tunable, ...]
    """The parameters of a program."""
    missing: str
    """The missing requirements of a program on this machine, and how to install them; else
    empty."""
    described: JobDocument | ProgramDocument | ListedDocument
    """All of it as plain data, as ``blklab workloads NAME --json`` prints it;
    of a job file in a list its first line only."""
    program: ProgramDocument | None = None
    """The figure and the requirements of a program; the same as `described`."""

    @property
    def about(self) -> str:
        """The description of a program, in paragraphs; empty for a job file, which contains its
        own."""
        if self.kind == "fio":
            return ""
        begin = programs.chosen(self.entry).program.begin
        return (sys.modules[begin.__module__].__doc__ or "").strip()


def list_disks() -> dict[str, DiskModel]:
    """All disk models, by name: those of the package, and the user's own. InputError if a file is
    wrong."""
    return {name: _disk(Disk(DISKS.find(name))) for name in DISKS.names()}


def find_disk(disk: str | os.PathLike[str] | Disk) -> DiskModel:
    """A disk by name or TOML file, with ``:key=value,...`` to change it. InputError if there is
    none, or if its file or a value is wrong."""
    return _disk(specs.disk(disk))


def list_schedulers() -> list[SchedulerModel]:
    """All schedulers of the simulator, with their defaults."""
    known = core.schedulers() + plugins.infos()
    return [find_scheduler(info.name) for info in known]


def find_scheduler(spec: str | SchedulerSpec) -> SchedulerModel:
    """A scheduler of the simulator: ``name``, with ``:tunable=value,...`` to change it. InputError
    if there is no such scheduler or tunable."""
    asked = specs.scheduler(spec)
    checked = scheduler.simulated(asked if asked.plugin else asked.label)
    if asked.plugin is None:
        info = {info.name: info for info in core.schedulers()}[checked.name]
    else:
        info = plugins.find(asked.plugin).info
    of_queue = core.environment()["queue"]
    return SchedulerModel(
        asked,
        checked.name,
        info.summary,
        info.follows,
        _tunables(info.tunables, checked.settings),
        _tunables(of_queue, checked.settings),
        plain(info) | {"settings": checked.settings},
    )


def load_plugin(file: str | os.PathLike[str]) -> SchedulerSpec:
    """A scheduler from a file of WebAssembly, for the simulator; other functions take it, and from
    now on its name in texts: ``name:tunable=value``. InputError if the file cannot be read or is
    not a plug-in."""
    return specs.scheduler(plugins.load(Path(file)))


def scheduler_spec(text: str) -> SchedulerSpec:
    """A scheduler of any kernel, from its text: ``mq-deadline:fifo_batch=1``. InputError if the
    form is wrong; the rig checks names and values."""
    return specs.scheduler(text)


def modelled_host(changed: Mapping[str, int] | None = None) -> Host:
    """The simulated host with the values in `changed`. InputError if a name or value is wrong."""
    tables = {name: rows for name, rows in core.environment().items() if name != "queue"}
    values = core.check_host(changed or {})
    of_host, of_cache = (_tunables(tables[name], values) for name in ("host", "page cache"))
    return Host(of_host, of_cache, specs.GUEST, plain(tables))


def list_workloads() -> list[Workload]:
    """All workloads by name: job files of the package and the user's own, then real programs.
    InputError if a file cannot be read."""
    jobs = [WORKLOADS.read(path) for path in WORKLOADS.paths().values()]
    real = [programs.entry(name) for name in programs.NAMES]
    return [_listed(entry) for entry in (*jobs, *real)]


def find_workload(name: str | os.PathLike[str] | Entry) -> Workload:
    """A workload by name or ``.fio`` file, with ``:option=value,...`` to change it. InputError if
    there is none, or if it is wrong."""
    entry = specs.workload(name)
    if programs.is_program(entry):
        return _program(entry)
    if recordings.is_recording(entry):
        raise InputError(
            f"{entry.name}: is recorded I/O; to see its figures: blklab trace show {entry.place}"
        )
    return Workload(
        entry,
        "fio",
        summary(entry.text),
        tuple(core.ignored_options(entry, ignore_unsupported=True)),
        (),
        "",
        plain(core.job_document(core.describe_job(entry, ignore_unsupported=True))),
    )


def _disk(disk: Disk) -> DiskModel:
    model = core.disk_model(disk)
    told: DiskData = plain(model)
    return DiskModel(
        disk,
        model.kind,
        model.name,
        model.summary,
        tuple(
            DiskParameter(row.key, row.value, row.unit, row.help, row.source, row.range)
            for row in model.parameters
        ),
        told["limits"],
        model.validation.validated,
        model.validation.text,
        tuple(model.published),
        told,
    )


def _tunables(rows: list[_core.Tunable], values: Mapping[str, int | str]) -> tuple[Tunable, ...]:
    return tuple(
        Tunable(
            row.name,
            int(values[row.name]),
            row.unit,
            row.default,
            row.min,
            row.max,
            row.help,
            tuple(row.words),
        )
        for row in rows
    )


def _listed(entry: Entry) -> Workload:
    """Without the description of a job file, which may contain errors."""
    if programs.is_program(entry):
        return _program(entry)
    about = summary(entry.text)
    told: ListedDocument = {"name": entry.name, "summary": about, "kind": "fio"}
    return Workload(entry, "fio", about, (), (), "", told)


def _program(entry: Entry) -> Workload:
    chosen = programs.chosen(entry)
    program = chosen.program
    parameters = tuple(
        Tunable(
            one.name, chosen.values[one.name], one.unit, one.default, one.min, one.max, one.help
        )
        for one in program.parameters
    )
    told: ProgramDocument = {
        "name": program.name,
        "summary": program.summary,
        "kind": "program",
        "unit": program.unit,
        "higher_is_better": program.higher_is_better,
        "operation": program.operation,
        "target": "a device, read-only" if program.on_device else "a directory",
        "rigs": list(program.rigs),
        "needs": dict(program.needs),
        "missing": program.missing(),
        "parameters": [
            {
                "name": parameter.name,
                "value": parameter.value,
                "default": parameter.default,
                "min": parameter.least,
                "max": parameter.most,
                "unit": parameter.unit,
                "words": list(parameter.words),
                "help": parameter.help,
            }
            for parameter in parameters
        ],
    }
    missing = told["missing"]
    return Workload(entry, "program", program.summary, (), parameters, missing, told, told)
