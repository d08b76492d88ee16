"""A model of a measured SATA drive from few of its own figures, to predict the others.

Taken from the sweep: the time of one read alone, its median and its 99th percentile, the median of
one write alone, the maximum reads per second, the writes per second with 32 in flight, and whether
writes stall.

The size comes from the drive's name. All other parameters are estimates of its class, the same for
every drive. The gain with more than one in flight, and its tail, are not inputs. If most reads of a
drive are much faster than the mean, the drive was not full: reads of unwritten addresses do not
read flash.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from blklab.domain.experiment import Disk
from validation import runs
from validation.measured import IN_FLIGHT, Sweep

HOST_US = 2.2
"""Submission and completion of the modelled host."""
_DIE_BYTES = 16e9
"""The size of a 128 Gbit die."""
_CELL_US = 50.0
"""A read of 3D TLC or planar MLC from cell to page register."""
_CHANNEL_MB_S = 300.0
_COMMAND_US = 2.0
_STALLS = 5.0
"""p99 over mean of two writes in flight from which on writes are held to stall."""
_SHRINK = 32


@dataclass(frozen=True)
class Twin:
    """The model, and the same in its steady state under random writes."""

    disk: Disk
    steady: Disk
    paced: bool


def twin(reads: Sweep, writes: Sweep) -> Twin:
    """The size from the end of a drive's name: ``...-250gb``, perhaps followed by ``-run1``."""
    size = re.search(r"-(\d+)gb", reads.drive)
    if size is None:
        raise ValueError(f"{reads.drive}: its name does not contain its size")
    capacity = int(size[1]) * 10**9
    dies = max(4, 1 << round(capacity / _DIE_BYTES - 1).bit_length())
    link_us = 1e6 / reads.most
    fixed_us = HOST_US + _COMMAND_US + 4096 / _CHANNEL_MB_S + link_us
    paced = writes.least_host(2).p99 < _STALLS
    keys: dict[str, object] = {
        "kind": "ssd",
        "name": reads.drive,
        "summary": "twin of a measured drive",
        "transport": "sata",
        "capacity_sectors": capacity // 512 // 8 * 8,
        "link_mb_s": 4096 / link_us,
        "channels": min(8, dies),
        "dies_per_channel": max(1, dies // 8),
        "planes": 2,
        "page_kib": 16,
        "pages_per_block": 512,
        "program_us": [600, 1700],
        "erase_ms": 5,
        "channel_mb_s": _CHANNEL_MB_S,
        "command_us": _COMMAND_US,
        "write_latency_us": 0,
        "write_buffer_kib": 1024,
        "flush_us": 1500,
        "overprovision_percent": 9,
        **_reads(reads, fixed_us),
    }
    # Firmware's part of a write, all of it serial if nothing else bounds the writes.
    write_us = max(0.0, writes.alone.p50_us - _COMMAND_US - link_us)
    if not paced:
        keys |= {
            "collect_kib": 256,
            "write_command_us": write_us / 2,
            "write_latency_us": write_us / 2,
        }
        disk = runs.made(_toml(keys), reads.drive)
        return Twin(disk, _as_fast(disk, keys, writes.least_host(IN_FLIGHT[-1]).iops), paced)
    command_us = 1e6 / writes.least_host(IN_FLIGHT[-1]).iops
    keys |= {"paced": True, "program_us": [100], "write_command_us": command_us}
    keys |= {"write_latency_us": max(0.0, write_us - command_us)}
    disk = runs.made(_toml(keys), reads.drive)
    return Twin(disk, disk, paced)


def _reads(reads: Sweep, fixed_us: float) -> dict[str, object]:
    alone, mean_us = reads.alone, reads.alone_us
    flash_us = alone.p99_us - alone.p50_us
    if flash_us < alone.p50_us / 2:
        cell_us = min(_CELL_US, mean_us / 2)
        return {"read_us": [cell_us], "read_latency_us": max(0.0, mean_us - fixed_us - cell_us)}
    # Pages of three kinds up to the slowest; the share of written ones determines the mean.
    kinds = [flash_us / 3, flash_us * 2 / 3, flash_us]
    share = max(0.0, min(1.0, (alone.mean_us - alone.p50_us) / (sum(kinds) / 3)))
    return {
        "read_us": kinds,
        "read_latency_us": max(0.0, alone.p50_us - fixed_us + 4096 / _CHANNEL_MB_S),
        "preconditioned": False,
        "fill_percent": 100 * share,
    }


def _as_fast(disk: Disk, keys: dict[str, object], iops: float) -> Disk:
    """The steady disk with a program time that gives the drive's write rate."""
    scale = 1.0
    for _ in range(5):
        scaled = {**keys, "program_us": [600 * scale, 1700 * scale]}
        steady = runs.shrunk(runs.made(_toml(scaled), disk.file.name), _SHRINK)
        found = runs.point(steady, "randwrite", IN_FLIGHT[-1], 1, 5, 60).iops
        if abs(found / iops - 1) < 0.03:  # noqa: PLR2004
            break
        scale *= found / iops
    return steady


def _toml(keys: dict[str, object]) -> str:
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
