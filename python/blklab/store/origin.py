"""The origin of results: the machine and its versions, and the process that runs a comparison, so
that no other process resumes it meanwhile.
"""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

from blklab.domain import core
from blklab.domain.setup import Value
from blklab.host.machine import cpu_model, fio_version, memory_bytes

_START = 19
"""The field of ``/proc/PID/stat`` after the name with the process's start time."""


def mark() -> str:
    """This process, as JSON."""
    pid = os.getpid()
    return json.dumps(
        {"machine": machine(), "boot": _boot(), "pid": pid, "began": _began(pid)}
    )  # fmt: skip


def alive(marked: str | None) -> int | None:
    """The id of the recorded process, if it still runs on this machine."""
    if marked is None:
        return None
    try:
        found = json.loads(marked)
        pid = int(found["pid"])
        here = (found["machine"], found["boot"]) == (machine(), _boot())
        return (
            pid if here and found["began"] is not None and _began(pid) == found["began"] else None
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def machine() -> str:
    """The name of this machine."""
    return platform.node() or "unknown"


def _boot() -> str | None:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def _began(pid: int) -> str | None:
    """None if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name before it, in brackets, may hold anything.
    return stat.rpartition(")")[2].split()[_START]


def facts(rig: str) -> dict[str, dict[str, Value]]:
    """Plain data; unknown values are None."""
    return {
        "versions": {
            "blklab": core.version(),
            "python": platform.python_version(),
            "kernel": f"{platform.system()} {platform.release()}",
            # The simulator has no fio.
            "fio": None if rig == "sim" else fio_version(),
        },
        "machine": {
            "name": machine(),
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
