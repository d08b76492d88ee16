"""File systems on a guest's disk, and files laid out in them before a job runs.

A guest makes the file system, allocates each file and writes it once; the disk's data, without all
that is zero, and the places of the files are the result. A run begins with that disk: its file
system has been unmounted and mounted since, as one in use.
"""

from __future__ import annotations

import base64
import binascii
import json
import lzma
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab.base import binaries
from blklab.domain.experiment import Disk, Journal, LaidOut
from blklab.errors import InputError, MachineError, RunError, nearest
from blklab.programs import file_system as file_system_of_program
from blklab.rigs.kernel import outcome
from blklab.rigs.kernel.boot import Guest, boot
from blklab.rigs.kernel.cache import Kernel
from blklab.rigs.kernel.view import HERE, View

MOUNT = Path("/mnt")
"""The mount point in a guest that runs a job."""
SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
"""Where mkfs is, besides the paths of the environment."""
_IMAGE = "disk.image"
_MEMORY_MIB = 512
# Of an image of 128 MiB the packed form has some 100 KiB.
_IMAGE_BYTES_MAX = 256 << 20
_INIT = "blklab-guest"
_TIMEOUT_S = 1800.0


@dataclass(frozen=True)
class FileSystem:
    """How a file system is made, and mounted for a job."""

    kind: str
    """As of mkfs."""
    package: str
    """Debian's package of its mkfs."""
    options: str
    """The job's mount options, by which the file system's own I/O during a run is least."""


FILE_SYSTEMS = {
    "ext4": FileSystem("ext4", "e2fsprogs", "noatime"),
    "ext4:lazytime": FileSystem("ext4", "e2fsprogs", "noatime,lazytime"),
    "xfs": FileSystem("xfs", "xfsprogs", "noatime"),
    "xfs:lazytime": FileSystem("xfs", "xfsprogs", "noatime,lazytime"),
    "btrfs": FileSystem("btrfs", "btrfs-progs", "noatime,commit=300"),
    "btrfs:nodatacow": FileSystem("btrfs", "btrfs-progs", "noatime,commit=300,nodatacow"),
    "f2fs": FileSystem("f2fs", "f2fs-tools", "noatime,lazytime"),
}
"""File systems for jobs by name: ``btrfs:nodatacow`` overwrites in place, without checksums, and
with ``lazytime`` only fsync changes a journal."""
KINDS = {one.kind: one.package for one in FILE_SYSTEMS.values()}
"""Kinds of file systems, each with the Debian package of its mkfs."""


def check(kind: str, kernel: Kernel, option: str) -> None:
    """That a guest of this kernel can make this kind: InputError without it in the kernel, RunError
    without its mkfs here; `option` is the one of the command that asks."""
    needed = needs([kind])
    if not kernel.has(needed):
        raise InputError(
            f"{option}: the kernel '{kernel.label}' has no {kind}; one that has: "
            f"blklab kernel build --config {needed[0]}=y --name {kind}"
        )
    if shutil.which(f"mkfs.{kind}", path=f"{os.environ.get('PATH', '')}:{SBIN}") is None:
        raise MachineError(f"{option}: no mkfs.{kind} here: apt-get install {KINDS[kind]}")


def needs(names: Iterable[str]) -> list[str]:
    """The options of a kernel that has these file systems, or kinds of them."""
    return [f"{name.partition(':')[0].upper()}_FS" for name in names]


def find(name: str, option: str) -> FileSystem:
    """The file system of that name. InputError."""
    if name not in FILE_SYSTEMS:
        raise InputError(f"{option}: no '{name}'{nearest(name, FILE_SYSTEMS)}")
    return FILE_SYSTEMS[name]


def lay_out(
    kernel: Kernel,
    name: str,
    disk: Disk,
    sizes: Sequence[int],
    wait: Callable[[Guest], object] = Guest.wait,
    option: str = "--fs",
) -> LaidOut:
    """Files of these sizes in the file system `name` on that disk.

    `wait` waits for the guest's end; `option` is the one of the command that asks. InputError for
    another name; RunError if the guest fails.
    """
    file_system = find(name, option)
    check(file_system.kind, kernel, option)
    order: dict[str, Any] = {
        "disk": {
            "file": "disk.toml",
            "overrides": list(disk.overrides),
            "seed": 1,
            "image": {"to": _IMAGE},
        },
        "scheduler": "none",
        "file_system": _mounted(file_system),
        "run": {"lay_out": {"sizes": list(sizes)}},
    }
    files = {"disk.toml": disk.file.text.encode(), "guest.json": json.dumps(order).encode()}
    init = binaries.find(_INIT)
    guest = boot(
        kernel.image,
        [str(HERE / init.name)],
        files,
        View(programs={init.name: init}, mountpoints=(MOUNT,)),
        memory_mib=_MEMORY_MIB,
        time_travel="inf-cpu",
        seed=1,
        timeout_s=_TIMEOUT_S,
    )
    with guest:
        wait(guest)
        found = outcome.read(guest.run, outcome.LAID_OUT)
        image = guest.run.read(_IMAGE, _IMAGE_BYTES_MAX)
    places, journal = found["laid_out"], found["journal"]
    if len(places) != len(sizes):
        raise RunError(f"the guest has laid out {len(places)} of {len(sizes)} files")
    return LaidOut(
        name,
        found["file_system"]["options"],
        tuple(tuple((first, count) for first, count in file) for file in places),
        base64.b64encode(lzma.compress(image)).decode(),
        journal and Journal(tuple(journal["extents"]), journal["head"], journal["unit"]),
    )


class Layouts:
    """Files that were laid out, for all runs that need the same: each takes seconds for a GiB."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str, Disk, tuple[int, ...]], LaidOut] = {}

    def of(
        self,
        kernel: Kernel,
        name: str,
        disk: Disk,
        sizes: Sequence[int],
        wait: Callable[[Guest], object],
    ) -> LaidOut:
        """As :func:`lay_out`, for ``--host journal=1``."""
        key = (kernel.key, name, disk, tuple(sizes))
        with self._lock:
            if key not in self._known:
                self._known[key] = lay_out(kernel, name, disk, sizes, wait, "--host journal=1")
            return self._known[key]


def order_of(laid_out: LaidOut) -> dict[str, Any]:
    """``file_system`` in the ``guest.json`` of a job's run."""
    return _mounted(find(laid_out.file_system, "--fs")) | {"made": True}


def image_of(laid_out: LaidOut) -> bytes:
    """The disk's data, as a guest reads them. InputError if they are none."""
    try:
        return lzma.decompress(base64.b64decode(laid_out.image, validate=True))
    except (lzma.LZMAError, binascii.Error, EOFError) as error:
        raise InputError(f"the image of the disk cannot be read: {error}") from None


def to_order(
    file_system: file_system_of_program.FileSystem, mount: Path, seed: int
) -> dict[str, Any]:
    """``file_system`` in the ``guest.json`` of a program's run; the seed is of its old files."""
    percent = file_system.aged_percent
    order: dict[str, Any] = {
        "kind": file_system.kind,
        "mountpoint": str(mount),
        "mkfs_options": list(file_system.mkfs_options),
        "mount_options": ",".join(file_system.mount_options),
    }
    return order if percent is None else order | {"aged": {"percent": percent, "seed": seed}}


IMAGE: Mapping[str, str] = {"from": _IMAGE}
"""``image`` of a disk in the ``guest.json`` of a job's run."""


def _mounted(file_system: FileSystem) -> dict[str, Any]:
    return {
        "kind": file_system.kind,
        "mountpoint": str(MOUNT),
        "mount_options": file_system.options,
    }
