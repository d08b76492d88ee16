"""The runs of `blklab verify`: disks x schedulers x workloads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from blklab.base.catalogue import Entry
from blklab.errors import InputError, nearest

_PLAIN = ("none", "mq-deadline", "kyber")
_FAIR = ("bfq", "bfq:low_latency=0")
SCHEDULERS = _PLAIN + _FAIR

_QUARTER = "@quarter@"
_LONGER = 5


@dataclass(frozen=True)
class Load:
    """A job file; in the kernel rig the native driver issues its I/O."""

    name: str
    text: str
    """``@quarter@`` stands for a quarter of the run's time."""
    least_seconds: float = 0.0
    """The shortest run, but not more than `_LONGER` times as long as others on that disk."""
    to_the_end: bool = False
    """It ends with its files, after any time."""
    schedulers: tuple[str, ...] = SCHEDULERS
    """The schedulers that the matrix runs it under."""

    def entry(self, seconds: float) -> Entry:
        """The job file for a disk on which a run lasts `seconds`."""
        least = min(self.least_seconds, _LONGER * seconds)
        lasts_ms = round(max(seconds, least) * 1000)
        limits = "" if self.to_the_end else f"[global]\ntime_based\nruntime={lasts_ms}ms\n"
        text = self.text.replace(_QUARTER, f"{lasts_ms // 4}ms")
        return Entry(self.name, Path(f"{self.name}.fio"), limits + text)


@dataclass(frozen=True)
class DiskCase:
    """A disk, and how long a run on it lasts: long enough for some thousand I/Os."""

    name: str
    disk: str
    seconds: float


PLACES = (
    DiskCase("HDD, NCQ off", "wd10ezrx:ncq=off", 20.0),
    DiskCase("HDD, NCQ 32", "wd10ezrx", 20.0),
    DiskCase("SATA SSD", "su800-128gb", 0.4),
    DiskCase("HDD, no write cache", "wd10ezrx:write_cache=off", 20.0),
    DiskCase("HDD, 5900 rpm", "desktop-5900rpm", 20.0),
    DiskCase("HDD of 2006", "st3320620as", 20.0),
    DiskCase("SAS", "sas-10k", 10.0),
    DiskCase("SATA SSD, NCQ off", "su800-128gb:ncq=off", 0.4),
    DiskCase("NVMe, MLC", "950pro-256gb", 0.1),
    DiskCase("NVMe, TLC", "pm983-960gb", 0.1),
    DiskCase("NVMe, 3D XPoint", "optane-900p", 0.05),
    DiskCase("constant, rotational", "constant", 20.0),
    DiskCase("constant, flash", "constant:rotational=off,service_us=200,queue_depth=8", 0.4),
)
_QUICK_PLACES = PLACES[:3]

FILE_SYSTEM_PLACES = tuple(
    place for place in PLACES if place.name in ("HDD, NCQ 32", "SATA SSD", "NVMe, MLC")
)
"""The disks on which the matrix has file systems: each transport once."""
_IN_FILES = ("size=4g", "size=2g")
"""Files are written once before, which takes seconds for each GiB."""

_DIRECT = "direct=1\nsize=4g\n"
_QUEUED = "ioengine=libaio\n"

# Long enough to fill memory and to stay at the dirty limit for most of the run.
_BUFFERED_S = 2.0

