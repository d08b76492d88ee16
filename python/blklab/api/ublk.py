"""A disk model as a block device of this machine, through ublk; needs root.

The separate program `blklab-disk` serves the device until it is ended.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from blklab.base import binaries
from blklab.domain import core, specs
from blklab.domain.experiment import Disk
from blklab.rigs.disk_data import DiskData

_UBLK = Path("/dev/ublk-control")


@dataclass(frozen=True)
class UblkCommand:
    """A call of `blklab-disk` that is ready to run."""

    arguments: tuple[str, ...]
    data: DiskData | None = None
    """The file with the disk's data; the program inherits it, and with it the lock."""

    def start(self) -> subprocess.Popen[bytes]:
        """Run it as a separate process. SIGINT ends a server, which then prints its counters as
        JSON; errors go to stderr."""
        held = () if self.data is None else (self.data.fileno(),)
        words = [str(binaries.find("blklab-disk")), *self.arguments]
        return subprocess.Popen(words, stdout=subprocess.PIPE, pass_fds=held)

    def become(self) -> NoReturn:
        """Replace this process by it: the user sees its output, and signals reach it."""
        program = binaries.find("blklab-disk")
        if self.data is not None:
            os.set_inheritable(self.data.fileno(), True)
        sys.stdout.flush()
        os.execv(program, ["blklab-disk", *self.arguments])


def serve_disk(
    disk: str | os.PathLike[str] | Disk,
    *,
    data: str = "memory",
    number: int | None = None,
    seed: int = 1,
) -> UblkCommand:
    """The command that makes ``/dev/ublkbN`` and serves it until it is ended.

    Args:
        disk: see `blklab.simulate`; a disk model.
        data: where the disk's data are: ``memory``, ``none`` (reads give zeros) or a sparse file
            that stays, a new one or one that blklab made.
        number: the N; None is the first free number.
        seed: seed of the platter's position.

    Raises:
        blklab.errors.InputError: the disk is wrong, or the file is not blklab's.
        blklab.errors.RunError: the file is in use.
    """
    model = specs.disk(disk)
    limits = core.disk_model(model).limits
    file = model.file
    words = [
        "create",
        f"--disk={file.name if file.in_core else file.path}",
        f"--data={data}",
        f"--seed={seed}",
    ]
    words += [f"--set={key}={value}" for key, value in model.overrides]
    if number is not None:
        words.append(f"--id={number}")
    # Without ublk, blklab-disk reports the error, and no file must be left.
    of_file = data not in ("memory", "none") and _UBLK.exists()
    kept = DiskData(data, limits.capacity_bytes) if of_file else None
    return UblkCommand(tuple(words), kept)


def served_disks() -> UblkCommand:
    """The command that prints all ublk devices of this machine."""
    return UblkCommand(("list",))


def remove_served_disk(number: int) -> UblkCommand:
    """The command that removes ``/dev/ublkbN`` and its server, also leftovers of a killed
    server."""
    return UblkCommand(("remove", str(number)))
