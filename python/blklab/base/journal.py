"""Records of changes to undo, written before each change, and the process that makes it.

A directory with two files for each borrowed thing:

``KEY.json``, the record of its original state, which is on the disk before the first change and is
removed after the state is restored; and ``KEY.lock``, which the process holds (``flock``) while it
runs. A record with a free lock is a leftover of a killed process, and any blklab may undo it.
``KEY.new`` is a record that is being written; a process killed at this point has changed nothing,
and the next process with the lock drops the file. A record has ``kind``, ``boot_id`` and ``pid`` of
its writer, and the fields of its kind.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from blklab.base import homes, trust
from blklab.base.text import shown
from blklab.errors import InputError, RunError

VARIABLE = "BLKLAB_JOURNAL"
"""Environment variable that names the directory."""
OF_ROOT = Path("/var/lib/blklab/journal")

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BYTES_MAX = 1 << 20


class BusyError(RunError):
    """Another running process uses it."""


def default_directory() -> Path:
    """`VARIABLE`, else `OF_ROOT` for root, else the user's own. InputError without a home
    directory."""
    if own := os.environ.get(VARIABLE):
        return Path(own)
    if os.geteuid() == 0:
        return OF_ROOT
    return homes.state() / "blklab/journal"


def boot_id() -> str:
    """The unique id of this boot."""
    return _BOOT_ID.read_text().strip()


@dataclass(frozen=True)
class Journal:
    """The records in one directory."""

    directory: Path

    def keys(self) -> list[str]:
        """Keys of all records, sorted."""
        return self._names(".json")

    def unfinished(self) -> list[str]:
        """Keys of records that a process is writing, or was writing when it was killed, sorted."""
        return self._names(".new")

    @contextlib.contextmanager
    def locked(self, key: str, what: str, *, once: bool = False) -> Iterator[None]:
        """Lock `key`; BusyError, which names it as `what`, if another process holds the lock. The
        lock file of a key that is used `once` is removed with its record."""
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise _unusable(self.directory, error) from error
        with self._inside() as inside:
            try:
                # The file stays: if it were removed and created anew, two processes could hold the
                # lock.
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                handle = os.open(_lock(key), flags, 0o600, dir_fd=inside)
            except OSError as error:
                raise _unusable(self.directory, error) from error
            try:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    by = os.pread(handle, 20, 0).decode(errors="replace").strip()
                    raise BusyError(
                        f"{what}: in use by another blklab{f', process {shown(by)}' if by else ''}"
                    ) from None
                try:
                    os.ftruncate(handle, 0)
                    os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
                    _unlink(_partial(key), inside)
                except OSError as error:
                    raise _unusable(self.directory, error) from error
                try:
                    yield
                finally:
                    if once and not _is_there(_record(key), inside):
                        _unlink(_lock(key), inside)
            finally:
                os.close(handle)

    def write(self, key: str, kind: str, record: Mapping[str, Any]) -> None:
        """Write the record; it is on the disk when this returns. Needs the lock."""
        whole = {"kind": kind, "boot_id": boot_id(), "pid": os.getpid(), **record}
        partial = _partial(key)
        with self._inside() as inside:
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                handle = os.open(partial, flags, 0o600, dir_fd=inside)
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    json.dump(whole, file, indent=1)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(partial, _record(key), src_dir_fd=inside, dst_dir_fd=inside)
                os.fsync(inside)
            except OSError as error:
                with contextlib.suppress(OSError):
                    _unlink(partial, inside)
                raise _unusable(self.directory, error) from error

    def read(self, key: str) -> dict[str, Any] | None:
        """The record, None if there is none. RunError if it cannot be read as one, or another user
        could have written it."""
        try:
            with self._inside() as inside, _opened(_record(key), inside) as file:
                found = json.loads(file.read(_BYTES_MAX))
            if not (isinstance(found, dict) and isinstance(found.get("boot_id"), str)):
                raise ValueError("no boot_id")
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise RunError(
                f"{self.directory / _record(key)}: not a record of blklab's ({shown(str(error))}); "
                "set the disk by hand and remove it"
            ) from error
        return found

    def remove(self, key: str) -> None:
        """Remove the record after its change is undone. Needs the lock."""
        with contextlib.suppress(FileNotFoundError), self._inside() as inside:
            os.unlink(_record(key), dir_fd=inside)
            os.fsync(inside)

    def _names(self, ending: str) -> list[str]:
        try:
            with self._inside() as inside:
                names = os.listdir(inside)  # noqa: PTH208 (of a handle)
        except FileNotFoundError:
            return []
        return sorted(name.removesuffix(ending) for name in names if name.endswith(ending))

    @contextlib.contextmanager
    def _inside(self) -> Iterator[int]:
        """A handle of the directory. FileNotFoundError if there is none; InputError if it cannot
        be used, or if another user can write in it: that user could make blklab change any file."""
        try:
            handle = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _unusable(self.directory, error) from error
        try:
            if why := trust.why_not(os.fstat(handle)):
                raise InputError(
                    f"{self.directory}: not trusted as the journal of changes to undo: "
                    f"{why}; name another by {VARIABLE}"
                )
            yield handle
        finally:
            os.close(handle)


@contextlib.contextmanager
def _opened(name: str, inside: int) -> Iterator[IO[str]]:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, dir_fd=inside), encoding="utf-8") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is no file")
        if why := trust.why_not(found):
            raise ValueError(why)
        yield file


def _is_there(name: str, inside: int) -> bool:
    try:
        os.stat(name, dir_fd=inside, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _unlink(name: str, inside: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=inside)


def _partial(key: str) -> str:
    return f"{key}.new"


def _record(key: str) -> str:
    return f"{key}.json"


def _lock(key: str) -> str:
    return f"{key}.lock"


def _unusable(directory: Path, error: OSError) -> InputError:
    return InputError(
        f"{directory}: cannot hold the journal of changes to undo: {error.strerror}; "
        f"name another by {VARIABLE}"
    )
