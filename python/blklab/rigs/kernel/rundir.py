"""A guest's run directory, as this machine sees it.

It is a file system in memory, of a fixed size, which ends with the guest: no part of it is on a
disk, however blklab ends. A hostile process writes to it, so its contents are not trusted: a file
is opened only if it is a regular file under this name, and read only up to a bound.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping
from typing import BinaryIO

from blklab.errors import RunError

_BLOCK_BYTES = 1 << 20


class RunDirectory:
    """A directory by its descriptor; this machine has no path to it.

    New files there belong to `owner`, if that is another user than this process's.
    """

    def __init__(self, handle: int, owner: int | None) -> None:
        self._handle = handle
        self._owner = owner

    def close(self) -> None:
        """Close it; its contents disappear with the guest."""
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1

    def put(self, files: Mapping[str, bytes | None]) -> None:
        """Write files, which may be programs, before the guest begins; None is a directory."""
        for name, content in files.items():
            if content is None:
                os.mkdir(name, 0o755, dir_fd=self._handle)
            else:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                with os.fdopen(os.open(name, flags, 0o755, dir_fd=self._handle), "wb") as file:
                    file.write(content)
            if self._owner is not None:
                os.chown(name, self._owner, self._owner, dir_fd=self._handle)

    def open(self, name: str) -> BinaryIO:
        """A file to read. FileNotFoundError; RunError if it is not a regular file."""
        assert "/" not in name, name
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            handle = os.open(name, flags, dir_fd=self._handle)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise RunError(
                f"the guest left {name}, which is not a file: {error.strerror}"
            ) from error
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise RunError(f"the guest left {name}, which is not a file")
        return os.fdopen(handle, "rb")

    def read(self, name: str, bytes_max: int) -> bytes:
        """A file's bytes. FileNotFoundError; RunError if it is not a regular file or too long."""
        with self.open(name) as file:
            found = file.read(bytes_max + 1)
        if len(found) > bytes_max:
            raise RunError(f"the guest left {name} of more than {bytes_max} bytes")
        return found

    def copy(self, name: str, to: BinaryIO) -> None:
        """A file's bytes, if it exists. RunError if it is longer than the directory's size, because
        a file with holes may have any length."""
        left = self.size_mib << 20
        with contextlib.suppress(FileNotFoundError), self.open(name) as file:
            while block := file.read(_BLOCK_BYTES):
                left -= len(block)
                if left < 0:
                    raise RunError(f"the guest left {name} of more than {self.size_mib} MiB")
                to.write(block)
        to.flush()

    @property
    def size_mib(self) -> int:
        """Its size."""
        found = os.fstatvfs(self._handle)
        return found.f_blocks * found.f_frsize >> 20

    @property
    def is_full(self) -> bool:
        """Whether it is full."""
        return os.fstatvfs(self._handle).f_bavail == 0
