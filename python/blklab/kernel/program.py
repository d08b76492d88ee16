"""Any program of this machine in a guest, with a modelled disk before it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from blklab import binaries
from blklab.errors import InputError, RunError, nearest
from blklab.kernel import config, outcome, scheduler
from blklab.kernel.boot import TimeTravel, boot
from blklab.kernel.cache import Kernel
from blklab.kernel.errors import GuestMemoryError
from blklab.rigs import Disk, sim

FILE_SYSTEMS = {"ext4": "e2fsprogs", "xfs": "xfsprogs", "btrfs": "btrfs-progs"}
"""What can be made on the disk, and the Debian package with the mkfs of it."""
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"

TRACE_FORMATS = ("events", "blktrace")
"""How the block layer's events can be kept: as tracefs prints them, or for blkparse and btt."""

DEVICE = "/dev/ublkb0"
"""The disk, inside."""

DEVICE_WORD = "{disk}"
"""Stands for the disk in a command."""

_HIDDEN = tuple(map(Path, ("/tmp", "/run")))
"""Directories of which a guest has its own."""
_SIGNALLED = 128


@dataclass(frozen=True)
class Program:
    """What is to run, and before which disk."""

    command: Sequence[str]
    disk: Disk
    scheduler: str = "none"
    seed: int = 1
    data: str = "memory"
    """``memory``, ``none`` or a file's path."""
    file_system: str | None = None
    mount: Path = Path("/mnt")
    memory_mib: int = 512
    time_travel: TimeTravel = "inf-cpu"
    timeout_s: float = 3600.0
    trace: Path | None = None
    """Directory for the block layer's events."""
    trace_format: str = TRACE_FORMATS[0]


@dataclass(frozen=True)
class Ran:
    """How it ended."""

    exit_code: int
    """The program's; 128 and the signal's number if one ended it."""
    outcome: dict[str, Any]
    """The guest's ``result.json``."""
    wall_s: float


def run(kernel: Kernel, program: Program, stdout: BinaryIO, stderr: BinaryIO) -> Ran:
    """Run it to its end; then what it has printed goes to `stdout` and `stderr`.

    InputError for bad input; RunError if the guest fails. The program's own failure is none.
    """
    order = _order(program, kernel)
    with _directory(program) as directory:
        (directory / "disk.toml").write_text(program.disk.file.text, encoding="utf-8")
        (directory / "guest.json").write_text(json.dumps(order), encoding="utf-8")
        (directory / "scratch").mkdir()
        try:
            with boot(
                kernel.image,
                [str(binaries.find("blklab-guest"))],
                directory,
                memory_mib=program.memory_mib,
                time_travel=program.time_travel,
                seed=program.seed,
                timeout_s=program.timeout_s,
                temporary=True,
            ) as guest:
                ended = guest.wait()
        except GuestMemoryError as error:
            more = "more of it: --memory MIB"
            if program.data == "memory":
                more += ", or the disk's data in a file: --data FILE"
            raise GuestMemoryError(f"{error}; {more}", error.detail) from None
        finally:
            _copy(directory / "program.stdout", stdout)
            _copy(directory / "program.stderr", stderr)
        found = outcome.read(directory)
        if program.trace is not None:
            program.trace.mkdir(parents=True, exist_ok=True)
            file = found["trace"]["file"]
            shutil.copyfile(directory / file, program.trace / file)
    code = found["program"]["exit_code"]
    if code is None:
        code = _SIGNALLED + found["program"]["signal"]
    return Ran(code, found, ended.wall_s)


def _order(program: Program, kernel: Kernel) -> dict[str, Any]:
    """``guest.json``."""
    sim.describe_disk(program.disk)
    if not program.command or not program.command[0]:
        raise InputError("no command; expected a program and its arguments behind --")
    if program.file_system is not None:
        _check_file_system(program, kernel)
    if program.trace_format not in TRACE_FORMATS:
        wrong = program.trace_format
        raise InputError(f"--trace-format: no '{wrong}'{nearest(wrong, TRACE_FORMATS)}")
    order: dict[str, Any] = {
        "disk": {
            "file": "disk.toml",
            "overrides": list(program.disk.overrides),
            "seed": program.seed,
            "data": program.data if program.data in ("memory", "none") else "data",
        },
        **scheduler.parse(program.scheduler).for_guest({}, kernel.version),
        "host_directories": _seen(),
        "trace": program.trace_format if program.trace is not None else None,
        "run": {
            "program": {
                "command": [word.replace(DEVICE_WORD, DEVICE) for word in program.command],
                "environment": {"BLKLAB_DISK": DEVICE},
                "directory": str(program.mount) if program.file_system else "scratch",
            }
        },
    }
    if program.file_system is not None:
        order["file_system"] = {"kind": program.file_system, "mountpoint": str(program.mount)}
    return order


def _check_file_system(program: Program, kernel: Kernel) -> None:
    kind = program.file_system or ""
    if kind not in FILE_SYSTEMS:
        raise InputError(f"--mkfs: no '{kind}'{nearest(kind, FILE_SYSTEMS)}")
    if program.data == "none":
        raise InputError("--data none: what is written is forgotten, and a file system needs it")
    if not program.mount.is_absolute():
        raise InputError(f"--mount: '{program.mount}' is not absolute")
    option = f"{kind.upper()}_FS"
    if config.parse((kernel.directory / "config").read_text(encoding="utf-8")).get(option) != "y":
        raise InputError(
            f"--mkfs: the kernel '{kernel.label}' has no {kind}; one that has: "
            f"blklab kernel build --config {option}=y --name {kind}"
        )
    if shutil.which(f"mkfs.{kind}", path=f"{os.environ.get('PATH', '')}:{_SBIN}") is None:
        raise RunError(f"--mkfs: no mkfs.{kind} here: apt-get install {FILE_SYSTEMS[kind]}")


def _seen() -> list[str]:
    """The current directory, if a guest's own directories would hide it."""
    here = Path.cwd()
    return [str(here)] if any(hidden in here.parents for hidden in _HIDDEN) else []


@contextlib.contextmanager
def _directory(program: Program) -> Iterator[Path]:
    """The run's directory, the one place that the guest may write to.

    A file for the disk's data gets a second name in it, so the directory lies beside the
    file: both names must be on one file system.
    """
    file = None if program.data in ("memory", "none") else Path(program.data).absolute()
    make: Callable[..., tempfile.TemporaryDirectory[str]] = tempfile.TemporaryDirectory
    with make(prefix="blklab-run-", dir=file.parent if file else None) as name:
        directory = Path(name)
        if file is not None:
            if file.exists() and not file.is_file():
                raise InputError(f"--data: {file} is no regular file")
            file.touch()
            os.link(file, directory / "data")
        yield directory


def _copy(path: Path, to: BinaryIO) -> None:
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        shutil.copyfileobj(file, to)
    to.flush()
