"""The settings of disks: changed for a run, and restored whatever happens.

Before the first change the journal records the disk's settings (`Queue.settings`). They are
restored when the ``with`` ends in any way; after ``kill -9``, by the next command that borrows
disks, or by ``blklab restore``. After a reboot there is nothing to restore: settings do not outlive
the kernel, and the disk of that name may be another one. Settings belong to the queue. Another
medium in the same drive, or another file behind the same loop device, does not make a new queue: as
long as the queue's directory in sysfs is the same, it is restored. A disk that was unplugged and
returns has a new queue, with its own settings.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blklab.base.journal import Journal, boot_id
from blklab.base.signals import Signals
from blklab.base.text import shown
from blklab.errors import InputError, RunError
from blklab.host.devices.queue import (
    IOSCHED,
    SCHEDULER,
    SETTABLE,
    DifferentError,
    GoneError,
    MissingError,
    Queue,
    QueueError,
    in_order,
    is_setting,
    named,
    same,
)
from blklab.host.roots import HERE, Roots

KIND = "disk"
"""The kind of its records."""

_NONE = "none"
# A setting may change another that was made before.
_PASSES = 3


@dataclass(frozen=True)
class Borrowed:
    """Disks with settings that this process may change meanwhile; one scheduler for all of them."""

    queues: tuple[Queue, ...]
    before: Mapping[str, Mapping[str, str]]
    """The original settings of each, by its name."""

    def use(self, scheduler: str, changed: Mapping[str, str]) -> list[str]:
        """Set the scheduler anew, with its own defaults, then the values in `changed`.

        Names in `changed` are tunables of the scheduler or attributes of the queue; all others have
        their original values. Returns a line for each value that the kernel adjusted. A QueueError
        if the kernel refuses one.
        """
        notes = []
        for queue in self.queues:
            _switch(queue, scheduler, self.before[queue.name])
            for attribute in in_order(_attribute(queue, name) for name in changed):
                try:
                    queue.write(attribute, changed[attribute.removeprefix(IOSCHED)])
                except DifferentError as error:
                    if attribute == SCHEDULER:
                        raise
                    notes.append(str(error))
        return notes

    def reset(self) -> list[str]:
        """Set the original settings again; the disks stay borrowed. Returns a line for each
        failure."""
        return [line for queue in self.queues for line in put_back(queue, self.before[queue.name])]

    def part(self, names: Collection[str]) -> Borrowed:
        """Only the disks with these names."""
        return Borrowed(tuple(one for one in self.queues if one.name in names), self.before)

    def check_still(self, set_to: Mapping[str, Mapping[str, str]]) -> None:
        """RunError if a disk's settings differ from `set_to`: another program changed them."""
        for queue in self.queues:
            for attribute, value in set_to[queue.name].items():
                try:
                    found = queue.read(attribute)
                except MissingError:
                    found = "gone"
                if not same(found, value):
                    raise RunError(
                        f"{shown(queue.name)}: {shown(attribute)} was {shown(value)} when the run "
                        f"began and {shown(found)} when it ended: something else sets it; "
                        f"see: blklab devices {shown(queue.name)}"
                    )


@contextlib.contextmanager
def borrowing(
    queues: Sequence[Queue],
    journal: Journal,
    signals: Signals,
    told: list[str],
    roots: Roots = HERE,
) -> Iterator[Borrowed]:
    """Borrow the disks. BusyError if another process has one of them. For each setting that could
    not be restored, a line is added to `told`; the record then stays in the journal."""
    ours = tuple(sorted(queues, key=lambda queue: queue.name))
    with contextlib.ExitStack() as stack:
        for queue in ours:
            stack.enter_context(journal.locked(_key(queue.name), shown(queue.name)))
            _settle(queue, journal, told, roots)
        before = {queue.name: queue.settings() for queue in ours}
        which = {queue.name: _identity(queue) for queue in ours}

        def give_back() -> None:
            for name, settings in before.items():
                told.extend(_give_back(name, which[name], settings, journal, roots))

        stack.enter_context(signals.undoing(give_back))
        for name, settings in before.items():
            record = {"disk": name, "queue": which[name], "settings": settings}
            journal.write(_key(name), KIND, record)
        yield Borrowed(ours, before)