# Sizes are such that no run comes to the end of its files, but for those that read ahead. These
# read and write more than the 1 GiB that memory holds.
LOADS = (
    Load("read-seq", f"[a]\n{_DIRECT}rw=read\nbs=128k\n"),
    Load("write-seq", f"[a]\n{_DIRECT}rw=write\nbs=128k\n"),
    Load("read-rand-qd1", f"[a]\n{_DIRECT}norandommap\nrw=randread\nbs=4k\n"),
    Load("read-rand-qd8", f"[a]\n{_DIRECT}{_QUEUED}norandommap\niodepth=8\nrw=randread\nbs=4k\n"),
    Load("read-rand-qd32", f"[a]\n{_DIRECT}{_QUEUED}norandommap\niodepth=32\nrw=randread\nbs=4k\n"),
    Load("write-rand-qd8", f"[a]\n{_DIRECT}{_QUEUED}norandommap\niodepth=8\nrw=randwrite\nbs=4k\n"),
    Load(
        "mix-70-30",
        f"[a]\n{_DIRECT}{_QUEUED}norandommap\niodepth=16\nrw=randrw\nrwmixread=70\nbs=4k\n",
    ),
    Load("readers-seq", f"[a]\n{_DIRECT}rw=read\nbs=256k\nnumjobs=4\n"),
    Load(
        "readers-writer",
        f"[r]\n{_DIRECT}norandommap\nrw=randread\nbs=16k\nnumjobs=2\n"
        f"[w]\n{_DIRECT}{_QUEUED}iodepth=8\nrw=write\nbs=256k\n",
    ),
    Load(
        "ioprio",
        f"[high]\n{_DIRECT}norandommap\nrw=randread\nbs=4k\nprioclass=1\nnumjobs=2\n"
        f"[low]\n{_DIRECT}{_QUEUED}norandommap\niodepth=8\nrw=randread\nbs=4k\nprioclass=3\n",
    ),
    Load(
        "think-time",
        f"[a]\n{_DIRECT}norandommap\nrw=randread\nbs=8k\nthinktime=3ms\nnumjobs=3\n",
    ),
    Load(
        "sizes",
        f"[a]\n{_DIRECT}{_QUEUED}norandommap\niodepth=4\nrw=randread\n"
        "bssplit=4k/40:16k/30:64k/20:512k/10\n",
    ),
    Load(
        "weights",
        "".join(
            f"[{name}]\n{_DIRECT}rw=read\nbs=256k\nnumjobs=2\ncgroup={name}\ncgroup_weight={weight}\n"
            for name, weight in (("light", 100), ("heavy", 300))
        ),
        schedulers=_FAIR,
    ),
    Load(
        "priorities",
        "".join(
            f"[level{level}]\n{_DIRECT}rw=read\nbs=128k\nprioclass=2\nprio={level}\n"
            for level in (0, 4, 7)
        ),
        schedulers=_FAIR,
    ),
    Load(
        "come-and-go",
        f"[stays]\n{_DIRECT}rw=read\nbs=128k\n"
        f"[goes]\n{_DIRECT}norandommap\nrw=randread\nbs=16k\nruntime={_QUARTER}\n"
        f"[comes]\n{_DIRECT}rw=read\nbs=128k\nstartdelay={_QUARTER}\n"
        f"[does-its-bit]\n{_DIRECT}{_QUEUED}time_based=0\nio_size=16m\niodepth=4\nrw=write\n"
        f"bs=64k\nstartdelay={_QUARTER}\n",
        schedulers=_FAIR,
    ),
    Load(
        "log-and-reads",
        f"[log]\n{_DIRECT}rw=write\nbs=8k\nfdatasync=1\n"
        f"[r]\n{_DIRECT}norandommap\nrw=randread\nbs=16k\nnumjobs=2\n",
    ),
    Load(
        "commits",
        f"[w]\n{_DIRECT}norandommap\nrw=randwrite\nbs=4k\nfsync=1\nnumjobs=2\n"
        f"[r]\n{_DIRECT}{_QUEUED}norandommap\niodepth=8\nrw=randread\nbs=4k\n",
    ),
    Load(
        "write-seq-fsync",
        f"[w]\n{_DIRECT}{_QUEUED}iodepth=4\nrw=write\nbs=128k\nfsync=16\n"
        f"[r]\n{_DIRECT}rw=read\nbs=128k\n",
    ),
    Load(
        "write-durable",
        f"[w]\n{_DIRECT}norandommap\nrw=randwrite\nbs=4k\nsync=dsync\nnumjobs=2\n"
        f"[r]\n{_DIRECT}{_QUEUED}norandommap\niodepth=4\nrw=randread\nbs=16k\n",
    ),
    Load(
        "deliveries-buffered",
        "[w]\nsize=1g\nfilename=spool\nnorandommap\nrw=randwrite\nbssplit=4k/70:8k/20:16k/10\n"
        "numjobs=8\nfsync=4\nthinktime=20ms\nthinktime_blocks=4\n"
        f"[r]\n{_DIRECT}norandommap\nrw=randread\nbs=16k\nnumjobs=4\nthinktime=5ms\n",
    ),
    Load("read-seq-buffered", "[a]\nsize=2500m\nrw=read\nbs=64k\n", to_the_end=True),
    Load("write-seq-buffered", "[a]\nsize=4g\nrw=write\nbs=64k\n", _BUFFERED_S),
    Load(
        "copy-buffered",
        "[from]\nsize=1200m\nrw=read\nbs=1m\n[to]\nsize=1200m\nrw=write\nbs=1m\n",
        to_the_end=True,
    ),
    Load(
        "streams-buffered",
        "[a]\nsize=1g\nrw=read\nbs=64k\n[b]\nsize=1g\nrw=read\nbs=1m\n[w]\nsize=512m\nrw=write\nbs=256k\n",
        to_the_end=True,
    ),
)

_QUICK = {
    "read-rand-qd1": _PLAIN,
    "write-seq": _PLAIN,
    "think-time": _PLAIN,
    "readers-seq": _FAIR[1:],
}


def quick() -> tuple[tuple[DiskCase, ...], tuple[Load, ...]]:
    """Disks and workloads of the usual test run, each under the schedulers that it tests best."""
    loads = [replace(load, schedulers=_QUICK[load.name]) for load in LOADS if load.name in _QUICK]
    return _QUICK_PLACES, tuple(loads)


def smaller(loads: Iterable[Load]) -> tuple[Load, ...]:
    """The same workloads with smaller files, for file systems."""
    return tuple(replace(load, text=load.text.replace(*_IN_FILES)) for load in loads)


def chosen(names: Iterable[str]) -> tuple[Load, ...]:
    """The workloads of these names; all without a name. InputError if there is no such workload."""
    by_name = {load.name: load for load in LOADS}
    wanted = tuple(names)
    for name in wanted:
        if name not in by_name:
            raise InputError(f"--load: no '{name}'{nearest(name, by_name)}")
    return tuple(by_name[name] for name in wanted) or LOADS


def places(disks: Iterable[str], *, in_files: bool = False) -> tuple[DiskCase, ...]:
    """The matrix's disks, those for file systems if `in_files`, or these: as the matrix has them,
    others for a second."""
    own = FILE_SYSTEM_PLACES if in_files else PLACES
    known = {case.disk: case for case in PLACES}
    return tuple(known.get(disk, DiskCase(disk, disk, 1.0)) for disk in disks) or own
