"""Rigs run experiments. Each is a file or a folder with a `Rig`, and one line below."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from blklab import programs
from blklab.base.catalogue import Entry
from blklab.domain import recordings
from blklab.domain.conditions import RigData
from blklab.domain.experiment import Disk, Experiment, RigSpec, SchedulerSpec
from blklab.domain.scheduler import Scheduler
from blklab.errors import InputError, nearest

if TYPE_CHECKING:
    # numpy and msgspec, which a list of the rigs does not need: 60 ms.
    from blklab.domain.result import Result
    from blklab.domain.setup import DiskData


class Rig(Protocol):
    """Runs experiments; several threads use one object."""

    name: str
    spec: RigSpec
    """The spec that makes an equal rig, here or elsewhere; with kernels by their keys."""
    at_once: int
    """Maximum number of parallel runs that do not disturb each other."""

    def find_disk(self, spec: str) -> Disk:
        """The disk that the user names: a disk model, or a place on a real disk. InputError if
        there is none."""

    def put_right(self) -> None:
        """Undo leftovers of killed runs, before disks are described for a run; `prepared` reports
        them."""

    def describe_disk(self, disk: Disk) -> DiskData:
        """Name, kind, limits and parameters, as plain data; changes nothing. InputError if it is
        wrong."""

    def prepared(
        self, experiments: Sequence[Experiment], tell: Callable[[str], None]
    ) -> AbstractContextManager[None]:
        """Prepares these runs, which happen inside the ``with``, and undoes the preparation at its
        end. `tell` receives notes for the user, such as the expected time if it is more than
        seconds. InputError if one of them cannot run."""

    def describe(self) -> RigData:
        """The conditions that affect its results besides the experiment, as plain data; ``text`` is
        a description, or empty."""

    def check_host(self, changed: Mapping[str, int]) -> dict[str, int]:
        """Every value of the host that this rig uses, with these changes. InputError if one is
        wrong."""

    def check_scheduler(self, spec: SchedulerSpec) -> Scheduler:
        """The scheduler and its settings on this rig. InputError if it is wrong, as far as that is
        known before it runs."""

    def alone(self, experiment: Experiment) -> tuple[RigSpec, Experiment]:
        """The spec and the experiment for running this one elsewhere, with kernels named by their
        keys. The work of `prepared` is not included. InputError if there is no such kernel."""

    def run(self, experiment: Experiment) -> Result:
        """Run it to the end. InputError for bad input, RunError if it fails."""

    def position(self) -> tuple[float, float | None]:
        """Progress of the current run and its expected end, in seconds of the rig's own clock; 0
        and None if not known."""

    def cancel(self) -> None:
        """Make every current run end soon, with KeyboardInterrupt."""


@dataclass(frozen=True)
class Known:
    """A rig that the user can choose."""

    summary: str
    """Its purpose, for ``--help``."""
    place: str
    """``module:class``."""
    options: tuple[str, ...] = ()
    """Options of the commands, and with underscores keyword arguments of the class."""


RIGS = {
    "sim": Known("the simulator", "blklab.rigs.sim:SimRig"),
    "kernel": Known(
        "Linux itself",
        "blklab.rigs.kernel.rig:KernelRig",
        options=("kernel", "driver", "late-disk", "cpu"),
    ),
    "live": Known(
        "a real disk of this machine",
        "blklab.rigs.live.rig:LiveRig",
        options=("cache", "write-device", "overwrite", "trace-latency", "no-precondition"),
    ),
}


def check(name: str) -> None:
    """InputError if there is no such rig."""
    if name not in RIGS:
        raise InputError(f"--rig: no rig '{name}'{nearest(name, RIGS)}")


def of_workloads(spec: RigSpec, workloads: Sequence[Entry]) -> RigSpec:
    """The rig for these workloads: without a driver in `spec`, the kernel rig replays recordings,
    and runs job files beside them, with the native one."""
    replays = spec.name == "kernel" and all(map(_has_recordings, workloads))
    return replace(spec, driver="native") if replays and spec.driver is None else spec


def _has_recordings(workload: Entry) -> bool:
    return bool(workload.beside) or recordings.is_recording(workload)


def check_workload(spec: RigSpec, workload: Entry) -> None:
    """InputError if that rig cannot run it."""
    name = spec.name
    if programs.is_program(workload):
        chosen = programs.chosen(workload)
        able = chosen.program.rigs
        if name not in able:
            every = " or ".join(f"--rig {other}" for other in able)
            raise InputError(
                f"{workload.name}: is a real program, which --rig {name} does not run; it needs "
                f"{every}"
            )
        if chosen.file_system is not None and name != "kernel":
            raise InputError(
                f"--fs: makes a file system on a modelled disk, with --rig kernel; with --rig "
                f"{name} a program runs in the directory that --disk names"
            )
    if workload.beside and programs.is_program(workload):
        raise InputError(
            f"{workload.name}: is a real program; recordings are replayed beside job files and "
            "other recordings"
        )
    if _has_recordings(workload) and spec.driver == "fio":
        what = "is" if recordings.is_recording(workload) else "has beside it"
        raise InputError(
            f"{workload.name}: {what} recorded I/O, which fio does not replay; use --driver "
            "native, or leave out --driver"
        )


def rig(what: str | RigSpec) -> Rig:
    """A new rig. InputError if there is none of that name, or if it does not have the option."""
    spec = RigSpec.of(what)
    name = spec.name
    check(name)
    given = {option: value for option, value in spec.options.items() if value is not None}
    for option in given:
        if option not in RIGS[name].options:
            having = [other for other, known in RIGS.items() if option in known.options]
            raise InputError(
                f"--{option}: the rig '{name}' has no such option; it is for "
                f"{' or '.join(f'--rig {other}' for other in having) or 'no rig'}"
            )
    module, kind = RIGS[name].place.split(":")
    make: Callable[..., Rig] = getattr(import_module(module), kind)
    return make(**{option.replace("-", "_"): value for option, value in given.items()})


def find_disk(place: Rig, disk: str | os.PathLike[str] | Disk) -> Disk:
    """The disk that the user names on that rig; a `Disk` is returned unchanged. InputError if there
    is none."""
    return disk if isinstance(disk, Disk) else place.find_disk(os.fspath(disk))
