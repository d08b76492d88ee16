"""File operations over NFS: many clients create, write, stat, read and remove files.

As in mdtest, all clients finish one phase before the next begins. A client is a thread with a
directory of its own on one NFS mount (version 4.1). It closes each file that it has created,
written or read: the client's kernel then flushes what was written, and the server commits it.
Before each phase all is written back, and all caches of client and server are emptied: stat and
read ask the server, which asks its disk. The figure is the operations per second of all phases
together, without the pauses between them; `phases.txt` has those of each phase.

Server and client are in one guest of the kernel rig. What a real network file system has besides:
a network, CPU work of the server, and clients that are machines of their own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from blklab.errors import RunError
from blklab.programs.place import Place, write_all
from blklab.programs.program import Outcome, Parameter, Program, Values
from blklab.programs.side_by_side import side_by_side

_DROP_CACHES = Path("/proc/sys/vm/drop_caches")
_EVERYTHING = "3"
"""Pages, and what the kernel knows of files and names."""
_CLIENTS = Path("/proc/fs/nfsd/clients")
"""The server's clients; `states` has what each has opened."""
_DELEGATION = "type: deleg,"
_LOOK_S = 0.001
_LOOKS_MAX = 10_000
_KIB = 1024
_FILE_BYTES = 16 * _KIB
"""estimate: an inode, a name, a part of a block, and the kernel's memory for them."""


def begin(values: Values, place: Place) -> Callable[[], Outcome]:
    """Create the clients' directories."""
    directories = [place.directory / f"client{number}" for number in range(values["clients"])]
    for directory in directories:
        directory.mkdir()
    data = memoryview(os.urandom(values["size_kib"] * _KIB))
    return lambda: _measure(directories, values["files"], data)


def _measure(directories: list[Path], files: int, data: memoryview) -> Outcome:
    phases: dict[str, Callable[[Path], None]] = {
        "create": _create,
        "write": lambda path: _write(path, data),
        "stat": _stat,
        "read": lambda path: _read(path, len(data)),
        "remove": os.unlink,
    }
    lines, all_ns, all_s = [], list[int](), 0.0
    for name, operation in phases.items():
        _forget_everything()
        seconds, took_ns = _phase(directories, files, operation)
        lines.append(_line(name, seconds, took_ns))
        all_ns += took_ns
        all_s += seconds
    return Outcome(len(all_ns) / all_s, tuple(all_ns), {"phases.txt": "".join(lines)})


def _phase(
    directories: list[Path], files: int, operation: Callable[[Path], None]
) -> tuple[float, tuple[int, ...]]:
    """The seconds of the phase, and the nanoseconds of each operation."""

    def client(number: int, took_ns: list[int]) -> None:
        for path in (directories[number] / str(file) for file in range(files)):
            start_ns = time.perf_counter_ns()
            operation(path)
            took_ns.append(time.perf_counter_ns() - start_ns)

    return side_by_side(client, len(directories))


def _line(name: str, seconds: float, took_ns: tuple[int, ...]) -> str:
    mean_ms = sum(took_ns) / len(took_ns) / 1e6
    return (
        f"{name}: {len(took_ns)} operations in {seconds:.6f} s, {len(took_ns) / seconds:.2f} a "
        f"second, {mean_ms:.3f} ms each, at most {max(took_ns) / 1e6:.3f}\n"
    )


def _forget_everything() -> None:
    # What the client has for a file keeps the file open on the server, so that its caches keep it.
    for _ in range(2):
        os.sync()
        _DROP_CACHES.write_text(_EVERYTHING, encoding="ascii")
        _wait_for_delegations()


def _wait_for_delegations() -> None:
    """Until the client has returned all delegations, which it does after it has forgotten their
    files. RunError if it keeps some."""
    for _ in range(_LOOKS_MAX):
        states = [path.read_text(encoding="utf-8") for path in _CLIENTS.glob("*/states")]
        kept = sum(text.count(_DELEGATION) for text in states)
        if not kept:
            return
        time.sleep(_LOOK_S)
    raise RunError(f"the NFS client has not returned {kept} of its delegations")


def _create(path: Path) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _write(path: Path, data: memoryview) -> None:
    handle = os.open(path, os.O_WRONLY)
    try:
        write_all(handle, data)
    finally:
        # The client flushes here, and reports what failed.
        os.close(handle)


def _stat(path: Path) -> None:
    path.stat()


def _read(path: Path, size: int) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        while size > 0 and (found := os.read(handle, size)):
            size -= len(found)
    finally:
        os.close(handle)
    if size:
        raise RunError(f"{path.name}: {size} bytes are missing")


PROGRAM = Program(
    name="nfs-files",
    summary="files are created, written, read and removed over NFS by many clients",
    unit="ops/s",
    higher_is_better=True,
    operation="a file operation",
    needs={},
    parameters=(
        Parameter("clients", 8, 1, 256, "", "in parallel, a thread and a directory each"),
        Parameter("files", 50, 1, 100_000, "", "of each client"),
        Parameter("size_kib", 16, 1, 65_536, "KiB", "of each file"),
        Parameter("nfsd_threads", 8, 1, 256, "", "of the server"),
    ),
    begin=begin,
    # The client and the server each have the pages of a file.
    room_bytes=lambda values: (
        values["clients"] * values["files"] * (2 * values["size_kib"] * _KIB + _FILE_BYTES)
    ),
    nfsd_threads=lambda values: values["nfsd_threads"],
    rigs=("kernel",),
)
