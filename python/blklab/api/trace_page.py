"""``blklab.trace_page``: pictures of a trace."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from blklab import _core
from blklab._core import TraceReading
from blklab.api.traces import read_trace
from blklab.base.files import check_files, write_whole
from blklab.domain import core
from blklab.errors import InputError
from blklab.report import trace as page

_SLOWEST = 4
"""I/Os of each step of time, of each process one."""
BESIDE_MAX = 3
"""More lines cannot be told apart."""


def trace_page(
    file: str | os.PathLike[str],
    page_file: str | os.PathLike[str],
    *,
    trace_format: str | None = None,
    device: str | None = None,
    keep_steps: bool = False,
    beside: Sequence[str | os.PathLike[str]] = (),
) -> TraceReading:
    """Write a page with pictures of a trace: rates, places, latencies and depth over its time; and
    for each part of the time what was served, and what the disk did instead of the slowest I/Os.

    Args:
        file, trace_format, device, keep_steps: see `read_trace`; the file is read four times.
        page_file: the page, one file that needs nothing else.
        beside: other traces of any format, drawn over the same time from their own beginnings; at
            most `BESIDE_MAX`.

    Raises:
        InputError: as of `read_trace`; or a trace has no I/O.
        RunError: the page cannot be written.
    """
    check_files(Path(page_file))
    if len(beside) > BESIDE_MAX:
        raise InputError(f"--beside: {len(beside)} traces; at most {BESIDE_MAX}")
    first = _drawn(file, trace_format, device, keep_steps)
    others = [_drawn(one, None, None, keep_steps) for one in beside]
    write_whole(Path(page_file), page.page([first, *others]))
    return first.reading


def _drawn(
    file: str | os.PathLike[str], trace_format: str | None, device: str | None, keep_steps: bool
) -> page.Drawn:
    reading = read_trace(file, trace_format=trace_format, device=device, keep_steps=keep_steps)
    if not reading.count:
        raise InputError(f"{os.fspath(file)}: has no I/O to draw")
    with core.core_types():
        over = _core.trace_over_time(
            Path(file), format=trace_format, device=device, keep_steps=keep_steps
        )
        served = None
        if reading.q2c_ns.count:
            served = _core.trace_served(
                Path(file),
                from_ns=0,
                until_ns=over.step_ns * len(over.ios),
                steps=len(over.ios),
                slowest=_SLOWEST,
                distinct=True,
                processes=[(one.pid, one.name) for one in reading.processes[: page.ROWS]],
                cgroups=[(one.number, one.path) for one in reading.cgroups[: page.ROWS]],
                format=trace_format,
                device=device,
                keep_steps=keep_steps,
            )
    return page.Drawn(Path(file).name, reading, over, served)
