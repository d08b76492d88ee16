"""Any program of this machine in a guest, with a modelled disk."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from blklab.base import binaries
from blklab.domain import core, scheduler
from blklab.domain.experiment import Disk
from blklab.errors import InputError, RunError, nearest
from blklab.programs.file_system import FileSystem
from blklab.rigs.disk_data import DiskData
from blklab.rigs.kernel import file_systems, outcome, view, wall
from blklab.rigs.kernel.boot import Guest, TimeTravel, boot
from blklab.rigs.kernel.cache import Kernel
from blklab.rigs.kernel.errors import GuestMemoryError

TRACE_FORMATS = ("events", "blktrace")
"""Formats of the block layer's events: as tracefs prints them, or for blkparse and btt."""

_INIT = "blklab-guest"
_SIGNALLED = 128


@dataclass(frozen=True)
class Program:
    """A program to run, and its disk."""

    command: Sequence[str]
    disk: Disk
    scheduler: str = "none"
    seed: int = 1
    data: str = "memory"
    """``memory``, ``none`` or a file's path: see :mod:`blklab.rigs.disk_data`."""
    overwrite_data: bool = False
    """A file system may be created even if the disk holds data."""
    shared: Sequence[Path] = ()
    """The guest's view of this machine: see :mod:`blklab.rigs.kernel.view`."""
    file_system: FileSystem | None = None
    mount: Path = Path("/mnt")
    memory_mib: int = 512
    scratch_mib: int = wall.SCRATCH_MIB
    """The space for its output, its trace and its first directory."""
    time_travel: TimeTravel = "inf-cpu"
    timeout_s: float = 3600.0
    trace: Path | None = None
    """Directory for the block layer's events."""
    trace_format: str = TRACE_FORMATS[0]


@dataclass(frozen=True)
class Ran:
    """The end of a program."""

    exit_code: int
    """The program's exit code; 128 plus the signal's number if a signal ended it."""
    outcome: outcome.Outcome
    """The guest's ``result.json``."""
    wall_s: float


def run(kernel: Kernel, program: Program, stdout: BinaryIO, stderr: BinaryIO) -> Ran:
    """Run it to its end; then its output goes to `stdout` and `stderr`.

    InputError for bad input; RunError if the guest fails. A failure of the program itself is not an
    error.
    """
    _check(program, kernel)
    with contextlib.ExitStack() as stack:
        data = None
        if program.data not in ("memory", "none"):
            limits = core.disk_model(program.disk).limits
            data = DiskData(program.data, limits.capacity_bytes)
            stack.enter_context(contextlib.closing(data))
            _check_data(program, data)
        guest = stack.enter_context(_boot(kernel, program, data))
        try:
            ended = guest.wait()
        except GuestMemoryError as error:
            more = "more of it: --memory MIB"
            if program.data == "memory":
                more += ", or the disk's data in a file: --data FILE"
            raise GuestMemoryError(f"{error}; {more}", error.detail) from None
        finally:
            guest.run.copy("program.stdout", stdout)
            guest.run.copy("program.stderr", stderr)
        try:
            found = outcome.read(guest.run, outcome.OUTCOME)
        except outcome.ScratchError as error:
            raise RunError(f"{error}; more of it: --scratch MIB") from None
        if program.trace is not None:
            if found["trace"] is None:
                raise RunError("the guest left no trace")
            _keep(guest, found["trace"]["file"], program.trace)
    if found["program"] is None:
        raise RunError("the guest left no result of the program")
    code = found["program"]["exit_code"]
    if code is None:
        code = _SIGNALLED + (found["program"]["signal"] or 0)
    return Ran(code, found, ended.wall_s)


def _boot(kernel: Kernel, program: Program, data: DiskData | None) -> Guest:
    seen = view.View(
        programs={_INIT: binaries.find(_INIT)},
        shared=tuple(program.shared),
        mountpoints=(program.mount,) if program.file_system else (),
        data=data.path if data else None,
        held=(data.fileno(),) if data else (),
    )
    files = {
        "disk.toml": program.disk.file.text.encode(),
        "guest.json": json.dumps(_order(program, kernel, seen)).encode(),
        "scratch": None,
    }
    return boot(
        kernel.image,
        [str(view.HERE / _INIT)],
        files,
        seen,
        memory_mib=program.memory_mib,
        scratch_mib=program.scratch_mib,
        time_travel=program.time_travel,
        seed=program.seed,
        timeout_s=program.timeout_s,
    )


def _keep(guest: Guest, name: str, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    guest.run.open(name).close()  # before its file is created
    with (directory / name).open("wb") as kept:
        guest.run.copy(name, kept)


def _check(program: Program, kernel: Kernel) -> None:
    """InputError or RunError if it cannot be run."""
    core.disk_model(program.disk)
    if not program.command or not program.command[0]:
        raise InputError("no command; expected a program and its arguments behind --")
    if program.file_system is not None:
        if program.data == "none":
            raise InputError(
                "--data none: written data are discarded, and a file system needs them"
            )
        if not program.mount.is_absolute():
            raise InputError(f"--mount: '{program.mount}' is not absolute")
        file_systems.check(program.file_system.kind, kernel, "--mkfs")
    if program.trace_format not in TRACE_FORMATS:
        wrong = program.trace_format
        raise InputError(f"--trace-format: no '{wrong}'{nearest(wrong, TRACE_FORMATS)}")


def _check_data(program: Program, data: DiskData) -> None:
    if program.file_system is not None and not data.is_empty and not program.overwrite_data:
        raise InputError(
            f"--mkfs: {program.data} holds data, which it would overwrite; to do so: "
            "--overwrite-data"
        )
    if os.geteuid() == 0:
        data.hand_over(wall.NOBODY)


def _order(program: Program, kernel: Kernel, seen: view.View) -> dict[str, Any]:
    """``guest.json``."""
    order: dict[str, Any] = {
        "disk": {
            "file": "disk.toml",
            "overrides": list(program.disk.overrides),
            "seed": program.seed,
            "data": program.data if program.data in ("memory", "none") else view.DATA.name,
        },
        **scheduler.parse(program.scheduler).for_guest({}, kernel.version),
        "host_directories": list(map(str, seen.hidden_by_own())),
        "host_files": list(map(str, seen.files_hidden_by_own())),
        "trace": program.trace_format if program.trace is not None else None,
        "run": {
            "program": {
                "command": list(program.command),
                "directory": str(program.mount) if program.file_system else "scratch",
            }
        },
    }
    if program.file_system is not None:
        order["file_system"] = file_systems.to_order(
            program.file_system, program.mount, program.seed
        )
    return order
