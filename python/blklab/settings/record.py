"""The record of applied settings and previous values, written before any change.

``/var/lib/blklab/applied.json``, or in the directory that ``BLKLAB_STATE`` names. Entries are a
stack: the latest is undone first, which restores the state before it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from blklab.base import trust
from blklab.base.files import sync_directory, write_whole
from blklab.base.journal import Journal, default_directory
from blklab.base.text import shown
from blklab.errors import InputError, RunError
from blklab.host.devices.queue import is_setting
from blklab.host.roots import HERE, Roots
from blklab.rigs.live.borrowed import KIND
from blklab.settings import choice, keys, profile
from blklab.settings.keys import Key
from blklab.settings.rule import Part

_FORMAT = 1
_BYTES_MAX = 16 << 20
_VALUE_MAX = 256
_NAME_MAX = 64
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
VARIABLE = "BLKLAB_STATE"


@dataclass
class Before:
    """One disk, before the change and right after it."""

    name: str
    identity: str
    """Its identity; empty if it reports none."""
    before: dict[str, str]
    after: dict[str, str] = field(default_factory=dict)


@dataclass
class AppliedEntry:
    """One `blklab apply`."""

    number: int
    time: str
    key: Key
    settings: dict[str, str]
    disks: list[Before]
    tuned: list[str] | None = None
    """The previously active profiles, if a profile of ours replaced them."""
    profile: str = ""
    """The whole profile of tuned as of this entry."""
    done: bool = False
    """False while it is being applied; an entry of an interrupted apply can be undone."""

    @property
    def part(self) -> Part:
        """The entry as a part of the rules file."""
        return Part(self.key, self.settings)


def path(roots: Roots) -> Path:
    """The file's path."""
    own = os.environ.get(VARIABLE)
    return (Path(own) if own else roots.var / "lib/blklab") / "applied.json"


@contextlib.contextmanager
def alone(roots: Roots) -> Iterator[None]:
    """A lock: one `apply` or `undo` at a time. RunError if another process holds it, InputError
    if other users may write in its directory."""
    directory = path(roots).parent
    directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    # The directory itself is the lock: it leaves no file behind, and a killed process frees it.
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # A record here would be refused later.
        if why := trust.why_not(os.fstat(handle)):
            raise InputError(f"{directory}: not trusted for the record of applied settings: {why}")
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise RunError(f"{directory}: another blklab is running apply or undo") from None
    finally:
        os.close(handle)


@contextlib.contextmanager
def undisturbed(disks: Iterable[str], roots: Roots) -> Iterator[None]:
    """Keeps live runs from these disks meanwhile. BusyError if one uses them; InputError if a
    killed run has left a disk changed, because the changed state would be recorded as the original
    one."""
    own = roots.var / "lib/blklab/journal"
    journal = Journal(default_directory() if roots.var == HERE.var else own)
    with contextlib.ExitStack() as stack:
        for name in sorted(disks):
            key = f"{KIND}-{name}"
            stack.enter_context(journal.locked(key, shown(name)))
            if journal.read(key) is not None:
                raise InputError(
                    f"{shown(name)}: a run that was killed has left it changed; "
                    "first: blklab restore"
                )
        yield


def load(roots: Roots) -> list[AppliedEntry]:
    """All entries, the latest last. InputError if the file is not ours."""
    place = path(roots)
    try:
        document = json.loads(_text(place))
        if document["format"] != _FORMAT:
            found = shown(str(document["format"]))
            raise InputError(f"{place}: format {found}, expected {_FORMAT}")
        return [_entry(one) for one in document["entries"]]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"{place}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{place}: not what blklab has written ({shown(str(error))})") from error


def save(entries: list[AppliedEntry], roots: Roots) -> None:
    """Replace the file; remove it with the last entry. RunError if it cannot be written, InputError
    if it could not be read again."""
    place = path(roots)
    if not entries:
        with contextlib.suppress(FileNotFoundError):
            place.unlink()
            sync_directory(place.parent)
        return
    for entry in entries:
        # An entry that `load` refuses could never be undone.
        _check(entry)
    document = {"format": _FORMAT, "entries": [asdict(entry) for entry in entries]}
    write_whole(place, json.dumps(document, indent=1) + "\n", 0o644)


def _text(place: Path) -> str:
    """The content of the file. InputError if another user than this one or root can have written
    it; OSError."""
    parent = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handle = os.open(place.name, flags, dir_fd=parent)
        with os.fdopen(handle, encoding="utf-8") as file:
            for what, found in ((place.parent, os.fstat(parent)), (place, os.fstat(handle))):
                if why := trust.why_not(found):
                    raise InputError(
                        f"{what}: not trusted for the record of applied settings: {why}"
                    )
            if not stat.S_ISREG(found.st_mode):
                raise InputError(f"{place}: expected a file")
            return file.read(_BYTES_MAX)
    finally:
        os.close(parent)


def _entry(row: Mapping[str, Any]) -> AppliedEntry:
    key = Key(row["key"]["kind"], tuple(row["key"]["matches"]))
    disks = [Before(**one) for one in row["disks"]]
    entry = AppliedEntry(**{**row, "key": key, "disks": disks, "settings": dict(row["settings"])})
    _check(entry)
    return entry


def _check(entry: AppliedEntry) -> None:
    """InputError or TypeError if we could not have written it: its values go into rules, profiles
    and sysfs."""
    number, tuned = entry.number, entry.tuned
    if type(number) is not int or type(entry.done) is not bool or number < 1:
        raise TypeError("an entry without a number")
    if not _TIME.fullmatch(entry.time):
        raise TypeError("an entry without a time")
    keys.check(entry.key)
    choice.check(entry.settings)
    profile.check(entry.profile)
    if tuned is not None:
        if type(tuned) is not list:
            raise TypeError("no list of profiles")
        profile.check_names(tuned)
    for disk in entry.disks:
        odd = not disk.name.isprintable() or "/" in disk.name or len(disk.name) > _NAME_MAX
        if odd or disk.name in ("", ".", ".."):
            raise InputError(f"not the name of a disk: {shown(disk.name)}")
        if not keys.is_identity(disk.identity):
            raise InputError(f"not what a disk calls itself: {shown(disk.identity)}")
        for picture in (disk.before, disk.after):
            for name, value in picture.items():
                if not is_setting(name) or len(value) > _VALUE_MAX or not value.isprintable():
                    raise InputError(f"not a setting of a disk: {shown(name)}={shown(value)}")
