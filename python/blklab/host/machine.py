"""The machine and its fio, as results name them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

_FIO_TIMEOUT_S = 5.0


def cpu_model(proc: Path = Path("/proc")) -> str | None:
    """The CPU's name from the kernel; None if the kernel has none."""
    try:
        # With many CPUs the kernel needs long to make the whole file.
        with (proc / "cpuinfo").open() as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        return None
    return None


def memory_bytes() -> int:
    """Physical memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def fio_version() -> str | None:
    """``fio-3.33``; None if there is none that runs."""
    program = shutil.which("fio")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_FIO_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
