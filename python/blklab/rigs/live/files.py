"""Test files in a directory of the user's: written once, removed whatever happens.

They are in a separate directory, ``.blklab-...``. Its path and file system are in the journal
before it is created: so the next start finds leftovers of ``kill -9`` or a reboot, even if the file
system is mounted elsewhere by then, and removes nothing else.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from blklab.base import owned, trust
from blklab.base.journal import Journal
from blklab.base.signals import Signals
from blklab.base.text import shown
from blklab.base.units import size_text
from blklab.errors import InputError, RunError
from blklab.rigs.live import whereabouts
from blklab.rigs.live.whereabouts import Inside

KIND = "files"
"""The kind of its records."""
PREFIX = ".blklab-"
WORK = "work"
"""The subdirectory for a program other than fio, which may fill it freely."""

KEEP_FREE = 0.10
"""The share of a file system that stays free: a nearly full one slows down, and other programs
write too."""
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class LaidFiles:
    """Their directory, closed to other users; files are named ``0``, ``1`` and so on."""

    place: owned.OwnedPlace
    handle: int

    @property
    def directory(self) -> Path:
        """A path that stays valid if the directory is renamed, for this process and those that
        start in it."""
        return Path(f"/proc/{os.getpid()}/fd/{self.handle}")

    def lay_out(self, sizes: Sequence[int], step: Callable[[int], None]) -> None:
        """Ensure that file number i has `sizes[i]` bytes, all of them written; larger files stay.

        `step` receives the number of written bytes, and may raise. The data cannot be compressed,
        and no two blocks are equal. RunError with one line if the file system is full after all.
        """
        for number, size in enumerate(sizes):
            try:
                with os.fdopen(self._opened(number), "ab") as file:
                    while (left := size - file.tell()) > 0:
                        file.write(os.urandom(min(left, _BLOCK_BYTES)))
                        step(min(left, _BLOCK_BYTES))
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                raise RunError(
                    f"{shown(str(self.place.path.parent))}: a test file of {size_text(size)} could "
                    f"not be written: {error.strerror}"
                ) from error

    def _opened(self, number: int) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(str(number), flags, 0o600, dir_fd=self.handle)

    @contextlib.contextmanager
    def work(self, *, others: bool) -> Iterator[Path]:
        """A new directory for a program; the end of the ``with`` removes it with its contents.

        If `others`, other users may pass through to their own files in it. InputError if another
        user could replace it, because programs use paths.
        """
        place = self.place.path / WORK
        if why := trust.replaceable_part(place):
            raise InputError(
                f"{shown(str(place.parent.parent))}: {shown(why)}, and so lead a program astray; "
                "expected a directory of your own"
            )
        mode = owned.OPEN_MODE if others else owned.MODE
        os.fchmod(self.handle, mode)
        os.mkdir(WORK, mode, dir_fd=self.handle)
        try:
            yield place
        finally:
            owned.empty(self.handle, WORK.__eq__)

    def path(self, number: int) -> Path:
        """The size of one file."""
        return self.directory / str(number)


def room_bytes(directory: Path) -> int:
    """The space for test files that leaves `KEEP_FREE` free. InputError if the directory is not
    writable."""
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
    directory: Path,
    journal: Journal,
    signals: Signals,
    told: list[str],
    identity: tuple[int, int] | None = None,
) -> Iterator[LaidFiles]:
    """A new directory for test files in `directory`; the end of the ``with`` removes it.

    RunError if the directory does not have this `identity` (`Target.identity`), or if its file
    system is no longer mounted: the files would be on another disk, or never be found.
    """
    name = secrets.token_hex(6)
    key = f"{KIND}-{name}"
    with contextlib.ExitStack() as stack:
        try:
            place = stack.enter_context(owned.at(directory, f"{PREFIX}{name}"))
        except OSError as error:
            raise InputError(f"{shown(str(directory))}: {error.strerror}") from error
        _check_still_there(place.parent, directory, identity)
        path = place.path
        inside = whereabouts.inside(place.parent)
        _check_still_there(place.parent, directory, identity)
        record: dict[str, Any] = {
            "directory": str(path),
            "inode": None,
            "inside": inside and replace(inside, path=f"{inside.path}/{path.name}").to_json(),
        }
        stack.enter_context(journal.locked(key, shown(str(path)), once=True))
        made: list[int] = []
        stack.callback(lambda: list(map(os.close, made)))
        stack.enter_context(
            signals.undoing(lambda: told.extend(_give_back(place, path, made, journal, key)))
        )
        journal.write(key, KIND, record)
        try:
            made.append(place.make())
        except OSError as error:
            raise InputError(f"{shown(str(directory))}: {error.strerror}") from error
        journal.write(key, KIND, record | {"inode": os.fstat(made[0]).st_ino})
        yield LaidFiles(place, made[0])


def _check_still_there(handle: int, directory: Path, identity: tuple[int, int] | None) -> None:
    """RunError if the handle's directory is another one, or no longer has a path."""
    found = os.fstat(handle)
    try:
        named = owned.path_of(handle).stat()
    except OSError:
        named = None
    is_it = identity in (None, (found.st_dev, found.st_ino))
    if not is_it or named is None or not os.path.samestat(found, named):
        raise RunError(f"{shown(str(directory))}: was unmounted or replaced while the run began")


