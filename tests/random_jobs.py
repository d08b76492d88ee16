"""Job files drawn by a seed: random mixtures of processes."""

from __future__ import annotations

import random

_BLOCKS_KIB = (4, 8, 16, 32, 64, 128, 256, 512)
_PATTERNS = ("read", "write", "randread", "randwrite", "rw", "randrw")


def job_file(seed: int, *, runtime_s: int = 8, disk_gib: int = 60) -> str:
    """One to four jobs: psync or libaio, direct or (seldom) buffered, in regions of their own or
    overlapping, with think times, rates, priorities, classes, late starts and flushes."""
    chance = random.Random(seed)
    lines = [
        "[global]",
        "filename=area",
        f"runtime={runtime_s}",
        "time_based",
        f"randseed={chance.randrange(1, 1 << 31)}",
        f"direct={int(chance.random() < 0.8)}",
    ]
    for number in range(chance.randint(1, 4)):
        lines += [f"[p{number}]", *_process(chance, disk_gib)]
    return "\n".join(lines) + "\n"


def _process(chance: random.Random, disk_gib: int) -> list[str]:
    size = chance.choice((1, 2, 5, 10))
    pattern = chance.choice(_PATTERNS)
    lines = [
        f"rw={pattern}",
        f"bs={chance.choice(_BLOCKS_KIB)}k",
        f"offset={chance.randrange(disk_gib - size)}g",
        f"size={size}g",
    ]
    if chance.random() < 0.5:
        lines.append("ioengine=psync")
    else:
        lines += ["ioengine=libaio", f"iodepth={chance.choice((1, 2, 4, 8, 16, 32))}"]
    if pattern in ("rw", "randrw"):
        lines.append(f"rwmixread={chance.choice((10, 30, 50, 70, 90))}")
    if "write" in pattern and chance.random() < 0.2:
        lines.append(f"fsync={chance.choice((1, 8, 64))}")
    if chance.random() < 0.3:
        lines.append(f"thinktime={chance.randrange(100, 60_000)}")
    if chance.random() < 0.2:
        lines.append(f"rate_iops={chance.choice((10, 60, 150, 1000))}")
    if chance.random() < 0.2:
        lines += [f"prioclass={chance.choice((1, 2, 3))}", f"prio={chance.randrange(8)}"]
    if chance.random() < 0.2:
        lines.append(f"startdelay={chance.choice((1, 2, 3))}")
    if chance.random() < 0.2:
        lines += [f"numjobs={chance.choice((2, 4))}", "group_reporting"]
    return lines
