"""Checks whether applied settings still hold, and finds the cause of changes."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from blklab.errors import InputError
from blklab.host.devices import queue
from blklab.host.devices.deciders import order
from blklab.host.devices.deciders.influence import Influence
from blklab.host.devices.queue import GoneError, Queue, QueueError, same
from blklab.host.roots import Roots
from blklab.settings import keys, rule, unit
from blklab.settings.record import AppliedEntry
from blklab.settings.rivals import rivals


@dataclass(frozen=True)
class Setting:
    """One attribute of one disk."""

    attribute: str
    wanted: str
    found: str | None
    """None if it cannot be read."""
    by: Influence | None
    """The influence that set it last, unless it is blklab's rule."""

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
    """Influences that would undo it at the next boot or event."""


@dataclass(frozen=True)
class Status:
    """All of it."""

    entries: tuple[AppliedEntry, ...]
    disks: tuple[OfDisk, ...]
    missing: tuple[str, ...]
    """Missing disks of the entry, by their names at that time."""
    rule_is_there: bool
    """Whether the rules file is unchanged."""
    watch: str = ""
    """The command of the unit of ``blklab watch``; empty if none is installed."""

    @property
    def holds(self) -> bool:
        """Whether all settings hold, and no apply was interrupted."""
        settings = (one for disk in self.disks for one in disk.settings)
        return (
            self.rule_is_there
            and all(entry.done for entry in self.entries)
            and all(one.holds for one in settings)
        )


def status(entries: Sequence[AppliedEntry], roots: Roots) -> Status:
    """The status of these entries of the record. InputError if the unit of `blklab watch` is not as
    blklab wrote it."""
    parts = [entry.part for entry in entries]
    meant = rule.disks(parts, roots)
    place = rule.place(roots)
    there = place.read_text(encoding="utf-8", errors="replace") if place.exists() else ""
    found = {}
    for name, wanted in sorted(meant.items()):
        # A disk may disappear meanwhile.
        with contextlib.suppress(InputError, GoneError):
            disk = queue.named(name, roots)
            found[name] = _of_disk(disk, wanted, roots), keys.of_one(disk, roots)
    here = {identity for _, identity in found.values()}
    recorded = (disk for entry in entries for disk in entry.disks if disk.name not in found)
    # A disk may have another name by now: its reported identity decides.
    missing = {one.name for one in recorded if not one.identity or one.identity not in here}
    return Status(
        tuple(entries),
        tuple(state for state, _ in found.values()),
        tuple(sorted(missing)),
        there == rule.text(parts),
        watched.command if (watched := unit.installed(roots)) else "",
    )


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
