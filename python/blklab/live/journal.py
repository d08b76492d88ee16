"""What has to be undone, written down before it is done; and who is doing it.

A directory with two files for each thing that is borrowed: ``KEY.json``, the record of how it was,
which is on the disk before the first change and goes when all is as it was; and ``KEY.lock``,
which is held (``flock``) as long as its process lives. A record whose lock is free was left by a
process that was killed, and is anybody's to make good. ``KEY.new`` is a record that is being
written; of a process that was killed then, nothing is changed, and the next with the lock drops it.

A record holds ``kind``, ``boot_id`` and ``pid`` of who wrote it, and what the kind needs.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab.devices.text import shown
from blklab.errors import InputError, RunError
from blklab.files import sync_directory

VARIABLE = "BLKLAB_JOURNAL"
"""Environment variable that names the directory."""
OF_ROOT = Path("/var/lib/blklab/journal")

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BYTES_MAX = 1 << 20


class BusyError(RunError):
    """Another process that lives is at it."""


def default_directory() -> Path:
    """`VARIABLE`, else `OF_ROOT` for root, else the user's own."""
    if own := os.environ.get(VARIABLE):
        return Path(own)
    if os.geteuid() == 0:
        return OF_ROOT
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "blklab/journal"


def boot_id() -> str:
    """Of this boot, which no other has."""
    return _BOOT_ID.read_text().strip()


@dataclass(frozen=True)
class Journal:
    """The records in one directory."""

    directory: Path

    def keys(self) -> list[str]:
        """Of all records there are, sorted."""
        return self._names(".json")

    def unfinished(self) -> list[str]:
        """Of what somebody is writing down, or was when it was killed, sorted."""
        return self._names(".new")

    @contextlib.contextmanager
    def locked(self, key: str, what: str, *, once: bool = False) -> Iterator[None]:
        """Nobody else has `key` meanwhile; `what` it is, for the message of BusyError. Of a key
        that is used `once`, nothing is kept when its record has gone."""
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Kept for the next: two could hold the lock of a file that is removed and made anew.
            handle = os.open(self._lock(key), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise _unusable(self.directory, error) from error
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pid = os.pread(handle, 20, 0).decode(errors="replace").strip()
                raise BusyError(
                    f"{what}: in use by another blklab{f', process {shown(pid)}' if pid else ''}"
                ) from None
            try:
                os.ftruncate(handle, 0)
                os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
                self._partial(key).unlink(missing_ok=True)
            except OSError as error:
                raise _unusable(self.directory, error) from error
            try:
                yield
            finally:
                if once and not self._record(key).exists():
                    self._lock(key).unlink(missing_ok=True)
        finally:
            os.close(handle)

    def write(self, key: str, kind: str, record: Mapping[str, Any]) -> None:
        """Put the record down; it is on the disk when this returns. Only with the lock held."""
        whole = {"kind": kind, "boot_id": boot_id(), "pid": os.getpid(), **record}
        partial = self._partial(key)
        try:
            handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(whole, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self._record(key))
            sync_directory(self.directory)
        except OSError as error:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
            raise _unusable(self.directory, error) from error

    def read(self, key: str) -> dict[str, Any] | None:
        """The record, None if there is none. RunError if it cannot be read as one."""
        path = self._record(key)
        try:
            with path.open(encoding="utf-8") as file:
                found = json.loads(file.read(_BYTES_MAX))
            if not (isinstance(found, dict) and isinstance(found.get("boot_id"), str)):
                raise ValueError("no boot_id")
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise RunError(
                f"{path}: not a record of blklab's ({shown(str(error))}); set the disk by hand "
                "and remove it"
            ) from error
        return found

    def remove(self, key: str) -> None:
        """What it says has been undone. Only with the lock held."""
        with contextlib.suppress(FileNotFoundError):
            self._record(key).unlink()
            sync_directory(self.directory)

    def _names(self, ending: str) -> list[str]:
        try:
            names = [path.name for path in self.directory.iterdir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unusable(self.directory, error) from error
        return sorted(name.removesuffix(ending) for name in names if name.endswith(ending))

    def _partial(self, key: str) -> Path:
        return self.directory / f"{key}.new"

    def _record(self, key: str) -> Path:
        return self.directory / f"{key}.json"

    def _lock(self, key: str) -> Path:
        return self.directory / f"{key}.lock"


def _unusable(directory: Path, error: OSError) -> InputError:
    return InputError(
        f"{directory}: no place for the journal of what is to be undone: {error.strerror}; "
        f"name another by {VARIABLE}"
    )
