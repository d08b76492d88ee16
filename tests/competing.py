"""Two processes that compete for a disk: a job, and its recording."""

from __future__ import annotations

from pathlib import Path

import blklab

COMPETING = """
[global]
direct=1
size=64m
[copy]
rw=write
bs=256k
ioengine=libaio
iodepth=8
[reader]
rw=randread
bs=4k
number_ios=150
"""


def recorded(file: Path) -> Path:
    """A new recording of them, on a hard disk under mq-deadline."""
    blklab.record_run(COMPETING, file, disk="wd10ezrx", scheduler="mq-deadline")
    return file
