"""The Rust programs that run as separate processes: confinement, the disk, the guest's first
process.

``make setup`` builds them into ``blklab/bin``; wheels contain them.
"""

from __future__ import annotations

import os
from pathlib import Path

from blklab.errors import MachineError

NAMES = ("blklab-confine", "blklab-disk", "blklab-guest", "blklab-replay")
"""The programs."""

DIRECTORY = Path(__file__).parent.parent / "bin"


def find(name: str) -> Path:
    """The absolute path of the program `name`, one of :data:`NAMES`.

    Raises :class:`blklab.errors.MachineError` when it is not there or cannot be run.
    """
    assert name in NAMES, name
    path = (DIRECTORY / name).resolve()
    if not path.is_file():
        raise MachineError(
            f"{name} is missing from {DIRECTORY}: in a checkout `make setup` builds it; "
            "a wheel made by `make wheel` has it"
        )
    if not os.access(path, os.X_OK):
        raise MachineError(f"{path} is not executable: chmod +x it, or install blklab again")
    return path
