"""``blklab.apply``, ``status`` and ``undo``: settings that stick, and back."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from blklab.api.listener import SILENT, Listener
from blklab.errors import InputError, RunError
from blklab.host import roots
from blklab.host.devices import queue
from blklab.host.devices.queue import Queue
from blklab.settings import change, choice, presets, programs, record, unit
from blklab.settings import status as states
from blklab.settings.change import Plan
from blklab.settings.presets import Preset
from blklab.settings.record import AppliedEntry
from blklab.settings.status import Status

Scope = Literal["id", "model", "kind"]
Form = Literal["auto", "udev", "tuned"]


@dataclass(frozen=True)
class Applied:
    """The settings applied to one disk, or to all disks of its model or kind."""

    plan: Plan
    """The entry of the record, the disks with their settings before, files and rivals."""
    notes: tuple[str, ...] = ()
    """Unexpected findings, a line each."""
    is_done: bool = True
    """False for a dry run."""


@dataclass(frozen=True)
class Presets:
    """Published recommendations of settings."""

    presets: Mapping[str, Preset]
    """By name; each with its source and its effect in our own measurements."""
    not_settings: str
    """Published advice that is no setting of a disk."""


@dataclass(frozen=True)
class _Wanted:
    """The settings and their disks."""

    scheduler: str | None
    queue: dict[str, str]
    disks: list[Queue]
    under_sudo: Sequence[str] = ()


def apply(
    device: str | None = None,
    scheduler: str | None = None,
    *,
    settings: Mapping[str, str | int] | None = None,
    preset: str | None = None,
    result: str | int | os.PathLike[str] | None = None,
    part: str | None = None,
    disk: str | None = None,
    objective: str | None = None,
    store: str | None = None,
    scope: Scope = "id",
    form: Form = "auto",
    dry_run: bool = False,
    listener: Listener = SILENT,
) -> tuple[Applied, ...]:
    """Set a disk's scheduler and settings, now and after every reboot.

    Args:
        device: ``sda``, ``/dev/disk/by-id/...``; None with `result`: the disks of the measurement.
        scheduler: ``name[:tunable=value,...]``; or give `preset`, or `result`.
        settings: attributes of ``queue/``, as ``{"nr_requests": 64, "read_ahead_kb": 512}``.
        preset: the name of a preset; see `list_presets`.
        result: the recommendation of a comparison: its number in the `store`, ``results.json`` or
            its directory, the directory of a study or of `tune`.
        part, disk, objective: with `result`: part of the study, disk of the comparison, ranking
            objective.
        scope: ``id``: this disk; ``model`` or ``kind``: all disks of its model or kind.
        form: ``udev``, ``tuned``; ``auto``: tuned where it would undo a rule.
        dry_run: plan, and change nothing.
        listener: `Listener.chosen`, then `Listener.planned` and `Listener.applied` of each disk.

    Raises:
        blklab.errors.InputError: a name or value is wrong; that disk is unchanged.
        blklab.errors.RunError: a change failed; that disk has its old settings.
    """
    if sum(given is not None for given in (scheduler, result, preset)) > 1:
        raise InputError("apply: give one of: a scheduler, --from, --preset")
    if result is not None:
        wanted = _recommended(device, str(result), (part, disk, objective, store), listener)
    else:
        _check_alone(of_part=part, of_disk=disk, objective=objective, store=store)
        wanted = _named(device, scheduler, preset, listener)
    ours = {name: str(value) for name, value in (settings or {}).items()}
    made = []
    for target in wanted.disks:
        chosen = [choice.parse(wanted.scheduler, target)] if wanted.scheduler else []
        whole = choice.together(*chosen, wanted.queue, choice.of_queue(ours))
        # Each plan contains the record with the plans before it.
        plan = change.plan(target, whole, scope, form, roots.HERE)
        listener.planned(plan)
        if dry_run:
            made.append(Applied(plan, is_done=False))
            continue
        notes = change.carry_out(plan, roots.HERE, programs.HERE, wanted.under_sudo)
        listener.applied(notes)
        made.append(Applied(plan, tuple(notes)))
    return tuple(made)


def list_presets() -> Presets:
    """The presets that `apply` knows."""
    return Presets(presets.PRESETS, presets.NOT_SETTINGS)


def status() -> Status:
    """Whether applied settings still hold (`Status.holds`), and the cause of each change."""
    return states.status(record.load(roots.HERE), roots.HERE)


def undo(*, everything: bool = False, listener: Listener = SILENT) -> tuple[AppliedEntry, ...]:
    """Undo the latest `apply` or `install_watch`, or `everything`: restore each setting and file.
    Returns the undone applies.

    Raises:
        blklab.errors.InputError: nothing is applied.
        blklab.errors.RunError: some settings could not be restored; all others are.
    """
    undone, wrong = [], []
    watched = unit.installed(roots.HERE)
    entries = record.load(roots.HERE)
    count = len(entries) + (watched is not None)
    # Without any, `change.undo` raises the error.
    for _ in range(max(count, 1) if everything else 1):
        entries = record.load(roots.HERE)
        if watched is not None and (not entries or watched.time >= entries[-1].time):
            watched, notes = None, unit.uninstall(roots.HERE, programs.HERE)
            listener.unwatched(*notes)
            continue
        entry, left = change.undo(roots.HERE, programs.HERE)
        listener.undone(entry)
        undone.append(entry)
        wrong += left
    if wrong:
        raise RunError("; ".join(wrong))
    return tuple(undone)


def _recommended(
    device: str | None,
    result: str,
    which: tuple[str | None, str | None, str | None, str | None],
    listener: Listener,
) -> _Wanted:
    from blklab.settings import recommended

    part, disk, objective, store = which
    source = recommended.find(result, part, store, listener.note)
    scheduler, said = recommended.scheduler(source, disk, objective)
    listener.chosen(f"{source.name}: {said}")
    if device is not None:
        disks = [queue.find(device, roots.HERE)]
    else:
        found = recommended.disks(source, disk, roots.HERE)
        disks = [queue.named(name, roots.HERE) for name in found]
    return _Wanted(scheduler, {}, disks, source.under_sudo if store is None else ())


def _named(
    device: str | None, scheduler: str | None, preset: str | None, listener: Listener
) -> _Wanted:
    if device is None:
        raise InputError("apply: name a disk; see: blklab devices")
    disks = [queue.find(device, roots.HERE)]
    if preset is None:
        return _Wanted(scheduler, {}, disks)
    named = presets.find(preset)
    listener.chosen(f"{preset}: {named.said}.\nMeasured: {named.measured}.")
    return _Wanted(named.scheduler or None, dict(named.queue), disks)


def _check_alone(**options: str | None) -> None:
    """InputError for an option that needs ``--from``."""
    for name, value in options.items():
        if value is not None:
            raise InputError(f"--{name.replace('_', '-')}: only works with --from")
