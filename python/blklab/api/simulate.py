"""The library's front door: one job file, one disk, one scheduler, one result."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from blklab import rigs
from blklab.base.catalogue import Entry
from blklab.domain import specs
from blklab.domain.experiment import Experiment
from blklab.domain.result import Result


def simulate(
    job: str | os.PathLike[str],
    *,
    disk: str | os.PathLike[str],
    scheduler: str = "none",
    seed: int = 1,
    host: Mapping[str, int] | None = None,
    ignore_unsupported: bool = False,
    rig: str = "sim",
    kernel: str | None = None,
    driver: str | None = None,
) -> Result:
    """Run a fio job on a modelled disk and return what it measured.

    Args:
        job: a job file's path, the name of a workload, or the text of a job file (anything
            with a line break or an opening bracket in it).
        disk: a disk's name or the path of its TOML file, with ``:key=value,...`` to change it;
            with ``rig="live"`` a directory or a device.
        scheduler: name, with ``:tunable=value,...`` in the kernel's units.
        seed: the same seed gives the same result to the last bit.
        host: costs and sizes of the modelled host, by name.
        ignore_unsupported: leave out job options that are not simulated instead of refusing.
        rig: ``sim``, or ``kernel``: Linux itself above the modelled disk, or ``live``: this
            machine and a real disk, on which test files are made; a device is only read.
        kernel: name of the kernel for the kernel rig; the last one built without changes if None.
        driver: who issues the I/O on the kernel rig: ``fio``, the default, or ``native``.

    Raises:
        blklab.errors.InputError: a name, file or value is wrong; one line says which.
        blklab.errors.RunError: the run failed: the guest panicked, the disk was too late.
    """
    text = os.fspath(job)
    if "\n" in text or "[" in text:
        entry = Entry("job", Path("job"), text)
    else:
        entry = specs.workload(text)
    place = rigs.rig(rig, {"kernel": kernel, "driver": driver})
    experiment = Experiment(
        entry,
        place.find_disk(os.fspath(disk)),
        scheduler,
        seed,
        dict(host or {}),
        ignore_unsupported,
    )
    return place.run(experiment)
