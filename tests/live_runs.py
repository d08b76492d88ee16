"""Jobs of the live rig, for its tests: short and long ones, and their processes."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import pytest

from blklab.base.catalogue import Entry
from blklab.domain import specs
from blklab.domain.experiment import Experiment
from blklab.host.devices import queue
from blklab.rigs.live import program
from blklab.rigs.live import target as targets
from blklab.rigs.live.rig import LiveRig

MIB = 1 << 20
BLKLAB = [sys.executable, "-m", "blklab"]
READS = "[r]\nrw=randread\nbs=4k\ndirect=1\nsize=4m\nruntime=1\ntime_based\n"
BUFFERED = "[r]\nrw=read\nbs=64k\nsize=4m\n"
WRITES = "[w]\nrw=randwrite\nbs=4k\nsize=4m\nio_size=1m\nend_fsync=1\n"
LONG = "[r]\nrw=randread\nbs=4k\ndirect=1\nsize=4m\nnumjobs=2\nruntime=600\ntime_based\n"

NEEDS_PROGRAMS = pytest.mark.skipif(
    any(shutil.which(name) is None for name in program.PACKAGES),
    reason=f"needs {', '.join(program.PACKAGES)}",
)


def disk_of(directory: Path) -> queue.Queue:
    """The queue of the disk below a directory."""
    return queue.named(targets.find(str(directory)).disks[0])


def entry(text: str) -> Entry:
    """A job file of that text."""
    return Entry("job", Path("job.fio"), text)


def experiment(place: LiveRig, where: object, text: str, scheduler: str = "none") -> Experiment:
    """One run of the job `text` on the disk `where`."""
    return Experiment(entry(text), place.find_disk(str(where)), specs.scheduler(scheduler), 1)


def wait(until: object, what: str) -> None:
    """Until it holds, a minute at most."""
    assert callable(until)
    deadline = time.monotonic() + 60
    while not until():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def reads_of(disk: str) -> int:
    """Read commands that the disk has completed."""
    return int(Path(f"/sys/block/{disk}/stat").read_text().split()[0])


def fio_at(directory: Path) -> list[str]:
    """Processes of fio that work in that file system."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if (place / "comm").read_text() == "fio\n" and str(directory) in str(
                (place / "cwd").readlink()
            ):
                found.append(place.name)
        except OSError:
            continue
    return found
