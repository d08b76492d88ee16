"""``blklab.trace_page``: pictures of a trace."""

from __future__ import annotations

import os
from pathlib import Path

from blklab import _core
from blklab._core import TraceReading
from blklab.api.traces import read_trace
from blklab.base.files import check_files, write_whole
from blklab.domain import core
from blklab.errors import InputError
from blklab.report import trace as page


def trace_page(
    file: str | os.PathLike[str],
    page_file: str | os.PathLike[str],
    *,
    trace_format: str | None = None,
    device: str | None = None,
    keep_steps: bool = False,
) -> TraceReading:
    """Write a page with pictures of a trace: rates, places, latencies and depth over its time.

    Args:
        file, trace_format, device, keep_steps: see `read_trace`; the file is read twice.
        page_file: the page, one file that needs nothing else.

    Raises:
        InputError: as of `read_trace`; or the trace has no I/O.
        RunError: the page cannot be written.
    """
    check_files(Path(page_file))
    reading = read_trace(file, trace_format=trace_format, device=device, keep_steps=keep_steps)
    if not reading.count:
        raise InputError(f"{os.fspath(file)}: has no I/O to draw")
    with core.core_types():
        over = _core.trace_over_time(
            Path(file), format=trace_format, device=device, keep_steps=keep_steps
        )
    write_whole(Path(page_file), page.page(Path(file).name, reading, over))
    return reading
