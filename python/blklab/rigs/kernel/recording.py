"""Recordings of guests: the I/O of a job, or of a program while it is measured."""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab import _core
from blklab._core import TraceReading
from blklab.domain import core
from blklab.domain.experiment import Experiment
from blklab.domain.result import Result
from blklab.rigs.kernel.rig import KernelRig

_TRACE = "disk.blktrace.0"
_WHOLE = "whole.rec"
_RECORD = struct.Struct("<IIQQIIIIIHH")
"""`struct blk_io_trace` of version 7: magic, sequence, time, sector, bytes, action, pid, device,
CPU, error, and the length of what follows."""
_TIME, _ACTION, _MORE_BYTES = 2, 5, 10
_QUEUED = 1
"""`__BLK_TA_QUEUE`, in the lowest byte of an action; the next one tells of a cgroup."""
_NOTE = 1 << (10 + 16)
"""`BLK_TC_NOTIFY`: no event of an I/O."""


@dataclass(frozen=True)
class Recorded:
    """A recorded run."""

    result: Result
    ios: int
    """I/Os that are in the recording; without any there is no file."""
    span_ns: int
    """From the first I/O to the end of the last one."""


def record(rig: KernelRig, experiment: Experiment, out: Path) -> Recorded:
    """Run it, and write its I/O to `out`: of a program the I/O of its measurement, not what it left
    in the page cache.

    InputError if it cannot run, RunError if it fails or if events were lost.
    """
    capacity_bytes = core.disk_model(experiment.disk).limits.capacity_bytes
    with tempfile.TemporaryDirectory(prefix="blklab-") as directory:
        trace, whole = Path(directory) / _TRACE, Path(directory) / _WHOLE
        with rig.prepared([experiment], lambda _: None), trace.open("wb") as file:
            ran = rig.trace(experiment, file)
        duration_ns = ran.result.duration_ns
        first_ns = _first_ns(trace)
        if first_ns is None:
            return Recorded(ran.result, 0, 0)
        _read(trace, whole, capacity_bytes, ran.cgroups)
        if ran.begun_ns is None:
            begin_ns, end_ns = 0, None
        else:
            begin_ns = max(ran.begun_ns - first_ns, 0)
            end_ns = ran.begun_ns + duration_ns - first_ns
        if end_ns is not None and end_ns <= begin_ns:
            return Recorded(ran.result, 0, 0)
        edit = _core.TraceEdit(from_ns=begin_ns, until_ns=end_ns)
        with core.core_types():
            ios = _core.edit_traces([(whole, edit)], out)
        if not ios:
            out.unlink()
            return Recorded(ran.result, 0, 0)
    return Recorded(ran.result, ios, _read(out, None, capacity_bytes).end_ns)


def _read(
    trace: Path,
    out: Path | None,
    capacity_bytes: int,
    cgroups: Sequence[tuple[int, str]] = (),
) -> TraceReading:
    """A guest's events lack none, so that of an I/O without a plug the recording says so."""
    with core.core_types():
        return _core.read_trace(
            trace,
            capacity_sectors=capacity_bytes // 512,
            plugs=True,
            cgroups=list(cgroups),
            out=out,
        )


def _first_ns(trace: Path) -> int | None:
    """The time of the first I/O, on the guest's clock; None if there is none."""
    with trace.open("rb") as file:
        while len(head := file.read(_RECORD.size)) == _RECORD.size:
            record = _RECORD.unpack(head)
            action = record[_ACTION]
            if action & 0xFF == _QUEUED and not action & _NOTE:
                return int(record[_TIME])
            file.seek(record[_MORE_BYTES], os.SEEK_CUR)
    return None
