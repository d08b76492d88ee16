"""``blklab.read_trace``, ``blklab.import_trace``: traces of I/O, of other programs and our own.

A trace is read once, in bounded memory. A recording of blklab is a stream of Arrow;
`recording_columns` has its columns.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from blklab import _core
from blklab._core import RecordingColumn, TraceFinding, TraceFormat, TraceReading
from blklab.base.files import new_file
from blklab.domain import core
from blklab.errors import InputError, unknown

REFUSED = ("empty", "two-levels")
"""Findings with which a trace is not imported: a recording would be empty, or have I/Os twice."""
SECTOR_BYTES = 512


@dataclass(frozen=True)
class ImportedTrace:
    """A recording that was made from a trace."""

    path: Path
    """The recording."""
    recording_bytes: int
    """Its size."""
    reading: TraceReading
    """What was read."""


def trace_formats() -> list[TraceFormat]:
    """The formats that `read_trace` knows, by name."""
    return core.trace_formats()


def recording_columns() -> list[RecordingColumn]:
    """The columns of a recording."""
    return _core.recording_columns()


def read_trace(
    file: str | os.PathLike[str],
    *,
    trace_format: str | None = None,
    device: str | None = None,
    keep_steps: bool = False,
    capacity_bytes: int | None = None,
) -> TraceReading:
    """Read a trace: its figures, and what is wrong with it.

    Args:
        file: the trace; ``-`` for standard input. Of the files of blktrace's CPUs, any one.
        trace_format: a name of `trace_formats`; detected by default.
        device: only I/Os of this device, such as ``8:0``.
        keep_steps: I/Os of one step of a coarse clock keep its time; else they are spread over it.
        capacity_bytes: the size of the disk that the trace is meant for.

    Raises:
        InputError: there is no such file, the format is unknown, or a line or record is wrong.
    """
    return _read(file, trace_format, device, keep_steps, capacity_bytes, None)


def import_trace(
    file: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    trace_format: str | None = None,
    device: str | None = None,
    keep_steps: bool = False,
    capacity_bytes: int | None = None,
) -> ImportedTrace:
    """Read a trace, and write it as a recording; `out` must not exist.

    Args:
        file, trace_format, device, keep_steps, capacity_bytes: see `read_trace`.
        out: the recording's file.

    Raises:
        InputError: as of `read_trace`; `out` exists; or the trace has no I/O, or I/Os twice.
        RunError: `out` cannot be written.
    """
    return _imported(file, Path(out), trace_format, device, keep_steps, capacity_bytes)


def import_of_guest(file: Path, out: Path, capacity_bytes: int) -> ImportedTrace:
    """The same for the records of blktrace of a guest, which lack no event; of an I/O without a
    plug, the recording says so."""
    return _imported(file, out, None, None, False, capacity_bytes, plugs=True)


def _imported(
    file: str | os.PathLike[str],
    path: Path,
    trace_format: str | None,
    device: str | None,
    keep_steps: bool,
    capacity_bytes: int | None,
    *,
    plugs: bool = False,
) -> ImportedTrace:
    with new_file(path) as part:
        reading = _read(file, trace_format, device, keep_steps, capacity_bytes, part, plugs=plugs)
        refused = [one for one in reading.findings if one.kind in REFUSED]
        if refused:
            raise InputError(f"{os.fspath(file)}: {finding_text(refused[0])}")
        size = part.stat().st_size
    return ImportedTrace(path, size, reading)


def finding_text(finding: TraceFinding) -> str:
    """Its line: what was found where, what it means."""
    found = f" ({finding.found})" if finding.found else ""
    return f"{finding.text}{found}"


def _read(
    file: str | os.PathLike[str],
    trace_format: str | None,
    device: str | None,
    keep_steps: bool,
    capacity_bytes: int | None,
    out: Path | None,
    *,
    plugs: bool = False,
) -> TraceReading:
    if capacity_bytes is not None and capacity_bytes < SECTOR_BYTES:
        raise InputError(f"capacity: {capacity_bytes} bytes; expected a sector of 512 at least")
    with core.core_types():
        reading = _core.read_trace(
            Path(file),
            format=trace_format,
            device=device,
            keep_steps=keep_steps,
            capacity_sectors=None if capacity_bytes is None else capacity_bytes // SECTOR_BYTES,
            plugs=plugs,
            out=out,
        )
    if device is not None and not reading.count:
        names = [name for name, _ in reading.devices]
        raise unknown(f"{os.fspath(file)}: no I/O of device '{device}'", device, names)
    return reading
