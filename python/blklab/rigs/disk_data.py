"""A file that keeps a disk model's data between runs.

The data are as large as the disk, and writes overwrite the file. So a file is used only if it is
new, or if blklab made it: then it has exactly the disk's size and a mark, an extended attribute,
which stays with the file and does not change its content. A disk that uses the file holds a lock on
it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path

from blklab.base.text import shown
from blklab.errors import InputError, RunError

_MARK = "user.blklab.disk"
_NO_DATA = errno.ENXIO


class DiskData:
    """A file for one disk, locked until it is closed; :meth:`fileno` can be passed on."""

    def __init__(self, path: str | Path, capacity_bytes: int) -> None:
        """Open the file, or create it: InputError if it is not blklab's, RunError if it is in
        use."""
        self.path = Path(path).absolute()
        self._handle = -1
        try:
            self._open(capacity_bytes)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise RunError(f"--data: {shown(str(path))}: {error.strerror}") from error
            raise

    def _open(self, capacity_bytes: int) -> None:
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            self._handle = os.open(self.path, flags | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            if not stat.S_ISREG(os.lstat(self.path).st_mode):
                raise InputError(f"--data: {shown(str(self.path))} is not a regular file") from None
            self._handle = os.open(self.path, flags)
            self._lock()
            self._check(capacity_bytes)
        else:
            self._lock()
            try:
                os.setxattr(self._handle, _MARK, str(capacity_bytes).encode())
                os.ftruncate(self._handle, capacity_bytes)
            except OSError as error:
                self.path.unlink()
                if error.errno == errno.EOPNOTSUPP:
                    raise InputError(
                        f"--data: {shown(str(self.path))}: its file system has no extended "
                        "attributes, by which blklab knows its own files; expected another place"
                    ) from None
                raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(
                f"--data: {shown(str(self.path))} is in use by another disk; "
                "each needs a file of its own"
            ) from None

    def _check(self, capacity_bytes: int) -> None:
        found = os.fstat(self._handle)
        name = shown(str(self.path))
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"--data: {name} is not a regular file")
        try:
            mark = os.getxattr(self._handle, _MARK)
        except OSError:
            mark = b""
        if not mark:
            raise InputError(
                f"--data: {name} was not made by blklab, and is not changed; expected a new name"
            )
        if found.st_size != capacity_bytes or mark != str(capacity_bytes).encode():
            raise InputError(
                f"--data: {name} is of another disk: it has {found.st_size} bytes, this disk "
                f"{capacity_bytes}; expected a new name"
            )

    def fileno(self) -> int:
        """Its descriptor, which holds the lock."""
        return self._handle

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written to it yet."""
        try:
            os.lseek(self._handle, 0, os.SEEK_DATA)
        except OSError as error:
            if error.errno == _NO_DATA:
                return True
            raise
        return False

    def hand_over(self, user: int) -> None:
        """Give the file to `user`, if it belongs to this process's user; InputError otherwise."""
        found = os.fstat(self._handle).st_uid
        if found not in (os.geteuid(), user):
            raise InputError(
                f"--data: {shown(str(self.path))} belongs to user {found}; expected to be run by "
                "that user"
            )
        os.fchown(self._handle, user, -1)

    def close(self) -> None:
        """Release the lock."""
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1
