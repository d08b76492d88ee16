"""The library's front door: one job file, one disk, one scheduler, one result."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from blklab import specs
from blklab.catalogue import Entry
from blklab.result import Result
from blklab.rigs import Experiment, rig


def simulate(
    job: str | os.PathLike[str],
    *,
    disk: str | os.PathLike[str],
    scheduler: str = "none",
    seed: int = 1,
    host: Mapping[str, int] | None = None,
    ignore_unsupported: bool = False,
) -> Result:
    """Simulate a fio job and return what it measured.

    Args:
        job: a job file's path, the name of a workload, or the text of a job file (anything
            with a line break or an opening bracket in it).
        disk: a disk's name or the path of its TOML file, with ``:key=value,...`` to change it.
        scheduler: name, with ``:tunable=value,...`` in the kernel's units.
        seed: the same seed gives the same result to the last bit.
        host: costs and sizes of the modelled host, by name.
        ignore_unsupported: leave out job options that are not simulated instead of refusing.

    Raises:
        blklab.errors.InputError: a name, file or value is wrong; one line says which.
    """
    text = os.fspath(job)
    if "\n" in text or "[" in text:
        entry = Entry("job", Path("job"), text)
    else:
        entry = specs.workload(text)
    experiment = Experiment(
        entry, specs.disk(disk), scheduler, seed, dict(host or {}), ignore_unsupported
    )
    return rig("sim").run(experiment)
