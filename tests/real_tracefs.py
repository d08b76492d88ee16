"""The kernel's tracing files, mounted for the tests if root may do that and they are not mounted
yet."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from blklab.rigs.live import tracefs

_PLACE = Path("/sys/kernel/tracing")


def mount() -> bool:
    """Mounts them; true if they were not mounted before: call :func:`unmount` at the end."""
    if os.geteuid() != 0 or not _PLACE.is_dir() or not tracefs.why_not():
        return False
    done = subprocess.run(
        ["mount", "-t", "tracefs", "tracefs", str(_PLACE)], check=False, capture_output=True
    )
    return done.returncode == 0


def unmount() -> None:
    """Unless another process uses them by now."""
    subprocess.run(["umount", str(_PLACE)], check=False, capture_output=True)
