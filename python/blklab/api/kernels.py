"""``blklab.build_kernel`` and the other functions about kernels of the kernel rig."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from blklab.api.listener import SILENT, Listener
from blklab.api.traces import ImportedTrace, import_of_guest
from blklab.base.files import check_directory
from blklab.domain import core, specs
from blklab.domain.experiment import Disk, SchedulerSpec
from blklab.errors import InputError, RunError
from blklab.host import reading
from blklab.programs import file_system as of_users
from blklab.rigs.kernel import (
    cache,
    file_systems,
    modelled_host,
    outcome,
    program,
    shell,
    view,
    wall,
)
from blklab.rigs.kernel.boot import TimeTravel, checked_time_travel
from blklab.rigs.kernel.cache import Kernel

if TYPE_CHECKING:
    from blklab.rigs.kernel.build import Built

_SECTOR_BYTES = 512
_CLOCK_OF_FIO = (
    "fio reads the CPU's own clock, which is this machine's and not the guest's; its times are "
    "right with fio --clocksource=clock_gettime"
)


@dataclass(frozen=True)
class Kernels:
    """The cache of built kernels."""

    kernels: tuple[Kernel, ...]
    """The latest first."""
    damaged: tuple[str, ...]
    """A line for each kernel that cannot be read."""
    cache: Path
    """Its directory."""
    used_bytes: Mapping[str, int]
    """Bytes by part: built kernels, downloads, sources, trees."""
    confined_by: str | None
    """The confinement of guests on this machine; None if there is none."""
    refused: str
    """The reason why guests cannot be confined, and so do not start; else empty."""

    def to_json(self) -> dict[str, Any]:
        """Plain data, as ``blklab kernel list --json`` prints it."""
        return {
            "cache": str(self.cache),
            "used_bytes": dict(self.used_bytes),
            "kernels": [kernel.to_json() for kernel in self.kernels],
            "confined_by": self.confined_by,
        }


@dataclass(frozen=True)
class RemovedKernels:
    """The result of `remove_kernels`."""

    names: Mapping[str, bool]
    """By name; False if only the name was removed, since the kernel has others."""
    source_bytes: int
    """Removed bytes of downloads, sources and objects."""


@dataclass(frozen=True)
class ProgramRun:
    """A program that has run in a guest."""

    exit_code: int
    """The program's exit code; 128 plus the signal's number if a signal ended it."""
    kernel: str
    """For a person."""
    scheduler: str
    """The scheduler that was active in the kernel."""
    duration_ns: int
    """Duration by the guest's clock."""
    wall_s: float
    """Duration by this machine's clock, with the start of the guest."""
    reads: int
    """Commands that the disk has completed."""
    read_bytes: int
    writes: int
    write_bytes: int
    flushes: int
    lateness_ns: Mapping[str, int]
    """Lateness of the disk's completions: ``p50``, ``p99``, ``max``."""
    notes: tuple[str, ...]
    """Differences from the requested settings, and the reason if the run is invalid."""
    trace: Path | None
    """The file of the block layer's events."""
    trace_events: int
    trace_lost: int
    """Events lost because the kernel's buffer was full."""
    recording: ImportedTrace | None = None
    """The recording of its I/O, if it was asked for."""


def build_kernel(
    source: str | None = None,
    patches: Sequence[str | os.PathLike[str]] = (),
    *,
    name: str | None = None,
    added: Sequence[str | os.PathLike[str]] = (),
    config: Sequence[str] = (),
    max_parallel: int | None = None,
    refresh: bool = False,
    listener: Listener = SILENT,
) -> Built:
    """Build Linux as a program and store it, or take it from the cache. Needs no root.

    Args:
        source: a version (``7.3``, ``6.12.107``), a tarball, a directory, or a commit of a git
            repository (``DIRECTORY@COMMIT``); None is the default version.
        patches: files, applied as by ``patch -p1``, in this order.
        name: name of the kernel; None: made from source and patches.
        added: C files for the kernel's ``block/``; one replaces a file of the same name.
        config: options of the kernel's configuration: ``NAME=y``.
        max_parallel: maximum of parallel compilers; None is one per CPU.
        refresh: ask the mirror for a newer source even if one is cached.
        listener: `Listener.building` shows the progress.

    Raises:
        blklab.errors.InputError: a name, a file or an option is wrong.
        blklab.errors.RunError: a tool is missing, the source is not available, or the build failed;
            ``detail`` has its last output. The cache is unchanged.
    """
    from blklab.rigs.kernel.build import build

    with listener.building() as steps:
        return build(
            source,
            [Path(file) for file in patches],
            name,
            added_files=[Path(file) for file in added],
            options=config,
            jobs=max_parallel,
            refresh=refresh,
            steps=steps,
        )


