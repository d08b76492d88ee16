"""Starts a command on a cold cache repeatedly, while other threads read and write.

The user's experience on a desktop: some hundred small synchronous reads, beside streams that can
use the whole disk. The command is a private Python: the interpreter and its imported modules are
copied into the directory, and dropped from the page cache before each start (`posix_fadvise`);
system libraries are not. Readers and writers process their own files in order, and their data do
not stay in the page cache. The figure is the mean time from start to end of the command.
"""

from __future__ import annotations

import compileall
import contextlib
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from blklab.errors import RunError
from blklab.programs.place import Place, last_line
from blklab.programs.program import Outcome, Parameter, Program, Values

_IMPORTED = ("argparse", "asyncio", "csv", "email.message", "html.parser", "http.client", "logging",
             "pathlib", "tempfile", "unittest", "urllib.request", "xml.dom.minidom")  # fmt: skip
_FOLDERS = ("asyncio", "collections", "concurrent", "email", "html", "http", "importlib", "json",
            "logging", "re", "unittest", "urllib", "xml")  # fmt: skip
_COPY_BYTES = 64 << 20
"""Interpreter and modules have some 25 MiB."""
_BLOCK_BYTES = 1 << 20
_FLUSH_BLOCKS = 16


def begin(values: Values, place: Place) -> Callable[[], Outcome]:
    """Copy the command; create the readers' files."""
    program, library = _copied(place.directory)
    command = _command(program, library)
    place.run(command)
    streams = [place.directory / f"r{number}" for number in range(values["readers"])]
    streams += [place.directory / f"w{number}" for number in range(values["writers"])]
    for path in streams:
        with path.open("wb") as file:
            for _ in range(values["size_mib"]):
                file.write(os.urandom(_BLOCK_BYTES))
            os.fsync(file.fileno())
    forgotten = [program, *(path for path in library.rglob("*") if path.is_file())]
    return lambda: _measure(values, command, streams, forgotten)


def _measure(
    values: Values, command: Sequence[str], streams: Sequence[Path], forgotten: Sequence[Path]
) -> Outcome:
    took_ns = []
    with _streaming(streams, values["readers"]):
        for _ in range(values["starts"]):
            for path in forgotten:
                _forget(path)
            start_ns = time.perf_counter_ns()
            done = subprocess.run(
                command, check=False, capture_output=True, encoding="utf-8", errors="replace"
            )
            took_ns.append(time.perf_counter_ns() - start_ns)
            if done.returncode != 0:
                raise RunError(f"the command: {last_line(done.stderr, done.returncode)}")
    return Outcome(sum(took_ns) / len(took_ns) / 1e9, tuple(took_ns))


@contextlib.contextmanager
def _streaming(streams: Sequence[Path], readers: int) -> Iterator[None]:
    """Reads the first of these files meanwhile, and writes the others. OSError if one fails."""
    ended = threading.Event()
    with ThreadPoolExecutor(len(streams) or 1) as threads:
        running = [
            threads.submit(_stream, path, ended, writes=number >= readers)
            for number, path in enumerate(streams)
        ]
        try:
            yield
        finally:
            ended.set()
    for stream in running:
        stream.result()


def _stream(path: Path, ended: threading.Event, *, writes: bool) -> None:
    """Processes the file from beginning to end, repeatedly."""
    block = os.urandom(_BLOCK_BYTES)
    with path.open("r+b", buffering=0) as file:
        handle, size = file.fileno(), path.stat().st_size
        while not ended.is_set():
            for number, start in enumerate(range(0, size, _BLOCK_BYTES)):
                if writes:
                    os.pwrite(handle, block, start)
                else:
                    os.pread(handle, _BLOCK_BYTES, start)
                if number % _FLUSH_BLOCKS == _FLUSH_BLOCKS - 1 or start + _BLOCK_BYTES >= size:
                    if writes:
                        os.fdatasync(handle)
                    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
                if ended.is_set():
                    return


def _forget(path: Path) -> None:
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _copied(directory: Path) -> tuple[Path, Path]:
    """The interpreter and the modules, compiled and flushed to the disk."""
    program, library = directory / "python", directory / "lib"
    shutil.copy(Path(sys.executable).resolve(), program)
    library.mkdir()
    origin = Path(os.__file__).parent
    for path in origin.glob("*.py"):
        shutil.copy(path, library)
    for name in _FOLDERS:
        if (origin / name).is_dir():
            shutil.copytree(
                origin / name, library / name, ignore=shutil.ignore_patterns("__pycache__", "test*")
            )
    compileall.compile_dir(library, quiet=2, workers=1)
    os.sync()
    return program, library


def _command(program: Path, library: Path) -> list[str]:
    """Modules in C are not copied; they are loaded from their own directories."""
    places = [str(library), *(path for path in sys.path if path.endswith("lib-dynload"))]
    code = f"import sys; sys.path[:] = {places!r}; import {', '.join(_IMPORTED)}"
    return [str(program), "-I", "-S", "-B", "-c", code]


PROGRAM = Program(
    name="startup",
    summary="start-up time of a command on a cold cache while others read or write",
    unit="s",
    higher_is_better=False,
    operation="a start",
    needs={},
    parameters=(
        Parameter("starts", 20, 1, 100_000, "", "one after the other"),
        Parameter("readers", 2, 0, 64, "", "streams that read in parallel"),
        Parameter("writers", 1, 0, 64, "", "streams that write in parallel"),
        Parameter("size_mib", 256, 1, 1 << 20, "MiB", "of each stream's file"),
    ),
    begin=begin,
    room_bytes=lambda values: (
        (values["readers"] + values["writers"]) * values["size_mib"] * _BLOCK_BYTES + _COPY_BYTES
    ),
)
