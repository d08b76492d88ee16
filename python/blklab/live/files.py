"""Test files in a directory of the user's: written out once, removed whatever happens.

They lie in a directory of their own, ``.blklab-...``, whose path the journal knows before it is
made: what was left by ``kill -9`` or a reboot is found by the next start, and nothing else is
ever removed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab.devices.text import shown
from blklab.errors import InputError, RunError
from blklab.live.journal import Journal
from blklab.live.signals import Signals
from blklab.units import size_text

KIND = "files"
"""Of its records."""
PREFIX = ".blklab-"
WORK = "work"
"""What a program that is not fio has for itself in there, and may fill as it likes."""
_MODES = (0o700, 0o711)

KEEP_FREE = 0.10
"""Of a file system, at least: it slows down when it is nearly full, and others write too."""
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class LaidFiles:
    """Their directory, which nobody else may read; files are called ``0``, ``1`` and so on."""

    directory: Path

    def lay_out(self, sizes: Sequence[int], step: Callable[[int], None]) -> None:
        """See to it that file number i has `sizes[i]` bytes, all of them written; larger ones
        stay. `step` is told of bytes as they are written, and may raise.

        What is written cannot be compressed, and no block is like another.
        RunError with one line if the file system has no room after all.
        """
        for number, size in enumerate(sizes):
            path = self.path(number)
            try:
                with path.open("ab") as file:
                    while (left := size - file.tell()) > 0:
                        file.write(os.urandom(min(left, _BLOCK_BYTES)))
                        step(min(left, _BLOCK_BYTES))
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                raise RunError(
                    f"{shown(str(self.directory.parent))}: a test file of {size_text(size)} could "
                    f"not be written: {error.strerror}"
                ) from error

    @contextlib.contextmanager
    def work(self, *, others: bool) -> Iterator[Path]:
        """A new directory of a program's own; all that is in it goes when the ``with`` ends. If
        `others`, other users may pass through to what is theirs in it."""
        self.directory.chmod(_MODES[others])
        place = self.directory / WORK
        place.mkdir(mode=_MODES[others])
        try:
            yield place
        finally:
            shutil.rmtree(place)

    def path(self, number: int) -> Path:
        """Of one file."""
        return self.directory / str(number)


def room_bytes(directory: Path) -> int:
    """How much test files may take there, so that `KEEP_FREE` stays free. InputError if the
    directory is none that can be written to."""
    try:
        found = os.statvfs(directory)
    except OSError as error:
        raise InputError(f"{shown(str(directory))}: {error.strerror}") from error
    if not directory.is_dir():
        raise InputError(f"{shown(str(directory))}: not a directory")
    if found.f_flag & os.ST_RDONLY:
        raise InputError(f"{shown(str(directory))}: its file system is mounted read-only")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise InputError(f"{shown(str(directory))}: no permission to write in it")
    keep = int(found.f_blocks * KEEP_FREE)
    return max(found.f_bavail - keep, 0) * found.f_frsize


@contextlib.contextmanager
def laid_in(
    directory: Path, journal: Journal, signals: Signals, told: list[str]
) -> Iterator[LaidFiles]:
    """A new directory for test files in `directory`; it goes when the ``with`` ends."""
    name = secrets.token_hex(6)
    key = f"{KIND}-{name}"
    place = directory.absolute() / f"{PREFIX}{name}"
    with (
        journal.locked(key, shown(str(place)), once=True),
        signals.undoing(lambda: told.extend(_remove(place, journal, key))),
    ):
        journal.write(key, KIND, {"directory": str(place)})
        try:
            place.mkdir(mode=0o700)
        except OSError as error:
            raise InputError(f"{shown(str(directory))}: {error.strerror}") from error
        yield LaidFiles(place)


def recover(journal: Journal, key: str) -> list[str]:
    """Remove the test files of record `key`; what was done or not, a line each. With the lock
    held."""
    record = journal.read(key)
    if record is None:
        return []
    place = _checked(record, journal, key)
    there = place.exists()
    problems = _remove(place, journal, key)
    return problems or ([f"{shown(str(place))}: removed"] if there else [])


def _remove(place: Path, journal: Journal, key: str) -> list[str]:
    """All that `LaidFiles` makes, and nothing that was put in the directory's place."""
    try:
        handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        journal.remove(key)
        return []
    except OSError as error:
        return [f"{shown(str(place))}: not removed: {error.strerror}"]
    try:
        found = os.fstat(handle)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) not in _MODES:
            return [f"{shown(str(place))}: not removed: it is not the directory that was made"]
        for name in filter(str.isdecimal, os.listdir(handle)):  # noqa: PTH208 (of a handle)
            os.unlink(name, dir_fd=handle)
        with contextlib.suppress(FileNotFoundError):
            # It follows no symbolic link.
            shutil.rmtree(WORK, dir_fd=handle)
        place.rmdir()
    except OSError as error:
        return [f"{shown(str(place))}: not removed: {error.strerror}"]
    finally:
        os.close(handle)
    journal.remove(key)
    return []


def _checked(record: Mapping[str, Any], journal: Journal, key: str) -> Path:
    text = record.get("directory")
    name = key.removeprefix(f"{KIND}-")
    if isinstance(text, str) and Path(text).is_absolute() and Path(text).name == f"{PREFIX}{name}":
        return Path(text)
    raise RunError(f"{journal.directory / key}.json: not a record of test files")
