"""Recording the I/O of this machine's disks, from the kernel's block events.

A thread takes what each CPU's buffer has, ten times a second, and writes it to the file once a
second: after ``kill -9`` the file has all but the last second, and the next start of blklab removes
the instance of tracefs.
"""

from __future__ import annotations

import contextlib
import os
import platform
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab import _core
from blklab.base.files import why
from blklab.base.journal import Journal
from blklab.base.signals import Signals
from blklab.errors import RunError
from blklab.host.roots import HERE, Roots
from blklab.rigs.live import tracefs
from blklab.rigs.live.members import Members

_EVERY_S = 0.1
_FLUSH_S = 1.0
# An event gets its time before it is in the buffer.
_MARGIN_NS = 10_000_000


@dataclass(frozen=True)
class RecordedDisk:
    """A disk that is recorded."""

    name: str
    """The kernel's name, ``sda``."""
    number: str
    """``8:0``, its name in the recording."""
    sectors: int
    """Its size."""
    scheduler: str = ""
    """Its active scheduler; empty if that is not known."""


class Recording:
    """A recording in progress."""

    def __init__(
        self, instance: tracefs.Instance, disks: Sequence[RecordedDisk], out: Path, roots: Roots
    ) -> None:
        self._instance = instance
        self._out = out
        numbers = [(disk.number, tracefs.numbers(disk.name, roots)) for disk in disks]
        # A recording has one size: that of the only disk.
        sectors = disks[0].sectors if len(disks) == 1 else None
        schedulers = {disk.scheduler for disk in disks}
        self._members = Members(roots)
        try:
            self._recorder = _core.MachineRecorder(
                instance.header_page,
                instance.formats,
                numbers,
                out,
                f"{platform.system()} {platform.release()}",
                sectors,
                (schedulers.pop() or None) if len(schedulers) == 1 else None,
                time.monotonic_ns(),
                time.time_ns(),
            )
        except OSError as error:
            raise RunError(f"{out}: {why(error)}") from error
        self._pipes: list[tuple[int, int]] = []
        self._stop = threading.Event()
        self.failed = threading.Event()
        """The recording cannot go on; `finish` says why."""
        self._problem: OSError | None = None
        self._thread = threading.Thread(target=self._follow, name="blklab-record", daemon=True)
        self.ios = 0
        """The number of recorded I/Os, at the end."""
        self.lost = 0
        """Lost events, at the end."""

    def begin(self) -> None:
        """From now on. RunError if the kernel refuses it."""
        try:
            for path in self._instance.path.glob("per_cpu/cpu*"):
                pipe = os.open(path / "trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                self._pipes.append((int(path.name.removeprefix("cpu")), pipe))
            self._instance.write("tracing_on", "1")
        except (OSError, RunError) as error:
            self.close()
            if isinstance(error, OSError):
                raise RunError(f"{self._instance.path}: {why(error)}") from error
            raise
        self._thread.start()

    def finish(self) -> None:
        """Ends it. RunError if it could not be written; the file then has what was written."""
        try:
            self._instance.write("tracing_on", "0")
        finally:
            self._stop.set()
            self._thread.join()
        problem = self._problem
        if problem is None:
            try:
                self._drain()
                self.lost = max(self._recorder.lost(), self._instance.lost())
                self.ios = self._recorder.finish()
            except OSError as error:
                problem = error
        if problem is not None:
            raise RunError(
                f"{self._out}: {why(problem)}; the recording has what was written before"
            ) from problem

    def close(self) -> None:
        """Closes all files: an instance with an open file cannot be removed."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        while self._pipes:
            os.close(self._pipes.pop()[1])
        self._recorder.close()

    def _drain(self) -> None:
        """Takes what the buffers have, and looks up the cgroups of the threads in it while they
        live."""
        self._recorder.drain(self._pipes)
        for one in self._members.look_up(self._recorder.queueing()):
            self._recorder.set_cgroup(one.thread, one.number, one.path)

    def _follow(self) -> None:
        flushed_s = time.monotonic()
        try:
            while not self._stop.wait(_EVERY_S):
                before_ns = time.monotonic_ns()
                self._drain()
                now_s = time.monotonic()
                is_due = now_s - flushed_s >= _FLUSH_S
                self._recorder.advance(before_ns - _MARGIN_NS, is_due)
                if is_due:
                    flushed_s = now_s
        except OSError as error:
            self._problem = error
            self.failed.set()


def why_not(roots: Roots = HERE) -> str:
    """The reason if this machine's I/O cannot be recorded here; else empty."""
    needed = [name for name, is_needed in _core.MachineRecorder.tracepoints() if is_needed]
    return tracefs.why_not(roots, needed)


@contextlib.contextmanager
def recording(
    disks: Sequence[RecordedDisk],
    out: Path,
    journal: Journal,
    signals: Signals,
    told: list[str],
    roots: Roots = HERE,
) -> Iterator[Recording]:
    """A recording of `disks` to `out`, a new file, which `Recording.begin` begins; the end of the
    ``with`` removes all but the file. RunError in one line if the kernel refuses a step."""
    if reason := why_not(roots):
        raise RunError(f"this machine's I/O cannot be recorded: {reason}")
    names = [name for name, _ in _core.MachineRecorder.tracepoints() if tracefs.has(name, roots)]
    with tracefs.tracing(
        [disk.name for disk in disks], journal, signals, told, roots, names
    ) as instance:
        made = Recording(instance, disks, out, roots)
        try:
            yield made
        finally:
            made.close()
