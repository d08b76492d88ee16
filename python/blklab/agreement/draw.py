"""Job files drawn by a seed: mixtures of processes that were not picked by hand.

A number and a seed always give the same job for the same kind of disk, so that a miss can be
repeated alone.
"""

from __future__ import annotations

import random
from pathlib import Path

from blklab.base.catalogue import Entry

_PROCESSES_MAX = 4
_BLOCKS_KIB = (4, 8, 16, 32, 64, 128, 256, 512)
_DEPTHS = (1, 2, 4, 8, 16, 32)
_PATTERNS = ("read", "write", "randread", "randwrite", "rw", "randrw")
_WAITS = 0.5
_THINKS = 0.3
_SELDOM = 0.2
"""Probabilities of an option."""
_RATES_IOPS = (10, 60, 150, 1000)
_SYNCS = ("fsync=1", "fsync=16", "fdatasync=4", "sync=dsync")
_THINK_US = (100, 60_000)
"""The shortest and longest think time on a hard disk."""

# Each job has an area of its own, from which sequential processes take at most these GiB.
_AREA_GIB = 20
_SIZES_GIB = (1, 2, 5, 10)
_SIZES_BUFFERED_MIB = (32, 64, 128)
"""All of these together fit the page cache of a guest."""

_HARD_DISK_S = 20.0
"""How long a run lasts: some thousand I/Os."""
_FLASH_S = 1.0


def job(seed: int, number: int, *, rotational: bool, buffered: bool = False) -> Entry:
    """Job `number` of those that `seed` draws, for a hard disk or for flash.

    One to four processes, each with psync or libaio, in an area of its own: sequential, random or
    mixed, 4 to 512 KiB, and some with think times, rates, priorities, late starts or clones. Half
    of those that only write sync. Direct I/O; with `buffered` half of the processes use the page
    cache, with psync, and are otherwise the same.
    """
    chance, cached = random.Random(f"{seed} {number}"), random.Random(f"cached {seed} {number}")
    seconds = _HARD_DISK_S if rotational else _FLASH_S
    lines = [
        f"# Drawn by blklab verify: --seed {seed}, number {number}{', --buffered' * buffered}",
        "[global]",
        "filename=area",
        "direct=1",
        "time_based",
        f"runtime={round(seconds * 1000)}ms",
        f"randseed={chance.randrange(1, 1 << 31)}",
    ]
    for process in range(chance.randint(1, _PROCESSES_MAX)):
        options = _process(chance, process, seconds)
        if buffered and cached.random() < _WAITS:
            options = _through_page_cache(options, cached.choice(_SIZES_BUFFERED_MIB))
        lines += [f"[p{process}]", *options]
    kind = f"{'hdd' if rotational else 'flash'}{'-buffered' * buffered}"
    name = f"{kind}-{seed}-{number}"
    return Entry(name, Path(f"{name}.fio"), "\n".join(lines) + "\n")


def _process(chance: random.Random, area: int, seconds: float) -> list[str]:
    size = chance.choice(_SIZES_GIB)
    pattern = chance.choice(_PATTERNS)
    lines = [
        f"rw={pattern}",
        f"bs={chance.choice(_BLOCKS_KIB)}k",
        f"offset={area * _AREA_GIB + chance.randrange(_AREA_GIB - size)}g",
        f"size={size}g",
    ]
    if chance.random() < _WAITS:
        lines.append("ioengine=psync")
    else:
        lines += ["ioengine=libaio", f"iodepth={chance.choice(_DEPTHS)}"]
    if pattern in ("rw", "randrw"):
        lines.append(f"rwmixread={chance.choice((10, 30, 50, 70, 90))}")
    if chance.random() < _THINKS:
        # Flash answers some hundred times as fast: shorter think times keep a process busy there.
        shorter = seconds / _HARD_DISK_S
        lines.append(f"thinktime={max(1, round(chance.randrange(*_THINK_US) * shorter))}")
    if chance.random() < _SELDOM:
        lines.append(f"rate_iops={chance.choice(_RATES_IOPS)}")
    if chance.random() < _SELDOM:
        lines += [f"prioclass={chance.choice((1, 2, 3))}", f"prio={chance.randrange(8)}"]
    if chance.random() < _SELDOM:
        lines.append(f"startdelay={round(seconds * 1000 * chance.choice((5, 10, 20)) / 100)}ms")
    if chance.random() < _SELDOM:
        lines += [f"numjobs={chance.choice((2, 4))}", "group_reporting"]
    if "read" not in pattern and chance.random() < _WAITS:
        lines.append(chance.choice(_SYNCS))
    return lines


def _through_page_cache(options: list[str], size_mib: int) -> list[str]:
    """The same process, without direct I/O and queues of its own."""
    direct = ("size=", "ioengine=", "iodepth=")
    kept = [option for option in options if not option.startswith(direct)]
    return [*kept, "direct=0", "ioengine=psync", f"size={size_mib}m"]
