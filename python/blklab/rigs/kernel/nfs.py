"""NFS within a guest: what a kernel needs for it, and the guest's order.

Server and client are the same kernel's. The server exports the file system of the modelled disk,
and the client mounts it over the loopback device: `crates/blklab-guest/src/nfs.rs`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from blklab.errors import InputError
from blklab.rigs.kernel.cache import Kernel

CONFIG = ("NETWORK_FILESYSTEMS=y", "NFS_FS=y", "NFS_V4=y", "NFSD=y", "NFSD_V4=y")
"""Options of a kernel with the server and the client, which blklab's own configuration lacks."""
MOUNT = Path("/run/nfs")
"""The client's mountpoint."""
NOTE = (
    "NFS server and client share one kernel and one CPU: the CPU work of the server's threads, and "
    "the network, take no time"
)
"""The condition of each run, in its result."""
_NEEDED = ("NFSD_V4", "NFS_V4")
_NAME = "nfs"


def check(kernel: Kernel, workload: str) -> None:
    """InputError if that kernel has no NFS server or client; `workload` is the one that needs
    them."""
    if lacking := [option for option in _NEEDED if not kernel.has([option])]:
        options = " ".join(f"--config {option}" for option in CONFIG)
        raise InputError(
            f"{workload}: needs an NFS server and client, and the kernel '{kernel.label}' lacks "
            f"{', '.join(f'CONFIG_{option}' for option in lacking)}; one that has them, for "
            f"--kernel {_NAME}: blklab kernel build {options} --name {_NAME}"
        )


def to_order(nfsd_threads: int) -> dict[str, Any]:
    """``nfs`` in the ``guest.json`` of a program's run."""
    return {"mountpoint": str(MOUNT), "threads": nfsd_threads}
