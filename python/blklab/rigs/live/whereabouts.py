"""The current mount point of a known file system, if it is mounted.

It is identified by its UUID; without one, by the ``f_fsid`` of statfs(2), which ext4 and btrfs
derive from the UUID, and its type.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from blklab.base import owned
from blklab.host.devices import mounts
from blklab.host.devices.mounts import Mount
from blklab.host.roots import HERE


@dataclass(frozen=True)
class Inside:
    """A directory, by its file system and its path in there."""

    type: str
    uuid: str
    """Empty if not known."""
    fsid: int
    path: str
    """From the root of the file system, whatever part of it is mounted."""

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: object) -> Inside:
        """ValueError if it is not valid."""
        if not isinstance(found, Mapping) or set(found) != {"type", "uuid", "fsid", "path"}:
            raise ValueError("not a place in a file system")
        texts = [found[name] for name in ("type", "uuid", "path")]
        is_whole = isinstance(found["fsid"], int) and all(isinstance(one, str) for one in texts)
        if not is_whole or not found["path"].startswith("/") or "\0" in found["path"]:
            raise ValueError("not a place in a file system")
        return cls(**found)

    @property
    def text(self) -> str:
        """The file system, for display."""
        return f"{self.type} {self.uuid}".strip()


def inside(handle: int) -> Inside | None:
    """The place of a handle's directory; None if its mount is not visible."""
    number = _mount_id(handle)
    mount = next((one for one in mounts.mounts(HERE) if one.id == number), None)
    directory = owned.path_of(handle)
    if mount is None or not directory.is_relative_to(mount.point):
        return None
    path = Path(mount.root) / directory.relative_to(mount.point)
    return Inside(mount.type, _uuid(mount), _fsid(handle), str(path))


def found(sought: Inside) -> list[Path]:
    """All current paths to it; none if its file system is not mounted."""
    places = []
    for mount in mounts.mounts(HERE):
        if mount.type != sought.type or not Path(sought.path).is_relative_to(mount.root):
            continue
        # It may disappear meanwhile, or another mount may cover it.
        with contextlib.suppress(OSError), _looked_at(mount) as point:
            uuid = _uuid(mount)
            same = uuid == sought.uuid if uuid and sought.uuid else sought.fsid == _fsid(point)
            if same:
                places.append(Path(mount.point) / Path(sought.path).relative_to(mount.root))
    return places


@contextlib.contextmanager
def _looked_at(mount: Mount) -> Iterator[int]:
    """A handle of its root. OSError if another mount hides it."""
    handle = os.open(mount.point, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if _mount_id(handle) != mount.id:
            raise FileNotFoundError(mount.point)
        yield handle
    finally:
        os.close(handle)


def _mount_id(handle: int) -> str:
    """The mount through which it was opened."""
    told = Path(f"/proc/self/fdinfo/{handle}").read_text().split()
    return told[told.index("mnt_id:") + 1]


def _fsid(handle: int) -> int:
    return os.fstatvfs(handle).f_fsid


def _uuid(mount: Mount) -> str:
    for name in mounts.sources(mount, HERE):
        held = mounts.held_by(name, [], HERE)
        if held is not None and held.uuid:
            return held.uuid
    return ""
