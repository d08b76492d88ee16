"""Parses the texts that users write for disks, workloads and schedulers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from blklab import _core, programs
from blklab.base.catalogue import Entry
from blklab.base.files import text_content
from blklab.base.text import shown, utf8
from blklab.disks import DISKS
from blklab.domain import core, job_changes, plugins, recordings, sweep
from blklab.domain.experiment import Disk, SchedulerSpec
from blklab.domain.scheduler import split
from blklab.errors import InputError, unknown
from blklab.workloads import WORKLOADS

GUEST: Mapping[str, int] = {
    "kernel": 7003,
    "cpus": 1,
    "kernel_cpus": 1,
    "submit_ns": 0,
    "complete_ns": 0,
    "driver_ns": 0,
    "switch_ns": 0,
    "wake_ns": 0,
    "syscall_ns": 0,
    "copy_mb_s": 0,
    "hz": 1000,
    "budget": -1,
    "partitions": 1,
    "large_folios": 0,
    "file_system": 0,
    "journal": 0,
    "lazytime": 0,
    "clock_ns": 0,
    "interrupt_ns": 1,
    "clock_stands": 1,
    "drain_at_once": 0,
    "probe_on_close": 0,
}
"""The host of a guest of the kernel rig: user-mode Linux with virtual time has one CPU on which
work takes no time, and its disk, behind its own transport, has no file system; the driver of that
disk lets a nanosecond pass after commands have ended, and its clock stands still while the kernel
takes an I/O. The native driver reads no clock between
I/Os, and reaps each I/O when it is done."""
_FIXED = ("kernel", "hz", "budget", "large_folios", "interrupt_ns", "clock_stands")
"""Values of a guest that no driver changes."""
_BESIDE = "+"
_GUEST = "guest"
_FILE = "@"
_FORMAT = "format="
"""A parameter of recordings, and no option of fio's: forces a format that is not detected."""
_HOST_FILE_BYTES_MAX = 1 << 20


class GuestKernel(NamedTuple):
    """What a kernel of the kernel rig has by itself. Those that blklab's patches do not fit have
    100 ticks per second, a driver without a budget (ublk), and queues for one CPU."""

    version: str
    hz: int
    has_transports: bool
    has_cpus: bool
    """Its queues are those of as many CPUs as the modelled host has."""


def guest(kernel: GuestKernel) -> dict[str, int]:
    """`GUEST` with what a kernel has by itself. Its version is that of the kernel, or the default
    if it is not simulated."""
    own = {"hz": kernel.hz}
    if not kernel.has_transports:
        own |= {"budget": 0, "interrupt_ns": 0}
    number = core.kernel_number(kernel.version)
    return {**GUEST, **own, **({} if number is None else {"kernel": number})}


def fixed(kernel: GuestKernel) -> dict[str, int]:
    """Values of its guests that no driver changes."""
    own = guest(kernel)
    names = _FIXED if kernel.has_cpus else (*_FIXED, "kernel_cpus")
    return {name: own[name] for name in names}


def guest_name(kernel: GuestKernel, driver: str) -> str:
    """A guest's host by default, as a text for ``--host``: ``guest`` or ``guest,hz=100``; with the
    native driver the simulator's own but for what a guest cannot have."""
    base = core.check_host({}) if driver == "native" else GUEST
    own = fixed(kernel) if driver == "native" else guest(kernel)
    changed = (
        f"{name}={core.host_text(name, own[name])}" for name in own if own[name] != base[name]
    )
    return ",".join([*([] if driver == "native" else [_GUEST]), *changed])


def disk(spec: str | os.PathLike[str] | Disk) -> Disk:
    """``name``, ``file.toml``, either with ``:key=value,key=value`` behind it. InputError."""
    if isinstance(spec, Disk):
        return spec
    text = os.fspath(spec)
    if _is_file(text):
        return Disk(DISKS.read(Path(text)))
    what, colon, changes = text.rpartition(":") if ":" in text else (text, "", "")
    overrides = _pairs(f"disk '{text}'", changes, "key=value") if colon else []
    return Disk(DISKS.find(what), tuple(overrides))


def host(changes: Iterable[str]) -> dict[str, int]:
    """``name=value`` or several with commas: tunables of the host and its page cache. ``@FILE``
    stands for the values of a host file, ``guest`` for those of `GUEST` but the version of Linux,
    since a guest of any kernel is one; values given beside it
    replace its own."""
    with core.core_types():
        stands_for, given = _core.host_spec(utf8(",".join(changes)))
    base: Mapping[str, int] = {}
    if stands_for == _GUEST:
        base = {name: value for name, value in GUEST.items() if name != "kernel"}
    elif stands_for is not None:
        base = host_file(Path(stands_for.removeprefix(_FILE)))
    values = {**base, **dict(given)}
    core.check_host(values)
    return values


def host_file(path: Path) -> dict[str, int]:
    """The values of a host file, as ``blklab host measure`` writes it. InputError."""
    text = text_content(path, _HOST_FILE_BYTES_MAX, "a host file")
    return core.host_file(text, utf8(str(path)))


