"""Planned, applied and undone settings, and their status, in words."""

from __future__ import annotations

from collections.abc import Iterator

from blklab.base.text import shown
from blklab.host import roots
from blklab.host.devices.deciders.influence import Influence
from blklab.host.devices.queue import IOSCHED, same
from blklab.settings import choice, profile, rule
from blklab.settings.change import Plan
from blklab.settings.record import AppliedEntry
from blklab.settings.status import OfDisk, Status
from blklab.settings.unit import WatchUnit


def plan_lines(made: Plan, *, dry_run: bool) -> Iterator[str]:
    """Its changes, disk by disk; for a dry run, also every file; and influences that may undo
    it."""
    settings = made.entry.settings
    yield f"{choice.text(settings)}, for {made.entry.key.text}"
    for disk, before in zip(made.disks, made.entry.disks, strict=True):
        changes = [
            f"{name.removeprefix(IOSCHED)} {before.before.get(name, '-')} -> {value}"
            for name, value in settings.items()
            if not same(before.before.get(name, ""), value)
        ]
        yield f"{shown(disk.name)}: {', '.join(map(shown, changes)) or 'already set so'}"
    if dry_run:
        yield from _files(made)
    for name, found in made.rivals.items():
        for one in found:
            yield f"warning: {shown(name)}: may be undone by {_rival(one)}"


def _files(made: Plan) -> Iterator[str]:
    if made.module:
        yield f"\nwould load the module {made.module}"
    yield f"\nwould write {rule.place(roots.HERE)}:\n\n{made.rules}"
    if made.profile:
        place = profile.place(roots.HERE)
        yield f"would write {place}, and make it tuned's profile:\n\n{made.profile}"


def undone_line(entry: AppliedEntry) -> str:
    """The undone settings."""
    return f"undone: {entry.number}. {choice.text(entry.settings)}, for {entry.key.text}"


def watch_undone_line(found: WatchUnit) -> str:
    """The removed unit."""
    return f"undone: {found.command}, installed {found.time}"


def status_lines(now: Status) -> list[str]:
    """Whether applied settings hold."""
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
        told.append(f"{rule.NAME} exists, but the previous values are not known; remove it")
    if now.watch:
        told += ["", f"installed: {now.watch}"] if told else [f"installed: {now.watch}"]
    return told or ["nothing is applied"]


def _lines(disk: OfDisk) -> list[str]:
    wrong = [one for one in disk.settings if not one.holds]
    told = [f"{shown(disk.name)}: {'holds' if not wrong else 'does not hold'}"]
    for one in wrong:
        found = "cannot be read" if one.found is None else f"is {shown(one.found)}"
        by = f"; {one.by.by} {shown(one.by.place)}" if one.by else ""
        name = one.attribute.removeprefix(IOSCHED)
        told.append(f"    {name} {found}, {one.wanted} was applied{by}")
    told += [f"    may be undone by {_rival(one)}" for one in disk.rivals]
    return told


def _rival(one: Influence) -> str:
    """``udev rule FILE:LINE, which sets scheduler to kyber``."""
    what = "something" if one.value is None else shown(one.value)
    doubt = f" ({shown(one.why)})" if not one.sure else ""
    return f"{one.by} {shown(one.place)}, which sets {shown(one.attribute)} to {what}{doubt}"