def list_kernels() -> Kernels:
    """The built kernels, the latest first, the size of the cache, and the confinement of guests."""
    try:
        confined, refused = wall.told(), ""
    except RunError as error:
        confined, refused = None, str(error)
    return Kernels(
        tuple(cache.kernels()),
        tuple(cache.damaged()),
        cache.root(),
        cache.used_bytes(),
        confined,
        refused,
    )


def remove_kernels(names: Sequence[str] = (), *, sources: bool = False) -> RemovedKernels:
    """Remove kernels by name or key; with `sources` also downloads, sources and objects.

    Raises:
        blklab.errors.InputError: there is no such kernel, and nothing is removed.
        blklab.errors.RunError: a running build uses them.
    """
    if not names and not sources:
        raise InputError("nothing to remove: name kernels, or use --sources")
    # All are looked up before the first is removed.
    found = {name: cache.find(name) for name in names}
    gone = {name: cache.remove(kernel, name) for name, kernel in found.items()}
    return RemovedKernels(gone, cache.remove_sources() if sources else 0)


def kernel_source(file: str, source: str | None = None, *, listener: Listener = SILENT) -> bytes:
    """A file of a kernel's source: ``block/kyber-iosched.c``. Downloads the source if needed.

    Args:
        source: as of `build_kernel`.

    Raises:
        blklab.errors.InputError: there is no such file or source.
        blklab.errors.RunError: the source is not available.
    """
    from blklab.rigs.kernel import source as sources

    with listener.building() as steps:
        found = sources.find(source, steps)
        with sources.held(found, steps):
            return sources.file(found, file)


def run_in_kernel(
    command: Sequence[str],
    *,
    disk: str | os.PathLike[str] | Disk,
    scheduler: str | SchedulerSpec = "none",
    kernel: str | None = None,
    file_system: str | None = None,
    mount: str | os.PathLike[str] = "/mnt",
    data: str = "memory",
    overwrite_data: bool = False,
    share: Sequence[str | os.PathLike[str]] = (),
    memory_mib: int = 512,
    scratch_mib: int = wall.SCRATCH_MIB,
    trace: str | os.PathLike[str] | None = None,
    trace_format: Literal["events", "blktrace"] | str | None = None,
    record: str | os.PathLike[str] | None = None,
    time_travel: TimeTravel | str = "inf-cpu",
    seed: int = 1,
    timeout_s: float = 3600.0,
    stdout: BinaryIO | None = None,
    stderr: BinaryIO | None = None,
    listener: Listener = SILENT,
) -> ProgramRun:
    """Run a program of this machine in a guest, on a disk model.

    The guest sees this machine's programs, the current directory and the files that the command
    names, read-only. The program starts in the disk's file system, or without one in an empty
    temporary directory.

    Args:
        command: program and arguments; ``{disk}`` in them is the disk.
        disk, scheduler, seed: see `simulate`; any scheduler that the kernel has.
        kernel: a kernel from `list_kernels`; None is the newest one without changes.
        file_system: make one on the disk: ``ext4``; ``xfs``, ``btrfs`` or ``f2fs`` if a kernel has
            it; with options of mount and mkfs behind a colon, see `blklab.programs.file_system`.
        mount: its mount point.
        data: ``memory``, ``none`` (reads give zeros) or a file, see ``blklab kernel run --help``.
        overwrite_data: make a file system even if that file holds data.
        share: directories and files that the guest can read besides.
        memory_mib: the guest's memory.
        scratch_mib: room for the program's output, the trace and its first directory.
        trace: a directory for the block layer's events; `trace_format` is ``events`` (None) or
            ``blktrace``.
        record: a new file, the recording of the I/O of the disk.
        time_travel: the guest's clock: ``inf-cpu``, ``on`` or ``off``.
        timeout_s: end it after this wall time.
        stdout, stderr: receive the program's output after its end.

    Raises:
        blklab.errors.InputError: a name, file or value is wrong; nothing has run.
        blklab.errors.RunError: the guest failed. The program's own failure is its `exit_code`.
    """
    events = None if trace is None else Path(trace)
    if events is not None:
        check_directory(events)
    elif trace_format is not None:
        raise InputError("--trace-format: needs --trace with a directory for the events")
    if record is not None:
        if events is not None:
            raise InputError("--record and --trace: give one of them")
        if os.path.lexists(record):
            raise InputError(f"{os.fspath(record)}: exists already")
    seen = view.shared(command, [Path(one) for one in share])
    task = program.Program(
        command=command,
        disk=specs.disk(disk),
        scheduler=specs.scheduler(scheduler).label,
        seed=seed,
        data=data,
        overwrite_data=overwrite_data,
        shared=seen.paths,
        file_system=None if file_system is None else of_users.parse(file_system, "--mkfs"),
        mount=Path(mount),
        memory_mib=memory_mib,
        scratch_mib=scratch_mib,
        time_travel=checked_time_travel(time_travel),
        timeout_s=timeout_s,
        trace=events,
        trace_format=trace_format or program.TRACE_FORMATS[0],
    )
    chosen = cache.chosen(kernel, file_systems.needs([file_system] if file_system else []))
    if task.time_travel != "off" and _fio_reads_the_cpus_clock(command):
        listener.note(_CLOCK_OF_FIO)
    if seen.note is not None:
        listener.note(seen.note)
    with contextlib.ExitStack() as stack:
        out, err = (one or stack.enter_context(_nowhere()) for one in (stdout, stderr))
        if record is not None:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="blklab-"))
            task = replace(task, trace=Path(directory), trace_format="blktrace")
        told = _told(program.run(chosen, task, out, err), chosen, task)
        if record is None:
            return told
        assert told.trace is not None
        if told.trace_lost:
            raise RunError(f"the guest lost {told.trace_lost} of its events; nothing is recorded")
        capacity_bytes = core.disk_model(task.disk).limits.capacity_bytes
        made = import_of_guest(told.trace, Path(record), capacity_bytes)
        return replace(told, trace=None, recording=made)


