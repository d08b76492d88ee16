"""One experiment as plain data: a workload on a disk under a scheduler, with a seed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from blklab.base.catalogue import Entry
from blklab.base.text import utf8


def environment_variables() -> dict[str, str]:
    """The value of ``${NAME}`` in a job file."""
    return {utf8(name): utf8(value) for name, value in os.environ.items()}


@dataclass(frozen=True)
class Disk:
    """A disk model and its changed keys."""

    file: Entry
    overrides: tuple[tuple[str, str], ...] = ()
    drawn: tuple[tuple[str, float], ...] = ()
    """The drawn values by parameter, if the disk was drawn; its file contains them."""

    @property
    def label(self) -> str:
        """As on the command line: ``name:key=value,key=value``."""
        changes = ",".join(f"{key}={value}" for key, value in self.overrides)
        return f"{self.file.name}:{changes}" if changes else self.file.name


@dataclass(frozen=True)
class SchedulerSpec:
    """A requested scheduler and its changed tunables. The rig checks that the scheduler exists, and
    the names and values."""

    name: str
    settings: tuple[tuple[str, str], ...] = ()
    """Tunables of the scheduler or the queue, each with its value as text."""
    kernel: str | None = None
    """The kernel that it runs on, on a rig with several kernels; None is the rig's."""
    plugin: str | None = None
    """The hash of its file, if it is a plug-in; see `blklab.load_plugin`."""

    @property
    def text(self) -> str:
        """The text without the kernel's name: ``mq-deadline:fifo_batch=1``."""
        changes = ",".join(f"{name}={value}" for name, value in self.settings)
        return f"{self.name}:{changes}" if changes else self.name

    def without(self, setting: str) -> SchedulerSpec:
        """With that tunable at its default."""
        return replace(self, settings=tuple(one for one in self.settings if one[0] != setting))

    @property
    def label(self) -> str:
        """As on the command line: ``mq-deadline:fifo_batch=1@mine``."""
        return self.text if self.kernel is None else f"{self.text}@{self.kernel}"


@dataclass(frozen=True)
class RigSpec:
    """A rig and its options.

    ``RigSpec("kernel", kernel="7.3.4", driver="native")``; a rig's name alone means its `RigSpec`
    with all defaults.
    """

    name: str = "sim"
    """``sim``: the simulator. ``kernel``: Linux itself above the modelled disk. ``live``: this
    machine and its disks."""
    kernel: str | None = None
    """Kernel rig: a kernel of ``blklab kernel list``; None is the newest one without
    changes."""
    driver: str | None = None
    """Kernel rig: ``native``, which issues the simulator's I/O and replays recordings, or ``fio``;
    None is native."""
    cache: str | None = None
    """Live rig: ``cold`` (None) or ``warm``: page cache empty, or with all files, at the start."""
    write_device: bool = False
    """Live rig: allow writes to a device that is not in use and holds no known data."""
    overwrite: str | None = None
    """Live rig: the full id of a device that the job may overwrite."""
    trace_latency: bool = False
    """Live rig: separate queue time from service time by the kernel's block events."""
    precondition: bool = True
    """Live rig: write the used part of a flash device once before the first run."""
    late_disk: bool = False
    """Kernel rig: a run is valid even if the disk was late. For studies of schedulers that keep
    the guest's CPU busy, on which the disk's server runs too."""
    cpu: str | None = None
    """Kernel rig: CPU work of programs takes the time that it uses of this machine's CPU times
    this factor, or no time with ``free``; None is 1."""

    @classmethod
    def of(cls, rig: str | RigSpec) -> RigSpec:
        """From a name."""
        return cls(rig) if isinstance(rig, str) else rig

    @classmethod
    def of_options(cls, name: str, options: Mapping[str, str | None]) -> RigSpec:
        """From its `options`."""
        return cls(
            name,
            options.get("kernel"),
            options.get("driver"),
            options.get("cache"),
            options.get("write-device") is not None,
            options.get("overwrite"),
            options.get("trace-latency") is not None,
            options.get("no-precondition") is None,
            options.get("late-disk") is not None,
            options.get("cpu"),
        )

    @property
    def options(self) -> dict[str, str | None]:
        """Values by the name of the command's option; None is the default."""
        return {
            "kernel": self.kernel,
            "driver": self.driver,
            "cache": self.cache,
            "write-device": "yes" if self.write_device else None,
            "overwrite": self.overwrite,
            "trace-latency": "yes" if self.trace_latency else None,
            "no-precondition": None if self.precondition else "yes",
            "late-disk": "yes" if self.late_disk else None,
            "cpu": self.cpu,
        }


@dataclass(frozen=True)
class Window:
    """A part of a run of which every request and decision is recorded."""

    from_ns: int = 0
    until_ns: int = 2**63 - 1
    requests: int = 1000
    """Maximum number of requests, and of decisions."""


@dataclass(frozen=True)
class Journal:
    """The journal of a file system at rest."""

    extents: tuple[tuple[int, int], ...]
    """Each with the first sector on the disk and the number of sectors."""
    head: int
    """The sector in it where the next transaction begins."""
    unit: int
    """What is written there has a multiple of so many sectors."""


@dataclass(frozen=True)
class LaidOut:
    """A job's files in a file system on the disk, which was made and filled before the run."""

    file_system: str
    """``ext4``, ``xfs``, ``btrfs``, ``btrfs:nodatacow`` or ``f2fs``."""
    mounted: str
    """The options of its mount, as the kernel tells them."""
    places: tuple[tuple[tuple[int, int], ...], ...]
    """The extents of each regular file of the job, in their order, each with the first sector on
    the disk and the number of sectors."""
    image: str = field(repr=False)
    """The disk's data, packed, for a guest."""
    journal: Journal | None = None
    """Those of ext4 and XFS, before the run mounts them."""


@dataclass(frozen=True)
class Experiment:
    """One job file on one disk under one scheduler, with one seed."""

    job: Entry
    disk: Disk
    scheduler: SchedulerSpec
    seed: int
    host: Mapping[str, int] = field(default_factory=dict)
    """Costs and sizes of the modelled host; empty for the defaults."""
    ignore_unsupported: bool = False
    window: Window | None = None
    """The window of the result's ``detail`` and ``decisions``."""
    files: LaidOut | None = None
    """The places of its files; without it they lie one after the other on the bare disk."""
    until_ns: int | None = None
    """The run ends at this time, even if its jobs have not; on the simulator only."""
