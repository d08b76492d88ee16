"""``blklab.served_trace`` and ``blklab.trace_perfetto``: a part of a trace, I/O by I/O."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from blklab import _core
from blklab._core import TraceReading, TraceServed
from blklab.api.traces import read_trace
from blklab.base.files import check_files, write_together
from blklab.domain import core, recordings
from blklab.errors import InputError
from blklab.timelines import recorded, trace

SLOWEST = 3
"""The slowest I/Os that are shown by default."""
SLOWEST_MAX = 1000
PERFETTO_MAX = 100_000
"""I/Os in a trace for Perfetto by default."""


@dataclass(frozen=True)
class PerfettoTrace:
    """A trace that was written for Perfetto."""

    path: Path
    ios: int
    """I/Os in it."""
    left_out: int
    """I/Os of the window that are not in it: those that do not complete, or are too many."""


def served_trace(
    file: str | os.PathLike[str],
    *,
    from_ns: int = 0,
    until_ns: int = 2**63 - 1,
    slowest: int = SLOWEST,
    distinct: bool = False,
    trace_format: str | None = None,
    device: str | None = None,
    keep_steps: bool = False,
) -> TraceServed:
    """What was served in a part of a trace: I/Os, bytes, waits and times at the disk of each
    process and cgroup; and its slowest I/Os, with what the disk did meanwhile.

    An I/O waits from its queue time to its issue. Those that are issued in the window count as
    served there, also if they came before; the slowest are of those that came in the window.

    Args:
        file: as of `read_trace`; it is read twice.
        from_ns: the begin of the part,
        until_ns: and its end.
        slowest: this many of the slowest I/Os are kept, those for which processes wait (reads,
            synchronous writes, flushes) before others,
        distinct: of each process only its slowest, at most `SLOWEST_MAX`.
        trace_format, device, keep_steps: as of `read_trace`.

    Raises:
        InputError: as of `read_trace`; the window or `slowest` is wrong; nothing comes and nothing
            is served in the window.
    """
    if not 0 <= from_ns < until_ns:
        raise InputError(f"from {from_ns} ns until {until_ns} ns: expected a window with a length")
    if not 0 <= slowest <= SLOWEST_MAX:
        raise InputError(f"slowest: {slowest}; expected 0 to {SLOWEST_MAX}")
    path = Path(file)
    recordings.check_again(path)
    with core.core_types():
        found = _core.trace_served(
            path,
            from_ns=from_ns,
            until_ns=until_ns,
            slowest=slowest,
            distinct=distinct,
            listed=True,
            format=trace_format,
            device=device,
            keep_steps=keep_steps,
        )
    if not found.of_processes:
        reading = read_trace(path, trace_format=trace_format, device=device, keep_steps=keep_steps)
        raise InputError(
            f"{os.fspath(file)}: no I/O from {from_ns / 1e9:g} s on until then; the trace ends at "
            f"{reading.end_ns / 1e9:g} s"
        )
    return found


def trace_perfetto(
    file: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    from_ns: int = 0,
    until_ns: int = 2**63 - 1,
    most: int = PERFETTO_MAX,
    reading: TraceReading | None = None,
    trace_format: str | None = None,
    device: str | None = None,
    keep_steps: bool = False,
) -> PerfettoTrace:
    """Write a part of a trace for https://ui.perfetto.dev: a process for each recorded one, its
    I/Os as slices of the time to the insert, in the scheduler and at the disk, and the depths as
    counters.

    Args:
        file: as of `read_trace`.
        out: the file to write; one that exists is replaced.
        from_ns: the begin of the part,
        until_ns: and its end.
        most: the first so many I/Os are written.
        reading: the figures of `file`, if they are known.
        trace_format, device, keep_steps: as of `read_trace`.

    Raises:
        InputError: as of `read_trace`; no I/O of the window completes.
        RunError: `out` cannot be written.
    """
    path = Path(file)
    recordings.check_again(path)
    check_files(Path(out))
    if reading is None:
        reading = read_trace(path, trace_format=trace_format, device=device, keep_steps=keep_steps)
    with core.core_types():
        ios = _core.trace_ios(
            path,
            from_ns=from_ns,
            until_ns=until_ns,
            most=most,
            format=trace_format,
            device=device,
            keep_steps=keep_steps,
        )
    timeline = recorded.build(
        ios,
        name=path.name,
        scheduler=reading.scheduler or "",
        from_ns=from_ns,
        until_ns=until_ns,
        span_ns=reading.end_ns,
    )
    if not timeline.requests:
        raise InputError(f"{os.fspath(file)}: no I/O of the window completes")
    write_together({Path(out): trace.perfetto(timeline)})
    return PerfettoTrace(Path(out), len(timeline.requests), timeline.requests_left_out)