def recover(journal: Journal, key: str) -> list[str]:
    """Remove the test files of record `key`; returns a line for each result. Needs the lock. The
    record stays as long as its file system is not mounted."""
    record = journal.read(key)
    if record is None:
        return []
    path, inode, inside = _checked(record, journal, key)
    elsewhere = whereabouts.found(inside) if inside is not None else []
    for place in dict.fromkeys((path, *elsewhere)):
        try:
            with owned.at(place.parent, place.name) as found:
                lines = _remove(found, place, inode)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            return [f"{shown(str(place))}: not removed: {error.strerror}"]
        if not lines:
            journal.remove(key)
        return lines or [f"{shown(str(place))}: removed"]
    if inside is not None and not elsewhere:
        return [
            f"{shown(str(path))}: not removed: its file system, {shown(inside.text)}, is not "
            f"mounted; once it is: blklab restore; if it never will be: blklab restore --forget "
            f"{shown(str(path))}"
        ]
    journal.remove(key)
    return []


def _give_back(
    place: owned.OwnedPlace, path: Path, made: Sequence[int], journal: Journal, key: str
) -> list[str]:
    """Removes the directory at the end of the run that made it."""
    try:
        lines = _emptied(place, path, made[0]) if made else _remove(place, path, None)
    except FileNotFoundError:
        lines = []
    if not lines:
        journal.remove(key)
    return lines


def _remove(place: owned.OwnedPlace, path: Path, inode: int | None) -> list[str]:
    """A handle of the directory made there. FileNotFoundError if its name does not exist."""
    try:
        handle = place.find(inode)
    except FileNotFoundError:
        raise
    except OSError as error:
        return [f"{shown(str(path))}: not removed: {error.strerror}"]
    try:
        # Before its inode is on record, nothing has been written to it.
        return _emptied(place, path, handle, only_empty=inode is None)
    finally:
        os.close(handle)


def _emptied(
    place: owned.OwnedPlace, path: Path, handle: int, *, only_empty: bool = False
) -> list[str]:
    """Remove the files of `LaidFiles`, and the directory."""
    try:
        if not only_empty:
            for name in filter(str.isdecimal, os.listdir(handle)):
                os.unlink(name, dir_fd=handle)
            owned.empty(handle, WORK.__eq__)
        place.remove(handle)
    except OSError as error:
        return [f"{shown(str(path))}: not removed: {error.strerror}"]
    return []


def _checked(
    record: Mapping[str, Any], journal: Journal, key: str
) -> tuple[Path, int | None, Inside | None]:
    text, inode = record.get("directory"), record.get("inode")
    wanted = f"{PREFIX}{key.removeprefix(f'{KIND}-')}"
    try:
        inside = record.get("inside")
        found = None if inside is None else Inside.from_json(inside)
        if (
            isinstance(text, str)
            and "\0" not in text
            and Path(text).is_absolute()
            and Path(text).name == wanted
            and (found is None or Path(found.path).name == wanted)
            and (inode is None or type(inode) is int)
        ):
            return Path(text), inode, found
    except ValueError:
        pass
    raise RunError(f"{journal.directory / key}.json: not a record of test files")
