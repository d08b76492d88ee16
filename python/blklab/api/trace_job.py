"""``blklab.trace_job``: a fio job file that resembles a trace."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab import _core
from blklab._core import LikeProcess
from blklab.api.simulate import simulate
from blklab.api.whatif import replay_trace
from blklab.base.catalogue import Entry
from blklab.base.files import check_files, write_whole
from blklab.base.text import shown
from blklab.domain import core, latencies
from blklab.domain.experiment import Disk, SchedulerSpec
from blklab.domain.result import Result
from blklab.errors import InputError

JOBS_MAX = 16
"""Processes that become jobs; the others are left out."""
_SIZES_MAX = 8
"""The most frequent sizes of an operation that are kept."""
_SECTOR_BYTES = 512
_DEPTH_MAX = 1024
_PER_CENT = 100
_SEQUENTIAL, _RANDOM = 0.95, 0.05
"""Shares from which on all I/Os count as sequential, or as random."""
_RW = {
    (True, False, False): "read",
    (False, True, False): "write",
    (False, False, True): "trim",
    (True, True, False): "rw",
    (False, True, True): "trimwrite",
}


@dataclass(frozen=True)
class Near:
    """A figure of the trace's replay, and the job's."""

    name: str
    unit: str
    trace: float
    job: float


@dataclass(frozen=True)
class LikeJob:
    """A job file that resembles a trace."""

    text: str
    """fio's job file."""
    jobs: int
    ios: int
    """I/Os of the job file."""
    left_out: int
    """I/Os of the trace that the job file does not have."""
    near: tuple[Near, ...] = ()
    """How near it comes on a disk, if one was given."""


def trace_job(
    file: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    trace_format: str | None = None,
    device: str | None = None,
    disk: str | os.PathLike[str] | Disk | None = None,
    scheduler: str | SchedulerSpec = "none",
) -> LikeJob:
    """Make a fio job file that resembles a trace: a job for each process, with its operations,
    sizes, place on the disk, depth, flushes and mean pause. The order of its I/Os is random, and
    one process does not wait for another.

    Args:
        file, trace_format, device: see `read_trace`.
        out: the job file to write.
        disk, scheduler: replay the trace (as inferred) and run the job there, to see how near it
            comes.

    Raises:
        InputError: as of `read_trace`; or the trace has no read, write or discard.
        RunError: `out` cannot be written, or a run cannot go on.
    """
    if out is not None:
        check_files(Path(out))
    if disk is not None and os.fspath(file) == "-":
        raise InputError("--disk: reads a trace twice, and standard input only once; save it")
    with core.core_types():
        found = _core.trace_likeness(Path(file), format=trace_format, device=device)
    if not found.processes:
        raise InputError(f"{os.fspath(file)}: has no read, write or discard")
    kept = found.processes[:JOBS_MAX]
    text = _text(Path(file).name, kept)
    ios = sum(sum(process.counts) for process in kept)
    others = sum(sum(process.counts) for process in found.processes[JOBS_MAX:])
    near = () if disk is None else _near(file, text, disk, scheduler)
    if out is not None:
        write_whole(Path(out), text)
    return LikeJob(text, len(kept), ios, found.left_out + others, near)


def _text(name: str, processes: Sequence[LikeProcess]) -> str:
    head = [f"; made of {shown(name)} by blklab trace to-fio", "[global]", "direct=1"]
    names: set[str] = set()
    sections = []
    for process in processes:
        word = re.sub(r"[^\w.-]+", "-", process.name).strip("-.") or "process"
        section = word if word not in names else f"{word}-{process.pid}"
        while section in names:
            section += "x"
        names.add(section)
        sections += ["", f"[{section}]", *_options(process)]
    return "\n".join([*head, *sections]) + "\n"


