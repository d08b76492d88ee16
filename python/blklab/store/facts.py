"""What a result depends on besides the experiment: versions, and the machine that ran it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

from blklab.rigs import sim
from blklab.store import owner

_FIO_TIMEOUT_S = 5.0


def facts(rig: str) -> dict[str, Any]:
    """Plain data; what is not known is None."""
    return {
        "versions": {
            "blklab": sim.version(),
            "python": platform.python_version(),
            "kernel": f"{platform.system()} {platform.release()}",
            # The simulator has no fio.
            "fio": None if rig == "sim" else _fio(),
        },
        "machine": {
            "name": owner.machine(),
            "system": _system(),
            "kernel": platform.version(),
            "architecture": platform.machine(),
            "cpu": _cpu(),
            "cpus": os.cpu_count(),
            "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        },
    }


def _fio() -> str | None:
    program = shutil.which("fio")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            timeout=_FIO_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _system() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _cpu() -> str | None:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        return None
    return None
