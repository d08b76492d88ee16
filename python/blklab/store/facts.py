"""What a result depends on besides the experiment: versions, and the machine that ran it."""

from __future__ import annotations

import os
import platform
from typing import Any

from blklab.domain import core
from blklab.host.machine import cpu_model, fio_version, memory_bytes
from blklab.store import owner


def facts(rig: str) -> dict[str, Any]:
    """Plain data; what is not known is None."""
    return {
        "versions": {
            "blklab": core.version(),
            "python": platform.python_version(),
            "kernel": f"{platform.system()} {platform.release()}",
            # The simulator has no fio.
            "fio": None if rig == "sim" else fio_version(),
        },
        "machine": {
            "name": owner.machine(),
            "system": _system(),
            "kernel": platform.version(),
            "architecture": platform.machine(),
            "cpu": cpu_model(),
            "cpus": os.cpu_count(),
            "memory_bytes": memory_bytes(),
        },
    }


def _system() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None
