"""Do applied settings still hold? If not, what changed them?"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from blklab.base.text import shown
from blklab.errors import InputError
from blklab.host.devices import queue
from blklab.host.devices.deciders import order
from blklab.host.devices.deciders.influence import Influence
from blklab.host.devices.queue import GoneError, Queue, QueueError, same
from blklab.host.roots import Roots
from blklab.settings import choice, keys, rule
from blklab.settings.record import Entry
from blklab.settings.rivals import rivals


@dataclass(frozen=True)
class Setting:
    """One attribute of one disk."""

    attribute: str
    wanted: str
    found: str | None
    """None if it cannot be read."""
    by: Influence | None
    """What set it last, if that is not blklab's rule."""

    @property
    def holds(self) -> bool:
        """Whether it still has the applied value."""
        return self.found is not None and same(self.found, self.wanted)


@dataclass(frozen=True)
class OfDisk:
    """A disk with applied settings."""

    name: str
    settings: tuple[Setting, ...]
    rivals: tuple[Influence, ...]
    """What would undo it at the next boot, or event."""


@dataclass(frozen=True)
class Status:
    """All of it."""

    entries: tuple[Entry, ...]
    disks: tuple[OfDisk, ...]
    missing: tuple[str, ...]
    """Disks of the entry that are missing now, by their names then."""
    rule_is_there: bool
    """Whether the rules file is as it was written."""

    @property
    def holds(self) -> bool:
        """Whether everything is as it was applied, and nothing was interrupted."""
        settings = (one for disk in self.disks for one in disk.settings)
        return (
            self.rule_is_there
            and all(entry.done for entry in self.entries)
            and all(one.holds for one in settings)
        )


def status(entries: Sequence[Entry], roots: Roots) -> Status:
    """Of these entries of the record."""
    parts = [entry.part for entry in entries]
    meant = rule.disks(parts, roots)
    place = rule.place(roots)
    there = place.read_text(encoding="utf-8", errors="replace") if place.exists() else ""
    found = {}
    for name, wanted in sorted(meant.items()):
        # One may go meanwhile.
        with contextlib.suppress(InputError, GoneError):
            disk = queue.named(name, roots)
            found[name] = _of_disk(disk, wanted, roots), keys.of_one(disk, roots)
    here = {identity for _, identity in found.values()}
    recorded = (disk for entry in entries for disk in entry.disks if disk.name not in found)
    # A disk may be called otherwise since: what it calls itself tells.
    missing = {one.name for one in recorded if not one.identity or one.identity not in here}
    return Status(
        tuple(entries),
        tuple(state for state, _ in found.values()),
        tuple(sorted(missing)),
        there == rule.text(parts),
    )


def lines(now: Status) -> list[str]:
    """For a person."""
    told = []
    for entry in now.entries:
        broken = "" if entry.done else "; interrupted, undo it"
        told.append(f"{entry.number}. {choice.text(entry.settings)}")
        told.append(f"    for {entry.key.text}, applied {entry.time}{broken}")
    for disk in now.disks:
        told.append("")
        told += _lines(disk)
    told += [f"{shown(name)}: missing, or with another id" for name in now.missing]
    if not now.rule_is_there and now.entries:
        told += ["", f"{rule.NAME} is gone or was changed; after a reboot no setting holds"]
    elif not now.rule_is_there:
        told.append(f"{rule.NAME} is there, but the previous values are not known; remove it")
    return told or ["nothing is applied"]


def _lines(disk: OfDisk) -> list[str]:
    wrong = [one for one in disk.settings if not one.holds]
    told = [f"{shown(disk.name)}: {'holds' if not wrong else 'does not hold'}"]
    for one in wrong:
        found = "cannot be read" if one.found is None else f"is {shown(one.found)}"
        by = f"; {one.by.by} {shown(one.by.place)}" if one.by else ""
        name = one.attribute.removeprefix(queue.IOSCHED)
        told.append(f"    {name} {found}, {one.wanted} was applied{by}")
    told += [f"    may be undone by {rival_text(one)}" for one in disk.rivals]
    return told


def rival_text(one: Influence) -> str:
    """``udev rule FILE:LINE, which sets scheduler to kyber``."""
    what = "something" if one.value is None else shown(one.value)
    doubt = f" ({shown(one.why)})" if not one.sure else ""
    return f"{one.by} {shown(one.place)}, which sets {shown(one.attribute)} to {what}{doubt}"


def _of_disk(disk: Queue, wanted: dict[str, str], roots: Roots) -> OfDisk:
    against = rivals(disk, wanted, roots)
    settings = []
    for attribute, value in wanted.items():
        try:
            found: str | None = disk.read(attribute)
        except QueueError:
            found = None
        last = order.last_word(against, attribute)
        settings.append(Setting(attribute, value, found, last))
    return OfDisk(disk.name, tuple(settings), tuple(against))
