"""A typical use of the simulator, for profile-guided optimisation.

A build with a profile (``make pgo``, ``make wheel``) runs this on an instrumented core: every
workload for a short while, on disks of all kinds, under all schedulers, so that frequent code is
placed together. Nothing is measured here.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import blklab
from blklab import _core

_WORKLOADS = Path(blklab.__file__).parent / "workloads"
_SECONDS = {
    "wd10ezrx": 20,
    "st3320620as": 20,
    "su800-128gb": 1,
    "950pro-256gb": 0.5,
    "optane-900p": 0.5,
}
"""The virtual time of each workload, such that each takes about the same real time."""

_SHORTER = re.compile(r"^runtime=\d+$", re.MULTILINE)

_MANY_AT_ONCE = """
[randread]
ioengine=libaio
direct=1
rw=randread
bs=4k
iodepth=32
size=1G
norandommap
time_based
runtime=1
"""


def main() -> None:
    """Run them all."""
    jobs = {"many at once": _MANY_AT_ONCE}
    jobs |= {path.stem: path.read_text("utf-8") for path in sorted(_WORKLOADS.glob("*.fio"))}
    schedulers = [scheduler.name for scheduler in _core.schedulers()]
    for name, job in jobs.items():
        print(f"training: {name}", file=sys.stderr)
        for disk, seconds in _SECONDS.items():
            for scheduler in schedulers:
                short = _SHORTER.sub(f"runtime={round(seconds * 1000)}ms", job)
                blklab.simulate(short, disk=disk, scheduler=scheduler)


if __name__ == "__main__":
    main()