def _options(process: LikeProcess) -> list[str]:
    total = sum(process.counts)
    reads, writes, trims = process.counts
    # fio has no job that reads and trims: the fewer of both are left out.
    if reads and trims:
        reads, trims = (reads, 0) if reads + writes >= trims else (0, trims)
    kind = _RW[reads > 0, writes > 0, trims > 0]
    sequential = process.sequential / total
    options = [f"rw={kind if sequential >= _SEQUENTIAL else f'rand{kind}'}"]
    if _RANDOM < sequential < _SEQUENTIAL:
        options.append(f"percentage_random={round(_PER_CENT * (1 - sequential))}")
    if kind == "rw":
        options.append(f"rwmixread={round(_PER_CENT * reads / (reads + writes))}")
    low, high = (sector * _SECTOR_BYTES for sector in process.span_sectors)
    options += [
        _sizes(process, (reads, writes, trims)),
        f"offset={low}",
        f"size={high - low}",
        "norandommap",
        f"number_ios={reads + writes + trims}",
        # It begins again at its first place if the place is smaller than all its I/O.
        f"io_size={_bytes(process)}",
    ]
    depth = min(process.depth, _DEPTH_MAX)
    options += ["ioengine=libaio", f"iodepth={depth}"] if depth > 1 else ["ioengine=psync"]
    if process.flushes and writes:
        options.append(f"fsync={max(1, round(writes / process.flushes))}")
    if process.first_ns:
        options.append(f"startdelay={process.first_ns // 1000}us")
    pause_us = process.paused_ns // max(process.pauses, 1) // 1000
    if process.pauses and pause_us:
        options += [
            f"thinktime={pause_us}",
            f"thinktime_blocks={max(1, round(total / (process.pauses + 1)))}",
        ]
    return options


def _bytes(process: LikeProcess) -> int:
    return sum(size * count for sizes in process.sizes for size, count in sizes)


def _sizes(process: LikeProcess, counts: Sequence[int]) -> str:
    """``bs=`` of one size for all, else ``bssplit=`` of the most frequent."""
    splits = []
    for sizes, count in zip(process.sizes, counts, strict=True):
        common = sorted(sizes, key=lambda row: (-row[1], row[0]))[:_SIZES_MAX] if count else []
        splits.append(_shares(common))
    plain = {size for split in splits for size in split}
    if len(plain) == 1:
        return f"bs={plain.pop()}"
    fallback = next(split for split in splits if split)
    texts = [
        ":".join(f"{size}/{share}" for size, share in (split or fallback).items())
        for split in splits
    ]
    return f"bssplit={','.join(texts)}"


def _shares(rows: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Whole per cent of each size, 100 in all; sizes of less are left out."""
    whole = sum(count for _, count in rows)
    shares = {size: round(_PER_CENT * count / whole) for size, count in rows}
    shares = {size: share for size, share in shares.items() if share}
    if shares:
        largest = max(shares, key=lambda size: shares[size])
        shares[largest] += _PER_CENT - sum(shares.values())
    return dict(sorted(shares.items()))


def _near(
    file: str | os.PathLike[str],
    text: str,
    disk: str | os.PathLike[str] | Disk,
    scheduler: str | SchedulerSpec,
) -> tuple[Near, ...]:
    replayed = replay_trace(file, disk=disk, scheduler=scheduler).result
    run = simulate(Entry("job", Path("job.fio"), text), disk=disk, scheduler=scheduler)
    return (
        Near("time", "s", replayed.duration_ns / 1e9, run.duration_ns / 1e9),
        Near("throughput", "MB/s", _mb_s(replayed), _mb_s(run)),
        *(
            Near(f"p99 of {name}s", "ms", _p99_ms(replayed, name), _p99_ms(run, name))
            for name in ("read", "write")
            if replayed.histogram(name).total and run.histogram(name).total
        ),
    )


def _mb_s(result: Result) -> float:
    sides = (side for job in result.jobs for side in (job.read, job.write, job.trim))
    return sum(side.bytes for side in sides) / max(1, result.duration_ns) * 1e3


def _p99_ms(result: Result, name: str) -> float:
    found = latencies.latencies(result.jobs)[name].percentiles_ns
    return found[latencies.PERCENTILES.index(latencies.RANKED_BY)] / 1e6
