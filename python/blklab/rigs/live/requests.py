"""Queue time and service time of each request of a disk during a run.

From the kernel's block events. A thread takes the pages of each CPU's buffer as they fill; the
compiled core parses them (`crates/blklab-core/src/formats/tracefs/`).
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from blklab import _core
from blklab.base.journal import Journal
from blklab.base.signals import Signals
from blklab.base.text import shown
from blklab.domain.histogram import Ints
from blklab.domain.result import Result, Series
from blklab.errors import InputError, RunError
from blklab.host.roots import HERE, Roots
from blklab.rigs.live import tracefs
from blklab.rigs.live.target import Target

_EVERY_S = 0.05
_PAGE_BYTES = 1 << 16
# An event gets its time before it is in the buffer.
_MARGIN_NS = 10_000_000


@dataclass(frozen=True)
class Following:
    """Whether requests are traced, and the reason if not."""

    instance: tracefs.Instance | None = None
    why_not: str = ""
    """Also empty if tracing is off."""

    def follower(
        self, target: Target, job: _core.FioJob | None
    ) -> tuple[Follower | None, list[str]]:
        """The tracer of one run on the `target`, or a line with the reason if there is none."""
        why = self.why_not
        if self.instance is not None and len(target.disks) > 1:
            why = f"there are several disks below ({', '.join(map(shown, target.disks))})"
        if why:
            return None, [f"requests were not traced: {why}"]
        if self.instance is None:
            return None, []
        return Follower(self.instance, target, job), []


@contextlib.contextmanager
def following(
    disks: Sequence[str], journal: Journal, signals: Signals, told: list[str]
) -> Iterator[Following]:
    """Prepares tracing of these `disks`, if possible; see :func:`tracefs.tracing`."""
    if why := tracefs.why_not():
        yield Following(None, why)
        return
    with tracefs.tracing(disks, journal, signals, told) as instance:
        try:
            _core.BlockEvents(instance.header_page, instance.formats, [], 0)
        except InputError as error:
            # A kernel with different fields in its events.
            yield Following(None, shown(str(error)))
            return
        yield Following(instance)


class Follower:
    """Traces the disk's requests from `begin` to the end of the ``with``."""

    def __init__(
        self,
        instance: tracefs.Instance,
        target: Target,
        job: _core.FioJob | None,
        roots: Roots = HERE,
    ) -> None:
        self._instance = instance
        [disk] = target.disks
        self._numbers = tracefs.numbers(disk, roots)
        # The position of a file of a file system on the disk is not known.
        first = None if target.device is None else _first_sector(target.device, disk, roots)
        self._job, self._first = (None, 0) if first is None else (job, first)
        self._events: _core.BlockEvents | None = None
        self._pipes: list[int] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="blklab-requests", daemon=True)
        self._problem: Exception | None = None
        self._lost = 0

    def __enter__(self) -> Follower:
        """Called at the start of the run."""
        instance = self._instance
        instance.write("trace", "")
        self._events = _core.BlockEvents(
            instance.header_page,
            instance.formats,
            self._numbers,
            time.monotonic_ns(),
            self._job,
            self._first,
        )
        try:
            for path in sorted(instance.path.glob("per_cpu/cpu*/trace_pipe_raw")):
                self._pipes.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            instance.write("tracing_on", "1")
        except OSError as error:
            self._close()
            raise RunError(f"{path}: {error.strerror}") from error
        except RunError:
            self._close()
            raise
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._instance.write("tracing_on", "0")
            self._lost = self._instance.lost()
        except (OSError, RunError) as error:
            self._problem = error
        finally:
            self._ended.set()
            self._thread.join()
            self._close()

    def _close(self) -> None:
        """Closes all files: an instance with an open file cannot be removed."""
        while self._pipes:
            os.close(self._pipes.pop())

    def _follow(self) -> None:
        try:
            while not self._ended.wait(_EVERY_S):
                self._take()
            self._take()
        except Exception as error:
            self._problem = error

    def _take(self) -> None:
        if self._events is None:
            return
        before_ns = time.monotonic_ns()
        for pipe in self._pipes:
            with contextlib.suppress(BlockingIOError):
                while page := os.read(pipe, _PAGE_BYTES):
                    self._events.take(page)
        self._events.advance(before_ns - _MARGIN_NS)

    def added_to(self, result: Result) -> tuple[Result, list[str]]:
        """The result with the figures of the requests, and a line for each missing part."""
        if self._events is None:
            return result, []
        if self._problem is not None:
            return result, [f"requests were not traced: {shown(str(self._problem))}"]
        run, gaps = self._events.finish()
        seen = Result.from_run(run)
        notes = []
        if gaps or self._lost:
            notes.append(
                "the buffer for events of the block layer overflowed: some requests were not traced"
            )
        disk = replace(
            result.disk,
            in_flight_ns=seen.disk.in_flight_ns,
            service_ns=seen.disk.service_ns,
            depth_max=seen.disk.depth_max,
        )
        return replace(
            result,
            disk=disk,
            series=_joined(result.series, seen.series),
            overview=seen.overview,
            detail=seen.detail,
            detail_left_out=seen.detail_left_out,
        ), notes


def _joined(counters: Series, events: Series) -> Series:
    """The series of the counters, with the queue from the events."""
    rows = len(counters.in_flight_milli)
    if not len(events.in_flight_milli):
        return counters
    return replace(
        counters,
        waiting_milli=_spread(events.waiting_milli, events.interval_ns, counters.interval_ns, rows),
        in_flight_milli=_spread(
            events.in_flight_milli, events.interval_ns, counters.interval_ns, rows
        ),
    )


def _spread(means: Ints, width_ns: int, to_ns: int, rows: int) -> Ints:
    """The means over intervals of another width."""
    area = np.concatenate([[0.0], np.cumsum(means * float(width_ns))])
    ends = np.arange(rows + 1) * float(to_ns)
    at = np.interp(ends, np.arange(len(area)) * float(width_ns), area)
    spread: Ints = np.round(np.diff(at) / to_ns).astype(np.int64)
    return spread


def _first_sector(device: str, disk: str, roots: Roots) -> int | None:
    """The device's start on the disk; None if it is neither the disk nor its partition."""
    if device == disk:
        return 0
    try:
        return int((roots.sys / "block" / disk / device / "start").read_text())
    except (OSError, ValueError):
        return None
