"""``blklab.cut_trace``, ``scale_trace``, ``merge_traces``, ``anonymise_trace``: new recordings made
of traces.

Each writes a recording, and returns the figures of before and after.
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab import _core
from blklab._core import TraceReading
from blklab.api.traces import SECTOR_BYTES, read_trace
from blklab.api.whatif import Load, recording_entry, replays
from blklab.base.files import new_file
from blklab.domain import core, defaults, recordings, specs
from blklab.domain.recordings import Fit, Way
from blklab.errors import InputError
from blklab.rigs import find_disk
from blklab.rigs.sim import SimRig

STRETCH_MAX = 1_000_000.0
_MIB_SECTORS = 2048


@dataclass(frozen=True)
class EditedTrace:
    """A recording that was made of one or several traces."""

    path: Path
    """The recording."""
    recording_bytes: int
    """Its size."""
    before: tuple[TraceReading, ...]
    """The traces, as they were read."""
    after: TraceReading
    """The recording."""


@dataclass(frozen=True)
class Fidelity:
    """A replay of a changed trace relative to one of the trace itself."""

    scheduler: str
    """Its label."""
    bytes_per_s: float | None
    """Ratio of the rates; None if nothing was moved."""
    latency: float | None
    """Ratio of the 99th percentiles of latency, of `Replayed.latency_ns`; None without one."""


def cut_trace(
    file: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    from_ns: int = 0,
    until_ns: int | None = None,
    processes: Sequence[str] = (),
    cgroups: Sequence[str] = (),
    operations: Sequence[str] = (),
    place_bytes: tuple[int, int] | None = None,
    size_bytes: tuple[int, int] | None = None,
    trace_format: str | None = None,
    device: str | None = None,
) -> EditedTrace:
    """Write a part of a trace as a recording; an I/O is kept if all conditions hold.

    Args:
        file: as of `read_trace`.
        out: the recording; must not exist. Its times count from `from_ns`.
        from_ns: I/Os that were queued from here on,
        until_ns: and before this.
        processes: names or numbers.
        cgroups: paths, each with all cgroups below it, or numbers; I/O whose cgroup is not known is
            left out.
        operations: such as ``read``, ``write``, ``flush``.
        place_bytes: I/Os that lie there, from the first byte to before the second.
        size_bytes: the least and the largest size.
        trace_format: as of `read_trace`.
        device: as of `read_trace`.

    Raises:
        InputError: `file` or an argument is wrong, `out` exists, or no I/O is left.
        RunError: `out` cannot be written.
    """
    sectors = lengths = None
    if place_bytes is not None:
        first, end = place_bytes
        if not 0 <= first < end:
            raise InputError(
                f"place: found {first} to {end} bytes; expected a range that is not empty"
            )
        sectors = (-(-first // SECTOR_BYTES), end // SECTOR_BYTES)
    if size_bytes is not None:
        least, most = size_bytes
        if not 0 <= least <= most:
            raise InputError(
                f"size: found {least} to {most} bytes; expected a range that is not empty"
            )
        lengths = (
            min(-(-least // SECTOR_BYTES), 2**32 - 1),
            min(most // SECTOR_BYTES, 2**32 - 1),
        )
    if until_ns is not None and until_ns <= from_ns:
        raise InputError(f"until: {until_ns} ns; expected a time after from, {from_ns} ns")
    with core.core_types():
        edit = _core.TraceEdit(
            from_ns=from_ns,
            until_ns=until_ns,
            processes=list(processes),
            cgroups=list(cgroups),
            operations=list(operations),
            sectors=sectors,
            lengths=lengths,
        )
    return _edited([(Path(file), edit)], out, trace_format, device)


def scale_trace(
    file: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    stretch: float = 1.0,
    capacity_bytes: int | None = None,
    trace_format: str | None = None,
    device: str | None = None,
) -> EditedTrace:
    """Write a trace with other times or places as a recording.

    Args:
        file: as of `read_trace`.
        out: the recording; must not exist.
        stretch: the times between arrivals are multiplied by this: 0.5 is twice as fast. Latencies
            stay as they were recorded.
        capacity_bytes: places are scaled to a disk of this size. Areas of 16 MiB move as a whole,
            so that only seeks change.
        trace_format: as of `read_trace`.
        device: as of `read_trace`.

    Raises:
        InputError: `file` or an argument is wrong, or `out` exists.
        RunError: `out` cannot be written.
    """
    if not (math.isfinite(stretch) and 0 < stretch <= STRETCH_MAX):
        raise InputError(
            f"stretch: {stretch}; expected a number above 0, at most {STRETCH_MAX:,.0f}"
        )
    if capacity_bytes is not None and capacity_bytes < SECTOR_BYTES:
        raise InputError(f"capacity: {capacity_bytes} bytes; expected a sector of 512 at least")
    before = _read_first(file, trace_format, device)
    scale = None
    if capacity_bytes is not None:
        scale = (max(1, _sectors(before)), capacity_bytes // SECTOR_BYTES)
    edit = _core.TraceEdit(stretch=stretch, scale=scale)
    return _edited([(Path(file), edit)], out, trace_format, device, [before])


def merge_traces(
    files: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    apart: bool = False,
    trace_format: str | None = None,
    device: str | None = None,
) -> EditedTrace:
    """Write several traces, which begin at the same time, as a recording of one disk.

    Args:
        files: two or more, as of `read_trace`.
        out: the recording; must not exist. Processes of the second file have numbers from
            4,194,304 on, those of the third from 8,388,608 on.
        apart: each trace has an area of its own, one behind the other; else all have their places.
        trace_format: as of `read_trace`.
        device: as of `read_trace`; of each file.

    Raises:
        InputError: a file is wrong, has several devices, or was recorded at another level; `out`
            exists.
        RunError: `out` cannot be written.
    """
    if len(files) <= 1:
        raise InputError(f"{len(files)} traces; expected two at least")
    before = []
    edits = []
    shift = 0
    for file in files:
        reading = _read_first(file, trace_format, device)
        if len(reading.devices) > 1:
            names = ", ".join(name for name, _ in reading.devices[:8])
            raise InputError(f"{os.fspath(file)}: I/O of several devices; choose one ({names})")
        before.append(reading)
        edits.append((Path(file), _core.TraceEdit(shift=shift)))
        if apart:
            shift += -(-_sectors(reading) // _MIB_SECTORS) * _MIB_SECTORS
    return _edited(edits, out, trace_format, device, before)


def anonymise_trace(
    file: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    seed: int | None = None,
    trace_format: str | None = None,
    device: str | None = None,
) -> EditedTrace:
    """Write a trace without names, numbers and places as a recording.

    Names of processes and devices, paths of cgroups, and numbers of processes and cgroups are
    replaced by their order of appearance; the machine and the date are dropped. Areas of 64 MiB
    change places within groups of 4 GiB. Times, sizes, operations, priorities, CPUs and order stay.

    Args:
        file: as of `read_trace`.
        out: the recording; must not exist.
        seed: of the areas' order. It is a secret; by default it is drawn and forgotten.
        trace_format: as of `read_trace`.
        device: as of `read_trace`.

    Raises:
        InputError: `file` is wrong, or `out` exists.
        RunError: `out` cannot be written.
    """
    before = _read_first(file, trace_format, device)
    drawn = secrets.randbits(64) if seed is None else seed
    edit = _core.TraceEdit(secret=(drawn, _sectors(before)))
    return _edited([(Path(file), edit)], out, trace_format, device, [before])


def trace_fidelity(
    file: str | os.PathLike[str],
    changed: str | os.PathLike[str],
    *,
    disk: str | os.PathLike[str],
    fit: Fit = "refuse",
    trace_format: str | None = None,
    device: str | None = None,
) -> list[Fidelity]:
    """What a change of a trace costs: both are replayed under Linux's own schedulers, as inferred,
    or at the recorded times if there are no completions.

    Args:
        file: the trace, as of `read_trace`.
        changed: a recording that was made of it.
        disk: a disk model, as of `simulate`.
        fit: a key of `FITS`.
        trace_format: as of `read_trace`; of `file`.
        device: as of `read_trace`; of `file`.

    Raises:
        InputError: a file or a name is wrong, or a trace does not fit the disk.
        RunError: a run cannot go on.
    """
    rig = SimRig()
    model = find_disk(rig, disk)
    entries = (
        recording_entry(file, fit=fit, trace_format=trace_format, device=device),
        recording_entry(changed, fit=fit),
    )
    # Without completions there is nothing to infer from.
    completed = rig.recordings.of(recordings.chosen(entries[0])).completed
    way: Way = "inferred" if completed else "open"
    schedulers = [specs.scheduler(name) for name in defaults.LINUX]
    loads = [Load(entry, model, one, way) for one in schedulers for entry in entries]
    rows = replays(loads, rig, seed=1, host=specs.host(["guest"]))
    found = []
    for before, after in zip(rows[::2], rows[1::2], strict=True):
        rate = _ratio(after.bytes_per_s, before.bytes_per_s)
        found.append(Fidelity(after.scheduler, rate, _ratio(after.latency_ns, before.latency_ns)))
    return found


def _ratio(after: float, before: float) -> float | None:
    return after / before if before else None


def _read_first(
    file: str | os.PathLike[str], trace_format: str | None, device: str | None
) -> TraceReading:
    """The trace's figures, before it is read again."""
    path = Path(file)
    recordings.check_again(path)
    return read_trace(path, trace_format=trace_format, device=device)


def _sectors(reading: TraceReading) -> int:
    """The size of the recorded disk, or the end of its last I/O if that is not known."""
    return max(reading.capacity_sectors or 0, reading.end_sector)


def _edited(
    edits: Sequence[tuple[Path, _core.TraceEdit]],
    out: str | os.PathLike[str],
    trace_format: str | None,
    device: str | None,
    before: Sequence[TraceReading] | None = None,
) -> EditedTrace:
    path = Path(out)
    if before is None:
        before = [_read_first(file, trace_format, device) for file, _ in edits]
    with new_file(path) as part:
        with core.core_types():
            count = _core.edit_traces(edits, part, format=trace_format, device=device)
        if not count:
            raise InputError(f"{edits[0][0]}: no I/O is left")
        after = read_trace(part)
        size = part.stat().st_size
    return EditedTrace(path, size, tuple(before), after)