def settings(changes: Iterable[str]) -> dict[str, str]:
    """``name=value`` of ``blklab apply --set``. InputError."""
    given: dict[str, str] = {}
    for change in changes:
        name, equals, value = (part.strip() for part in change.partition("="))
        if not equals:
            raise InputError(f"--set: expected name=value, found '{shown(change)}'")
        given[name] = value
    return given


def workload(spec: str | os.PathLike[str] | Entry) -> Entry:
    """A workload's name or a job file's path, either with fio's ``:option=value,...`` behind it,
    ``program:parameter=value,...``, or a recording with ``:parameter=value,...``; several files
    with ``+`` between them run at the same time. InputError."""
    if isinstance(spec, Entry):
        return spec
    text = os.fspath(spec)
    parts = text.split(_BESIDE)
    if len(parts) > 1 and all(_is_file(part) or _is_file(_before(part)) for part in parts):
        return together([_one(part) for part in parts])
    return _one(text)


def together(workloads: Sequence[Entry]) -> Entry:
    """Recordings that are replayed at the same time on one disk, beside a job file if there is one.
    InputError if there are others."""
    [first, *others] = sorted(workloads, key=recordings.is_recording)
    if not others:
        return first
    wrong = next((one for one in others if not recordings.is_recording(one)), None)
    if programs.is_program(first):
        wrong = first
    if wrong is not None:
        raise InputError(
            f"{wrong.name}: expected recordings beside at most one job file, found "
            f"{'a program' if programs.is_program(wrong) else 'another job file'}"
        )
    name = _BESIDE.join(one.name for one in (first, *others))
    return replace(first, name=name, beside=tuple(others))


def _before(text: str) -> str:
    """A file's name, without the parameters behind it."""
    return text.partition(":")[0]


def _one(text: str) -> Entry:
    if _is_file(text):
        path = Path(text)
        is_recording = recordings.is_trace(path)
        return (
            recordings.entry(path, {}, shown(path.name)) if is_recording else WORKLOADS.read(path)
        )
    paths = WORKLOADS.paths()
    if text not in paths:
        if programs.is_command(text):
            return programs.entry(text)
        name, colon, _ = text.partition(":")
        if colon and len(sweep.expanded(text)) > 1:
            raise InputError(f"{text}: means several workloads; only blklab compare accepts them")
        if name in programs.NAMES:
            return programs.entry(text)
        if _is_file(name) and (_FORMAT in text or recordings.is_trace(Path(name))):
            changed = text.removeprefix(f"{name}:")
            given = dict(_pairs(name, changed, "name=value"))
            return recordings.entry(Path(name), given, f"{shown(Path(name).name)}:{changed}")
        what, changed = sweep.taken_apart(text)
        if changed and (what in paths or _is_path(what)):
            return job_changes.changed(WORKLOADS.find(what), changed)
        if name in paths:
            raise InputError(f"{name}: expected option=value behind ':', found '{text}'")
        if not _is_path(text):
            raise unknown(f"no workload '{text}'", name, [*paths, *programs.NAMES])
    return WORKLOADS.find(text)


def _pairs(owner: str, text: str, expected: str) -> list[tuple[str, str]]:
    """The pairs of ``name=value,...``. InputError."""
    with core.core_types():
        return _core.pairs(utf8(text), utf8(owner), expected)


def workloads(specs: Iterable[str | os.PathLike[str] | Entry]) -> tuple[Entry, ...]:
    """The workloads of all `specs`, each one workload or a sweep: see `blklab.domain.sweep`."""
    return tuple(found for spec in specs for found in _several(spec))


def on_file_systems(workloads: Sequence[Entry], file_systems: Sequence[str]) -> tuple[Entry, ...]:
    """Each program among `workloads` on each of these file systems (``ext4:data=journal``);
    others stay. InputError if there is no program, or if a file system is wrong."""
    if file_systems and not any(map(programs.is_program, workloads)):
        raise InputError(
            "--fs: is for real programs; fio's jobs and recordings run on the bare disk"
        )
    return tuple(
        one
        for workload in workloads
        for one in (
            [programs.on_file_system(workload, text) for text in file_systems]
            if file_systems and programs.is_program(workload)
            else [workload]
        )
    )


def _several(spec: str | os.PathLike[str] | Entry) -> list[Entry]:
    if isinstance(spec, Entry):
        return [spec]
    text = os.fspath(spec)
    if _is_file(text) or text in WORKLOADS.paths() or programs.is_command(text):
        return [workload(text)]
    return [workload(one) for one in sweep.expanded(text)]


def _is_file(text: str) -> bool:
    # `Path.exists` raises if a name is longer than names can be.
    return os.path.isfile(text)  # noqa: PTH113


def _is_path(text: str) -> bool:
    return text.endswith(WORKLOADS.suffix) or os.sep in text


def scheduler(spec: str | SchedulerSpec) -> SchedulerSpec:
    """``name``, ``name:tunable=value,...``, either with ``@kernel`` behind it. InputError for
    another form; the rig checks names and values."""
    if isinstance(spec, SchedulerSpec):
        return spec
    told, at, kernel = shown(spec).rpartition("@")
    name, settings = split(told if at else kernel)
    plugin = None if at else plugins.hash_of(name)
    return SchedulerSpec(name, tuple(settings.items()), kernel if at else None, plugin)