def kernel_shell(
    kernel: str | None = None,
    *,
    disk: str | os.PathLike[str] | Disk | None = None,
    scheduler: str | SchedulerSpec = "none",
    memory_mib: int = 512,
    time_travel: TimeTravel | str = "off",
    share: Sequence[str | os.PathLike[str]] = (),
    timeout_s: float = 86400.0,
    listener: Listener = SILENT,
) -> None:
    """Start a kernel with a shell on this process's terminal; returns when the shell has ended.

    Args:
        disk: the guest's disk; without it, it has none.
        kernel, scheduler, memory_mib, time_travel, share, listener: see `run_in_kernel`.
        timeout_s: the guest is stopped after so many seconds of real time.

    Raises:
        blklab.errors.InputError: a name or value is wrong, or standard input is no terminal.
        blklab.errors.RunError: the guest failed, or could not have its disk.
    """
    model = None if disk is None else specs.disk(disk)
    shell.run(
        cache.chosen(kernel),
        model,
        specs.scheduler(scheduler).text,
        memory_mib=memory_mib,
        time_travel=checked_time_travel(time_travel),
        shared=view.shared([], [Path(one) for one in share]).paths,
        timeout_s=timeout_s,
        tell=listener.note,
    )


def _told(ran: program.Ran, kernel: Kernel, task: program.Program) -> ProgramRun:
    found, ended = ran.outcome, ran.outcome["program"]
    if ended is None:
        raise RunError("the guest's result.json has no program")
    disk, counters, traced = found["disk"], found["counters"], found["trace"]
    late = disk["lateness"]
    ticks_ms = counters["read_ticks_ms"] + counters["write_ticks_ms"]
    ios = counters["read_ios"] + counters["write_ios"]
    invalid = outcome.too_late(late, ticks_ms * 1e6 / max(ios, 1))
    cpus = modelled_host.kernel_cpus(core.check_host({}))
    return ProgramRun(
        exit_code=ran.exit_code,
        kernel=kernel.text,
        scheduler=found["scheduler"],
        duration_ns=ended["duration_ns"],
        wall_s=ran.wall_s,
        reads=disk["reads"],
        read_bytes=disk["read_sectors"] * _SECTOR_BYTES,
        writes=disk["writes"],
        write_bytes=disk["write_sectors"] * _SECTOR_BYTES,
        flushes=disk["flushes"],
        lateness_ns={"p50": late["p50_ns"], "p99": late["p99_ns"], "max": late["max_ns"]},
        notes=(*outcome.notes(found, task.disk, cpus), *([invalid] if invalid else [])),
        trace=None if task.trace is None or traced is None else task.trace / traced["file"],
        trace_events=traced["events"] if traced else 0,
        trace_lost=traced["lost"] if traced else 0,
    )


def _fio_reads_the_cpus_clock(command: Sequence[str]) -> bool:
    """Whether the command runs fio without setting a clock source on the command line or in a job
    file."""
    words = " ".join(command).split()
    if not any(Path(word).name == "fio" for word in words):
        return False
    texts = list(words)
    for word in words:
        # If it is missing or not readable, fio itself reports the error.
        with contextlib.suppress(OSError):
            texts += [reading.content(Path(word))] if word.endswith(".fio") else []
    return not any("clocksource" in text for text in texts)


@contextlib.contextmanager
def _nowhere() -> Iterator[BinaryIO]:
    with Path(os.devnull).open("wb") as file:
        yield file
