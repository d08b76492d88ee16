"""One disk's queue in sysfs: read its settings, change one and read it back.

An *attribute* is a file below ``/sys/block/DISK/queue``, by its name there: ``scheduler``,
``nr_requests``, ``iosched/fifo_batch``. Values are the kernel's own text, without the line end; the
value of ``scheduler``, which lists all schedulers, is the one in use.

The kernel's side, as of Linux 6.18 (``block/blk-sysfs.c``, ``block/elevator.c`` and the
schedulers): a new scheduler starts with its defaults and changes ``nr_requests`` and, for bfq,
``wbt_lat_usec``; a new ``nr_requests`` resets mq-deadline's ``async_depth``; bfq's
``strict_guarantees`` raises ``slice_idle``; a change of the queue's limits (``max_sectors_kb``,
``rotational``, ``iostats``, ``add_random``) raises ``read_ahead_kb`` to its default at least
(``blk_apply_bdi_limits``), which `Queue.write` reverts. `in_order` is the order in which no later
setting undoes an earlier one. The kernel clips many numbers without an error, so each written value
is read back.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from blklab.base.text import shown
from blklab.errors import InputError, RunError, nearest
from blklab.host import reading
from blklab.host.roots import HERE, Roots

SCHEDULER = "scheduler"
IOSCHED = "iosched/"

SETTABLE = (
    "nr_requests",
    "read_ahead_kb",
    "wbt_lat_usec",
    "async_depth",
    "max_sectors_kb",
    "nomerges",
    "rq_affinity",
    "add_random",
    "iostats",
    "rotational",
)
"""Attributes that an administrator sets besides the scheduler and its tunables. Lists leave out
those that the kernel or the disk does not have."""

WITH_SCHEDULER = ("nr_requests", "async_depth", "wbt_lat_usec")
"""The attributes that a change of scheduler resets, besides its own tunables."""

_FIRST = (SCHEDULER, "nr_requests", f"{IOSCHED}strict_guarantees")
_READ_AHEAD = "read_ahead_kb"
_LIMITS = ("max_sectors_kb", "rotational", "iostats", "add_random")
_WORD = re.compile(r"[\w-][\w.-]{0,63}", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9]{1,30}")
_GONE = (errno.ENODEV, errno.ENXIO)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


class QueueError(RunError):
    """An error about one attribute of one disk; the message is one line."""

    def __init__(self, disk: str, attribute: str, message: str) -> None:
        super().__init__(f"{shown(disk)}: {shown(attribute)}: {message}")
        self.disk = disk
        self.attribute = attribute


class MissingError(QueueError):
    """This disk, or this kernel, does not have the attribute."""


class DeniedError(QueueError):
    """No permission for this user, or for any user; the message contains the command to type."""


class RefusedError(QueueError):
    """The kernel refuses the value."""


class DifferentError(QueueError):
    """The kernel accepted the value and changed it."""

    def __init__(self, disk: str, attribute: str, wanted: str, found: str) -> None:
        super().__init__(disk, attribute, f"set to {shown(wanted)} and read back as {shown(found)}")
        self.wanted = wanted
        self.found = found


class GoneError(QueueError):
    """The disk is no longer there, or another has its name."""

    def __init__(self, disk: str, attribute: str) -> None:
        super().__init__(disk, attribute, "the disk is gone")


@dataclass(frozen=True)
class Schedulers:
    """The contents of ``queue/scheduler``."""

    active: str
    """May be ``none``; empty if the kernel marks no scheduler as active."""
    available: tuple[str, ...]
    """Built in or loaded; without modules that are not loaded yet."""


@dataclass(frozen=True)
class Queue:
    """The queue of a whole disk. Get one from `find`, `named` or `of_disk`."""

    name: str
    """As in ``/sys/block``, where ``/`` is written ``!``."""
    disk: Path
    """The disk's directory in sysfs."""
    sequence: str
    """Its ``diskseq``, unique among all disks of one boot; empty on kernels before 5.15."""

    @classmethod
    def of_disk(cls, name: str, roots: Roots = HERE) -> Queue:
        """The queue of a disk that was listed; if the disk is gone since, each method raises
        GoneError."""
        disk = roots.sys / "block" / name
        return cls(name, disk, reading.value(disk / "diskseq"))

    def schedulers(self) -> Schedulers:
        """The active scheduler, and those that could be active at once."""
        words = self._text(SCHEDULER).split()
        marked = [word[1:-1] for word in words if word.startswith("[") and word.endswith("]")]
        # Without a choice, the kernel prints no brackets.
        active = marked[0] if marked else words[0] if len(words) == 1 else ""
        return Schedulers(active, tuple(word.strip("[]") for word in words))

    def read(self, attribute: str) -> str:
        """The attribute's value. MissingError, DeniedError or GoneError if there is none."""
        return self.schedulers().active if attribute == SCHEDULER else self._text(attribute)

    def tunables(self) -> dict[str, str]:
        """Every tunable of the active scheduler by its name, sorted; empty for none."""
        return self._values(IOSCHED)

    def attributes(self) -> dict[str, str]:
        """Every attribute of the queue itself that can be read, sorted; the active scheduler."""
        values = self._values("")
        if SCHEDULER in values:
            values[SCHEDULER] = self.read(SCHEDULER)
        return values

    def settings(self) -> dict[str, str]:
        """The scheduler, its tunables and the existing attributes of `SETTABLE`: all that
        `write_all` needs to restore them, in its order."""
        values = {name: value for name, value in self.attributes().items() if name in SETTABLE}
        with contextlib.suppress(MissingError):
            values[SCHEDULER] = self.read(SCHEDULER)
        values |= {IOSCHED + name: value for name, value in self.tunables().items()}
        return {name: values[name] for name in in_order(values)}

    def write(self, attribute: str, value: str) -> None:
        """Set it, and check that it reads back the same.

        A QueueError of the right kind if it does not; the new value then stays.
        """
        if not value.strip() or not value.isprintable():
            raise InputError(f"{attribute}: expected a value in one line, found '{shown(value)}'")
        self._check_same(attribute)
        read_ahead = None
        if attribute in _LIMITS:
            with contextlib.suppress(MissingError):
                read_ahead = self.read(_READ_AHEAD)
        self._set(attribute, value)
        if read_ahead is not None and self.read(_READ_AHEAD) != read_ahead:
            self._set(_READ_AHEAD, read_ahead)
        found = self.read(attribute)
        if not same(found, value):
            raise DifferentError(self.name, attribute, value, found)

    def write_all(self, settings: Mapping[str, str]) -> list[str]:
        """Set all of them, in the order of `in_order`; attributes that already have the value are
        not written.

        Returns the written attributes, in order. Ends with the first QueueError.
        """
        written = []
        for attribute in in_order(settings):
            if not same(self.read(attribute), settings[attribute]):
                self.write(attribute, settings[attribute])
                written.append(attribute)
        return written

    def is_there(self) -> bool:
        """Whether the name still belongs to this disk."""
        return self.disk.is_dir() and reading.value(self.disk / "diskseq") == self.sequence

    def _set(self, attribute: str, value: str) -> None:
        try:
            handle = os.open(self._path(attribute), os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
            try:
                os.write(handle, value.encode())
            finally:
                os.close(handle)
        except OSError as error:
            raise self._write_error(attribute, value, error) from error

    def _path(self, attribute: str) -> Path:
        return self.disk / "queue" / attribute

    def _check_same(self, attribute: str) -> None:
        if not self.is_there():
            raise GoneError(self.name, attribute)

    def _text(self, attribute: str) -> str:
        try:
            return reading.content(self._path(attribute)).strip()
        except OSError as error:
            raise self._read_error(attribute, error) from error

    def _values(self, below: str) -> dict[str, str]:
        self._check_same(below or "queue")
        values = {}
        for name in reading.names(self._path(below)):
            if self._path(below + name).is_dir():
                continue
            # Some exist and cannot be read: wbt_lat_usec if writeback throttling is off.
            with contextlib.suppress(MissingError, DeniedError):
                values[name] = self._text(below + name)
        return values

    def _read_error(self, attribute: str, error: OSError) -> QueueError:
        self._check_same(attribute)
        if error.errno in _GONE:
            return GoneError(self.name, attribute)
        if error.errno in _DENIED:
            return DeniedError(self.name, attribute, f"cannot be read: {error.strerror}")
        return MissingError(self.name, attribute, self._missing_text(attribute))

    def _write_error(self, attribute: str, value: str, error: OSError) -> QueueError:
        self._check_same(attribute)
        if error.errno in _GONE:
            return GoneError(self.name, attribute)
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR):
            return MissingError(self.name, attribute, self._missing_text(attribute))
        if error.errno in _DENIED:
            return DeniedError(self.name, attribute, self._denied_text(attribute, value, error))
        refused = f"the kernel refuses {shown(value)}: {error.strerror}"
        if attribute == SCHEDULER:
            refused += f"; it has {', '.join(self.schedulers().available)}"
        return RefusedError(self.name, attribute, refused)

    def _missing_text(self, attribute: str) -> str:
        see = f"see: blklab devices {self.name}"
        if attribute == SCHEDULER:
            # zram, NVMe's multipath heads and others that take bios.
            return f"this disk has none: its driver takes I/O without a queue; {see}"
        if not attribute.startswith(IOSCHED):
            return (
                f"this disk has no such setting{nearest(attribute, reading.names(self._path('')))}"
            )
        with contextlib.suppress(MissingError):
            scheduler = self.read(SCHEDULER)
            close = nearest(attribute.removeprefix(IOSCHED), reading.names(self._path(IOSCHED)))
            return f"the scheduler {scheduler} has no such tunable{close}"
        return f"this disk has no scheduler; {see}"

    def _denied_text(self, attribute: str, value: str, error: OSError) -> str:
        path = self._path(attribute)
        if error.errno == errno.EROFS:
            return f"{shown(str(path))} is in a file system mounted read-only, as in a container"
        if not path.stat().st_mode & 0o222:
            return "the kernel does not allow changes"
        # /sys/block/... is short: the user types the command.
        command = f"echo {shlex.quote(value)} > {shlex.quote(str(path))}"
        return f"not permitted; type: sudo sh -c {shlex.quote(command)}"


