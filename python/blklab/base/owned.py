"""A directory of our own in a place that may belong to another user: made, used and removed
through handles.

A link or another mount can replace a path between two uses; a handle always means the same
directory, even after ``umount --lazy``. A directory is removed only if it has our user, our mode
and, once known, the recorded inode; links in it are not followed.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_LOOK = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Passing through a directory needs no read permission.
_PASS = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC

MODE = 0o700
OPEN_MODE = 0o711
"""Other users may pass through to their own files."""


class NotOursError(OSError):
    """Another directory has taken its name."""

    def __init__(self) -> None:
        super().__init__(None, "it is not the directory that was made")


@dataclass(frozen=True)
class OwnedPlace:
    """The place of a directory of blklab, existing or not."""

    parent: int
    """A handle."""
    name: str

    @property
    def path(self) -> Path:
        """Its current path."""
        return path_of(self.parent) / self.name

    def make(self) -> int:
        """A handle of the new directory. OSError."""
        os.mkdir(self.name, MODE, dir_fd=self.parent)
        handle = os.open(self.name, _LOOK, dir_fd=self.parent)
        # A user with the right to rename here could have replaced it, but cannot make a directory
        # of ours.
        if not _is_ours(os.fstat(handle), None) or os.listdir(handle):  # noqa: PTH208 (of a handle)
            os.close(handle)
            raise NotOursError
        return handle

    def find(self, inode: int | None) -> int:
        """A handle of the directory made there; without an `inode`, of a directory that may be it.
        OSError; FileNotFoundError if the name does not exist."""
        handle = os.open(self.name, _LOOK, dir_fd=self.parent)
        if not _is_ours(os.fstat(handle), inode):
            os.close(handle)
            raise NotOursError
        return handle

    def remove(self, handle: int) -> None:
        """Remove the empty directory itself, unless it was moved elsewhere. OSError."""
        try:
            found = os.stat(self.name, dir_fd=self.parent, follow_symlinks=False)
        except FileNotFoundError:
            return
        if os.path.samestat(found, os.fstat(handle)):
            os.rmdir(self.name, dir_fd=self.parent)


@contextlib.contextmanager
def at(parent: Path, name: str) -> Iterator[OwnedPlace]:
    """The place `name` in the directory `parent`. OSError if there is no such directory."""
    handle = os.open(parent, _PASS)
    try:
        yield OwnedPlace(handle, name)
    finally:
        os.close(handle)


def path_of(handle: int) -> Path:
    """The current path of a handle's directory, without links."""
    return Path(f"/proc/self/fd/{handle}").readlink()


def empty(handle: int, of_us: Callable[[str], bool] = lambda _: True) -> None:
    """Remove all entries of the directory with a name that `of_us` accepts. OSError."""
    with os.scandir(handle) as entries:
        found = [(one.name, one.is_dir(follow_symlinks=False)) for one in entries]
    for name, is_directory in found:
        if not of_us(name):
            continue
        if not is_directory:
            os.unlink(name, dir_fd=handle)
            continue
        with _opened(name, handle) as below:
            empty(below)
        os.rmdir(name, dir_fd=handle)


@contextlib.contextmanager
def _opened(name: str, inside: int) -> Iterator[int]:
    """Opens also directories that their owner, not root, has closed."""
    passed = os.open(name, _PASS | os.O_NOFOLLOW, dir_fd=inside)
    try:
        itself = Path(f"/proc/self/fd/{passed}")
        if os.fstat(passed).st_uid == os.geteuid():
            itself.chmod(0o700)
        handle = os.open(itself, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(passed)
    try:
        yield handle
    finally:
        os.close(handle)


def _is_ours(found: os.stat_result, inode: int | None) -> bool:
    return (
        found.st_uid == os.geteuid()
        and stat.S_IMODE(found.st_mode) in (MODE, OPEN_MODE)
        and inode in (None, found.st_ino)
    )