def put_back(queue: Queue, settings: Mapping[str, str]) -> list[str]:
    """Set the disk to `settings` as far as possible; returns a line for each failure.

    Raises no error, so that all other settings are restored.
    """
    for _ in range(_PASSES):
        problems: dict[str, str] = {}
        wrote = False
        for attribute in in_order(settings):
            if attribute.startswith(IOSCHED) and SCHEDULER in problems:
                # These tunables belong to another scheduler.
                continue
            try:
                if not same(queue.read(attribute), settings[attribute]):
                    wrote = True
                    queue.write(attribute, settings[attribute])
            except (QueueError, InputError) as error:
                # ValueError: a record with a value that no kernel printed.
                problems[attribute] = f"not restored: {error}"
                if isinstance(error, GoneError):
                    return [f"{shown(queue.name)}: the disk is gone; nothing to restore"]
        if not wrote:
            break
    return list(problems.values())


def recover(journal: Journal, key: str, roots: Roots = HERE) -> list[str]:
    """Restore the settings in the record `key`; returns a line for each result. Needs the lock. The
    record is removed if everything was restored, or if there is no longer anything to restore."""
    record = journal.read(key)
    if record is None:
        return []
    name, settings = _checked(record, journal, key)
    if record["boot_id"] != boot_id():
        journal.remove(key)
        return [f"{shown(name)}: the machine was rebooted since, which undid it"]
    problems = _give_back(name, record.get("queue"), settings, journal, roots)
    done = f"{shown(name)}: restored to {shown(settings.get(SCHEDULER, ''))} and its settings"
    return problems or [f"{done}, as they were before process {record.get('pid')} changed them"]


def _give_back(
    name: str, identity: object, settings: Mapping[str, str], journal: Journal, roots: Roots
) -> list[str]:
    """Restore the queue with this `identity`, and drop the record if nothing is left to do; returns
    a line for each failure."""
    try:
        # Looked up again: the medium may differ.
        queue = named(name, roots)
    except InputError:
        queue = None
    if queue is None or _identity(queue) != identity:
        journal.remove(_key(name))
        return [f"{shown(name)}: the disk is gone; nothing to restore"]
    problems = put_back(queue, settings)
    if not problems or not queue.is_there():
        journal.remove(_key(name))
    return problems


def _identity(queue: Queue) -> int:
    """The queue's identity until the next reboot; 0 if it is gone."""
    try:
        return (queue.disk / "queue").stat().st_ino
    except OSError:
        return 0


def _settle(queue: Queue, journal: Journal, told: list[str], roots: Roots) -> None:
    """Restore leftovers of an earlier process on this disk; RunError if that fails."""
    key = _key(queue.name)
    left = recover(journal, key, roots)
    if journal.read(key) is not None:
        raise RunError(
            f"{'; '.join(left)}; once it is right by hand: blklab restore --forget {queue.name}"
        )
    told += left


def _switch(queue: Queue, scheduler: str, before: Mapping[str, str]) -> None:
    """Change the disk from its original settings to `scheduler` with its defaults."""
    if not queue.is_there():
        raise GoneError(queue.name, SCHEDULER)
    if problems := put_back(queue, before):
        raise RunError("; ".join(problems))
    known = queue.schedulers()
    others = [name for name in known.available if name != scheduler]
    if known.active == scheduler and others:
        # Via another scheduler: setting the active one again would not reset it.
        queue.write(SCHEDULER, _NONE if _NONE in others else others[0])
    if known.active != scheduler or others:
        queue.write(SCHEDULER, scheduler)


def _attribute(queue: Queue, name: str) -> str:
    """The attribute for the tunable in the active scheduler or its queue, if the journal records
    it."""
    return name if name in SETTABLE and name not in queue.tunables() else IOSCHED + name


def _key(disk: str) -> str:
    return f"{KIND}-{disk}"


def _checked(record: Mapping[str, Any], journal: Journal, key: str) -> tuple[str, dict[str, str]]:
    """Disk and settings of the record. RunError if it is not valid."""
    name, settings = record.get("disk"), record.get("settings")
    if (
        isinstance(name, str)
        and key == _key(name)
        and isinstance(settings, dict)
        and all(
            isinstance(value, str) and is_setting(attribute)
            for attribute, value in settings.items()
        )
    ):
        return name, settings
    raise RunError(f"{journal.directory / key}.json: not a record of a disk's settings")
