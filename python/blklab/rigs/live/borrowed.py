"""The settings of disks: changed for a run, and restored whatever happens.

Before the first change the journal has what the disk was set to (`Queue.settings`). It is put back
when the ``with`` ends, in whichever way; after ``kill -9`` by the next start of any command that
borrows disks, or by ``blklab restore``. After a reboot there is nothing to put back: settings do
not outlive the kernel, and the disk of that name may be another one.

What has settings is the queue, which another medium in the same drive, or another file behind the
same loop device, does not make a new one: as long as its directory in sysfs is the same, it is put
back. What was unplugged and comes again is a new queue, with settings of its own.
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
"""Of its records."""

_NONE = "none"
# Setting one thing may disturb another that was set before.
_PASSES = 3


@dataclass(frozen=True)
class Borrowed:
    """Disks whose settings this process may change meanwhile; one scheduler for all of them."""

    queues: tuple[Queue, ...]
    before: Mapping[str, Mapping[str, str]]
    """What each was set to, by its name."""

    def use(self, scheduler: str, changed: Mapping[str, str]) -> list[str]:
        """Set the scheduler afresh, with its own defaults, and on top of them what is `changed`.

        Names in `changed` are tunables of the scheduler or attributes of the queue; all else is
        as it was before. A line for each that the kernel made something else of. A QueueError if
        it does not take one.
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
    """Borrow the disks. BusyError if another process has one of them. What could not be put
    back is added to `told`, a line each; its record then stays in the journal."""
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
    """Set the disk to `settings` so far as it can be; a line for each that could not be.

    Raises nothing: what can be put back is.
    """
    for _ in range(_PASSES):
        problems: dict[str, str] = {}
        wrote = False
        for attribute in in_order(settings):
            if attribute.startswith(IOSCHED) and SCHEDULER in problems:
                # They would be another scheduler's.
                continue
            try:
                if not same(queue.read(attribute), settings[attribute]):
                    wrote = True
                    queue.write(attribute, settings[attribute])
            except (QueueError, InputError) as error:
                # The latter of a record with a value that no kernel has given.
                problems[attribute] = f"not put back: {error}"
                if isinstance(error, GoneError):
                    return [f"{shown(queue.name)}: the disk is gone; nothing to put back"]
        if not wrote:
            break
    return list(problems.values())


def recover(journal: Journal, key: str, roots: Roots = HERE) -> list[str]:
    """Put back what the record `key` says; what was done or not, a line each. With the lock
    held. The record goes, if all was put back or there is nothing any more to put back."""
    record = journal.read(key)
    if record is None:
        return []
    name, settings = _checked(record, journal, key)
    if record["boot_id"] != boot_id():
        journal.remove(key)
        return [f"{shown(name)}: the machine was rebooted since, which undid it"]
    problems = _give_back(name, record.get("queue"), settings, journal, roots)
    done = f"{shown(name)}: put back to {shown(settings.get(SCHEDULER, ''))} and its settings"
    return problems or [f"{done}, as they were before process {record.get('pid')} changed them"]


def _give_back(
    name: str, identity: object, settings: Mapping[str, str], journal: Journal, roots: Roots
) -> list[str]:
    """Put back the queue that had this `identity`, and drop the record if there is nothing more
    to do; a line for each thing that could not be put back."""
    try:
        # Found anew: what does not count is whether the medium is the same.
        queue = named(name, roots)
    except InputError:
        queue = None
    if queue is None or _identity(queue) != identity:
        journal.remove(_key(name))
        return [f"{shown(name)}: the disk is gone; nothing to put back"]
    problems = put_back(queue, settings)
    if not problems or not queue.is_there():
        journal.remove(_key(name))
    return problems


def _identity(queue: Queue) -> int:
    """Of the queue, as long as the machine runs; 0 if it is gone."""
    try:
        return (queue.disk / "queue").stat().st_ino
    except OSError:
        return 0


def _settle(queue: Queue, journal: Journal, told: list[str], roots: Roots) -> None:
    """What an earlier process has left on this disk; RunError if it cannot be put back."""
    key = _key(queue.name)
    left = recover(journal, key, roots)
    if journal.read(key) is not None:
        raise RunError(
            f"{'; '.join(left)}; once it is right by hand: blklab restore --forget {queue.name}"
        )
    told += left


def _switch(queue: Queue, scheduler: str, before: Mapping[str, str]) -> None:
    """From how the disk was before to `scheduler` with its defaults."""
    if not queue.is_there():
        raise GoneError(queue.name, SCHEDULER)
    if problems := put_back(queue, before):
        raise RunError("; ".join(problems))
    known = queue.schedulers()
    others = [name for name in known.available if name != scheduler]
    if known.active == scheduler and others:
        # Away and back: the kernel leaves one that is set again as it is.
        queue.write(SCHEDULER, _NONE if _NONE in others else others[0])
    if known.active != scheduler or others:
        queue.write(SCHEDULER, scheduler)


def _attribute(queue: Queue, name: str) -> str:
    """Where the active scheduler or its queue has the tunable. Only what the journal knows."""
    return name if name in SETTABLE and name not in queue.tunables() else IOSCHED + name


def _key(disk: str) -> str:
    return f"{KIND}-{disk}"


def _checked(record: Mapping[str, Any], journal: Journal, key: str) -> tuple[str, dict[str, str]]:
    """Disk and settings. RunError if the record has something else."""
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