def in_order(attributes: Iterable[str]) -> list[str]:
    """The order of setting in which no attribute undoes another."""

    def place(attribute: str) -> tuple[int, bool, bool, str]:
        first = _FIRST.index(attribute) if attribute in _FIRST else len(_FIRST)
        # By name: slice_idle, in ms, comes before slice_idle_us, the same more exactly.
        return first, attribute.startswith(IOSCHED), attribute == _READ_AHEAD, attribute

    return sorted(attributes, key=place)


def is_setting(attribute: str) -> bool:
    """Whether `Queue.settings` may have an attribute of this name. A name from a file is checked,
    because it could lead to another place."""
    if attribute.startswith(IOSCHED):
        return bool(_WORD.fullmatch(attribute.removeprefix(IOSCHED)))
    return attribute == SCHEDULER or attribute in SETTABLE


def same(one: str, other: str) -> bool:
    """Whether the kernel takes two values as equal, such as ``08`` and ``8``."""
    if _NUMBER.fullmatch(one.strip()) and _NUMBER.fullmatch(other.strip()):
        return int(one) == int(other)
    return one.split() == other.split()


def find(what: str, roots: Roots = HERE) -> Queue:
    """The queue of the disk called ``/dev/sda``, ``sda`` or ``/dev/disk/by-id/...``; for a
    partition, the queue of its disk. InputError if there is no such block device."""
    return named(disk_of(device_name(what, roots), roots), roots)


