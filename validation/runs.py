"""A disk model in the same runs as the measured drives."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import blklab
from blklab.base.catalogue import Entry
from blklab.domain import core, specs
from blklab.domain.experiment import Disk
from blklab.domain.histogram import Histogram
from validation.measured import Point

_MIB = 1 << 20
_OF_THEIR_TIME = "none:max_sectors_kb=1280,read_ahead_kb=128"
"""The drives were measured before Linux 6.17."""


def point(
    disk: Disk, rw: str, depth: int, jobs: int, seconds: float, before: float, block: int = 4096
) -> Point:
    """fio's report on `seconds` of a job, after `before` seconds of running."""
    size = core.disk_model(disk).limits.capacity_bytes // _MIB * _MIB
    lines = [
        "[sweep]", "ioengine=libaio", "direct=1", "filename=sweep", f"size={size}", f"rw={rw}",
        f"bs={block}", f"iodepth={depth}", f"numjobs={jobs}", "group_reporting", "time_based",
        "norandommap", f"runtime={round(seconds * 1e6)}us", f"ramp_time={round(before * 1e6)}us",
    ]  # fmt: skip
    entry = Entry("sweep", Path("sweep"), "\n".join(lines) + "\n")
    result = blklab.simulate(entry, disk=disk, scheduler=_OF_THEIR_TIME)
    parts = [job.direction("write" if "write" in rw else "read") for job in result.jobs]
    parts = [part for part in parts if part.ios]
    ios = sum(part.ios for part in parts)
    tail = Histogram.merged(part.clat_hist for part in parts)
    iops = ios / max(part.runtime_ns for part in parts) * 1e9
    return Point(
        drive=disk.label,
        rw=rw,
        depth=depth,
        jobs=jobs,
        iops=iops,
        mean_us=sum(part.lat.mean_ns * part.ios for part in parts) / ios / 1e3,
        p50_us=tail.percentile(50) / 1e3,
        p99_us=tail.percentile(99) / 1e3,
        p999_us=tail.percentile(99.9) / 1e3,
    )


def named(name: str) -> Disk:
    """A shipped disk, or a file."""
    return specs.disk(name)


def made(text: str, name: str) -> Disk:
    """A disk from the text of its file."""
    return Disk(Entry(name, Path(f"{name}.toml"), text))


def changed(name: str, keys: Mapping[str, object]) -> Disk:
    """A shipped disk with other values; they are checked together, not one after the other."""
    text = named(name).file.text.split("[calibrated]")[0]
    for key, value in keys.items():
        text = re.sub(rf"(?m)^{key} = .*\n", "", text) + f"{key} = {json.dumps(value)}\n"
    return made(text, name)


def shrunk(disk: Disk, divisor: int) -> Disk:
    """The same flash, full of data, with fewer pages per block by this factor: the number of blocks
    and the spare share stay, so that it reaches its steady state earlier by this factor. Without an
    SLC cache, which would be full."""
    rows = {row.key: row.value for row in core.disk_model(disk).parameters}
    pages = max(1, int(rows["pages_per_block"]) // divisor)
    part = pages / int(rows["pages_per_block"])
    changed = {
        "pages_per_block": pages,
        "capacity_sectors": round(int(rows["capacity_sectors"]) * part),
        "erase_ms": float(rows["erase_ms"]) * part,
        "fill_percent": 100,
        "slc_cache_mib": 0,
        "slc_cache_full_mib": 0,
    }
    overrides = tuple((key, str(value)) for key, value in changed.items())
    return Disk(disk.file, (*disk.overrides, *overrides))
