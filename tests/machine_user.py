"""Actions of other programs and of the user; each returns the changes that it may cause."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.machine_model import ANYTHING, Asked, Model, one
from tests.machine_snapshot import mounts, settings, told
from tests.machine_world import MIB, STATE, Disk, World

_FILLER_BYTES_MAX = 64 * MIB


class User:
    """The actions of one sequence; `tell` receives each as a shell command."""

    def __init__(self, world: World, model: Model, tell: Callable[[str], None]) -> None:
        self.world, self.model, self.tell = world, model, tell

    def sets(self, disk: Disk, attribute: str, value: str) -> Asked:
        """Sets an attribute of a queue; the kernel may refuse it."""
        path = disk.queue / attribute
        self.tell(f"echo {value} >{path}")
        before = settings(disk)
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_WRONLY)
            try:
                os.write(handle, value.encode())
            finally:
                os.close(handle)
        after = settings(disk)
        changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        return self.model.set_by_user(
            {f"queue/{disk.role}/{name}": after.get(name) for name in changed}
        )

    def fills(self, disk: Disk) -> Asked:
        """Fills the file system."""
        path = disk.point / "filler"
        if not disk.is_mounted():
            return {}
        self.tell(f"head -c 1G /dev/zero >{path}")
        return self._in_file(disk, path, lambda: _write_all(path))

    def frees(self, disk: Disk) -> Asked:
        """Frees the filled space."""
        path = disk.point / "filler"
        self.tell(f"rm -f {path}")
        return self._in_file(disk, path, lambda: path.unlink(missing_ok=True))

    def saves(self, disk: Disk) -> Asked:
        """Writes a file."""
        path = disk.point / "thesis"
        self.tell(f"echo more >>{path}")

        def append() -> None:
            with path.open("a") as file:
                file.write("more\n")

        return self._in_file(disk, path, append)

    def _in_file(self, disk: Disk, path: Path, change: Callable[[], None]) -> Asked:
        place = "file" if disk.is_mounted() else "beneath"
        with contextlib.suppress(OSError):
            change()
        return {f"{place}/{disk.role}/{path.name}": one(told(path) if path.exists() else None)}

    def unmounts(self, disk: Disk, *options: str) -> Asked:
        """Unmounts the disk, unless it is in use."""
        return self._mount("umount", *options, str(disk.point)) if disk.is_mounted() else {}

    def mounts(self, disk: Disk) -> Asked:
        """Mounts the disk again."""
        return self._mount("mount", str(disk.node), str(disk.point))

    def remounts(self, place: Path, how: str) -> Asked:
        """Makes it read-only or writable; without effect while files are open for writing."""
        return self._mount("mount", "-o", f"remount,{how}", str(place))

    def _mount(self, *words: str) -> Asked:
        self.tell(" ".join(words))
        subprocess.run(words, check=False, capture_output=True)
        key = f"mount/{words[-1]}"
        return {key: one(mounts().get(key))}

    def replaces(self, disk: Disk) -> Asked:
        """Removes the disk and inserts it again: its queue is new, with default settings."""
        was_mounted = disk.is_mounted()
        asked = self.unmounts(disk)
        self.tell(f"# {disk.name} is pulled out and put in again")
        disk.pull_out()
        disk.plug_in()
        asked |= self.model.was_replaced(disk, settings(disk))
        return asked | self.mounts(disk) if was_mounted else asked

    def breaks(self, disk: Disk) -> Asked:
        """The disk fails and works again a little later, empty; in the virtual machine it is absent
        until `comes_again`."""
        if self.world.virtual:
            if disk.is_there():
                self.tell(f"echo 1 >/sys/block/{disk.name}/device/delete")
                disk.pull_out()
            return {}
        self.tell(f"truncate -s 0 {disk.image}; sleep 0.05; truncate -s {disk.size_bytes} $_")
        os.truncate(disk.image, 0)
        time.sleep(0.05)
        os.truncate(disk.image, disk.size_bytes)
        return {f"data/{disk.role}/{part}": frozenset({ANYTHING}) for part in ("first", "second")}

    def comes_again(self, disk: Disk) -> Asked:
        """Inserts the disk again, if it is absent."""
        if disk.is_there():
            return {}
        self.tell(f"# {disk.role} is put in again")
        disk.plug_in()
        return self.model.was_replaced(disk, settings(disk))

    def takes_state(self, what: str) -> Asked:
        """The file system of blklab's records becomes "full", read-only ("ro"), or "fine" again."""
        filler = STATE / "filler"
        asked = self.remounts(STATE, "rw")
        if what == "full":
            self.tell(f"head -c 1G /dev/zero >{filler}")
            _write_all(filler)
        elif what == "fine":
            self.tell(f"rm -f {filler}")
            filler.unlink(missing_ok=True)
        else:
            asked |= self.remounts(STATE, "ro")
        return asked | {"state/filler": one(told(filler) if filler.exists() else None)}

    def has_left_state(self) -> bool:
        """Whether blklab can write its records."""
        writable = not os.statvfs(STATE).f_flag & os.ST_RDONLY
        return writable and not (STATE / "filler").exists()


def _write_all(path: Path) -> None:
    """Writes until the file system is full."""
    with contextlib.suppress(OSError), path.open("ab", buffering=0) as file:
        while file.tell() < _FILLER_BYTES_MAX:
            file.write(bytes(1 << 16))