def named(name: str, roots: Roots = HERE) -> Queue:
    """The queue of the whole disk `name` of ``/sys/block``. InputError if there is none."""
    if name not in disks(roots):
        raise InputError(f"no disk '{shown(name)}'{nearest(name, map(shown, disks(roots)))}")
    return Queue.of_disk(name, roots)


def disks(roots: Roots = HERE) -> list[str]:
    """The whole disks of ``/sys/block``, sorted: no partitions."""
    return reading.names(roots.sys / "block")


def device_name(what: str, roots: Roots = HERE) -> str:
    """The kernel's name of a disk or partition; a path is followed to its device node.

    InputError if there is no such block device.
    """
    known = reading.names(roots.sys / "class/block")
    if "/" not in what:
        if what not in known:
            raise InputError(f"no block device '{shown(what)}'{nearest(what, map(shown, known))}")
        return what
    path = Path(what)
    if roots.dev != HERE.dev and path.is_relative_to(HERE.dev):
        path = roots.dev / path.relative_to(HERE.dev)
    try:
        path = path.resolve()
        name = _name_of_node(path, roots)
        exists = path.exists()
    except (OSError, RuntimeError, ValueError) as error:
        # No permission, a loop of links, or a name with a NUL in it.
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{shown(what)}: {shown(str(reason))}") from error
    if name in known:
        return name
    if not exists:
        close = nearest(what, (f"/dev/{shown(one)}" for one in known))
        raise InputError(f"{shown(what)}: no such device{close}")
    raise InputError(
        f"{shown(what)}: not a block device; expected sda, /dev/sda or /dev/disk/by-id/..."
    )


def disk_of(name: str, roots: Roots = HERE) -> str:
    """The whole disk of a partition; any other device's own name."""
    directory = (roots.sys / "class/block" / name).resolve()
    return directory.parent.name if (directory / "partition").exists() else name


def _name_of_node(path: Path, roots: Roots) -> str:
    if path.is_block_device():
        # Nodes may have any name; their numbers identify the device.
        number = path.stat().st_rdev
        link = roots.sys / f"dev/block/{os.major(number)}:{os.minor(number)}"
        if link.exists():
            return link.resolve().name
    # In sysfs, names that hold a slash (cciss/c0d0) hold an exclamation mark instead.
    below = path.is_relative_to(roots.dev)
    return str(path.relative_to(roots.dev)).replace("/", "!") if below else ""
