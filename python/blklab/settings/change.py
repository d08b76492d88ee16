"""Apply and undo: each completely, or not at all.

The record is written first, then the rules file (and tuned's profile); then udev reloads its rules,
and every setting is read back and set directly if udev did not set it. If a step fails, all steps
are reverted. A killed process leaves a record of its planned changes.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from blklab.base.as_root import as_root
from blklab.base.files import write_whole
from blklab.base.signals import Signals
from blklab.base.text import shown
from blklab.errors import BlklabError, InputError, RunError, nearest
from blklab.host.devices import modules, queue
from blklab.host.devices.deciders.influence import Influence
from blklab.host.devices.queue import IOSCHED, SCHEDULER, WITH_SCHEDULER, Queue, same
from blklab.host.roots import Roots
from blklab.rigs.live.borrowed import put_back
from blklab.settings import choice, keys, profile, record, rule
from blklab.settings.keys import Key
from blklab.settings.programs import Programs, udev_runs
from blklab.settings.record import AppliedEntry, Before
from blklab.settings.rivals import rivals

FORMS = ("auto", "udev", "tuned")
_TUNED = "tuned profile"


@dataclass(frozen=True)
class Plan:
    """All steps of `carry_out`."""

    entry: AppliedEntry
    earlier: list[AppliedEntry]
    disks: list[Queue]
    rules: str
    """The whole rules file."""
    profile: str
    """The whole profile of tuned; empty if none is needed."""
    module: str
    """Module to load first; empty if none."""
    rivals: dict[str, list[Influence]]
    """By disk: settings of other programs that would undo it."""
    notes: list[str] = field(default_factory=list)


def plan(target: Queue, settings: Mapping[str, str], of: str, form: str, roots: Roots) -> Plan:
    """The plan that gives the disk, or all of its model or kind, these settings.

    InputError if the kernel does not have the scheduler, or if no key distinguishes the disk from
    others.
    """
    if form not in FORMS:
        raise InputError(f"--as: no '{shown(form)}'{nearest(form, FORMS)}")
    earlier = record.load(roots)
    if earlier and not earlier[-1].done:
        raise InputError("the last apply was interrupted; first: blklab undo")
    asked = settings
    settings = choice.beside(rule.wanted(_rules(earlier), target, roots), settings)
    module = _module(target, settings, roots)
    key, names = _key(target, of, settings, roots)
    _check_not_spread(earlier, asked, names, roots)
    disks, pictures, against = [], [], {}
    for name in names:
        try:
            disk = queue.named(name, roots)
            picture = Before(name, keys.of_one(disk, roots), disk.settings())
            against[name] = rivals(disk, settings, roots)
        except (InputError, queue.GoneError):
            if name == target.name:
                raise
            # Another disk of its model or kind has just disappeared; the rule applies when it
            # returns.
            continue
        disks.append(disk)
        pictures.append(picture)
    tuned_is_one = any(one.by == _TUNED for found in against.values() for one in found)
    with_tuned = form == "tuned" or (form == "auto" and tuned_is_one)
    entry = AppliedEntry(
        number=max((one.number for one in earlier), default=0) + 1,
        time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        key=key,
        settings=dict(settings),
        disks=pictures,
        tuned=profile.active_without(roots) if with_tuned else None,
    )
    entries = [*earlier, entry]
    entry.profile = _new_profile(entries, roots)
    made = Plan(entry, earlier, disks, _rules(entries), entry.profile, module, against)
    if form == "tuned" and not profile.can_hold(entry.part):
        raise InputError(
            "--as tuned: tuned sets schedulers and read_ahead_kb only, and neither is given"
        )
    if with_tuned:
        # The profile replaces the settings of tuned's other sections.
        for name, found in against.items():
            against[name] = [one for one in found if not _held_by_profile(one, entry)]
    return made


def carry_out(
    made: Plan, roots: Roots, programs: Programs, under_sudo: Sequence[str] = ()
) -> list[str]:
    """Carry out the plan; returns unexpected findings, a line each.

    After an error everything is unchanged. `under_sudo` holds further arguments for the same
    command under sudo.
    """
    _check_may_write(roots, under_sudo)
    with (
        record.alone(roots),
        record.undisturbed((disk.name for disk in made.disks), roots),
        Signals.guarding() as signals,
    ):
        if record.load(roots) != made.earlier:
            raise RunError("another blklab applied or undid something meanwhile; try again")
        _check_ours(made.earlier, roots)
        return _carried_out(made, signals, roots, programs)


def _carried_out(made: Plan, signals: Signals, roots: Roots, programs: Programs) -> list[str]:
    for disk, before in zip(made.disks, made.entry.disks, strict=True):
        before.before = disk.settings()
    entries = [*made.earlier, made.entry]
    record.save(entries, roots)
    try:
        notes = _load_module(made, programs)
        _write_files(made.rules, made.profile, roots)
        notes += _tell_udev(made.disks, roots, programs)
        notes += _tell_tuned(made.entry.tuned, profile.NAME, made.profile, programs)
        for disk, before in zip(made.disks, made.entry.disks, strict=True):
            set_directly = disk.write_all(made.entry.settings)
            if set_directly and udev_runs(roots):
                listed = ", ".join(set_directly)
                notes.append(f"{disk.name}: udev did not set {listed}; blklab set it directly")
            _check_all(disk, made.entry.settings)
            before.after = disk.settings()
        # Complete: a signal from now on reverts nothing.
        signals.hold()
        made.entry.done = True
        record.save(entries, roots)
    except BaseException as error:
        signals.hold()
        left = _take_back(made.entry, made.earlier, roots, programs)
        signals.release()
        if left and isinstance(error, BlklabError):
            raise RunError(f"{error}; and not restored: {'; '.join(left)}") from error
        raise
    signals.release()
    return notes


def undo(roots: Roots, programs: Programs) -> tuple[AppliedEntry, list[str]]:
    """Revert the latest entry: its settings, its rules, its profile. Returns a line for each
    setting that could not be restored. InputError if there is no entry, or if the files are no
    longer ours."""
    if not record.load(roots):
        raise InputError("nothing is applied; there is nothing to undo")
    _check_may_write(roots)
    with record.alone(roots), Signals.guarding() as signals, contextlib.ExitStack() as stack:
        entries = record.load(roots)
        if not entries:
            raise RunError("another blklab undid it meanwhile")
        names = (disk.name for disk in entries[-1].disks)
        stack.enter_context(record.undisturbed(names, roots))
        signals.hold()
        if entries[-1].done:
            _check_ours(entries, roots)
            # From here on, an interrupted undo can only be continued.
            entries[-1].done = False
            record.save(entries, roots)
        left = _take_back(entries[-1], entries[:-1], roots, programs)
        signals.release()
        return entries[-1], left


def _take_back(
    entry: AppliedEntry, others: list[AppliedEntry], roots: Roots, programs: Programs
) -> list[str]:
    notes = []
    content = _profile(others)
    _write_files(_rules(others), content, roots)
    if udev_runs(roots):
        programs.run(["udevadm", "control", "--reload"])
    if entry.tuned is not None and not content:
        back = " ".join(entry.tuned)
        notes += _tell_tuned(entry.tuned, back, back or "off", programs)
    for one in entry.disks:
        notes += _restore(one, entry.settings, roots)
    record.save(others, roots)
    return notes


def _restore(one: Before, applied: Mapping[str, str], roots: Roots) -> list[str]:
    """Restore the settings of this entry, and those that the kernel changed with them."""
    try:
        disk = _again(one, roots)
        now = disk.settings() if disk is not None else {}
    except (InputError, queue.GoneError):
        return [f"{shown(one.name)} is missing; none of its settings was restored"]
    if disk is None:
        return [f"{shown(one.name)} is another disk now; none of its settings was restored"]
    touched = _touched(one, applied)
    # Other settings keep their current values, even if a restored one disturbs them.
    rest = {name: now[name] for name in one.before if name in now and name not in touched}
    return put_back(disk, rest | {name: one.before[name] for name in touched})


def _touched(one: Before, applied: Mapping[str, str]) -> list[str]:
    """The attributes that this entry has set, or that the kernel changed with them.

    Other differences were made by other programs since. An attribute with equal values before and
    after may still be affected: a change of scheduler resets `nr_requests`, and so does the change
    back.
    """
    touched = [
        name
        for name, value in one.before.items()
        # A killed process has not recorded the state after the change: it may have changed
        # everything.
        if name in applied or one.after.get(name) != value
    ]
    if SCHEDULER in touched:
        touched += [
            name
            for name in one.before
            if name not in touched and (name.startswith(IOSCHED) or name in WITH_SCHEDULER)
        ]
    return touched


def _again(one: Before, roots: Roots) -> Queue | None:
    """The same disk, under its current name."""
    for name in [one.name, *queue.disks(roots)] if one.identity else []:
        with contextlib.suppress(InputError):
            disk = queue.named(name, roots)
            if keys.of_one(disk, roots) == one.identity:
                return disk
    if one.identity:
        queue.named(one.name, roots)
        return None
    return queue.named(one.name, roots)


def _key(
    target: Queue, of: str, settings: Mapping[str, str], roots: Roots
) -> tuple[Key, list[str]]:
    """The first key that matches this disk, and if the key is for one disk, no other."""
    found: list[str] = []
    for key in keys.key(of, target, roots):
        meant = rule.disks([rule.Part(key, settings)], roots)
        found = list(meant)
        if target.name in meant and (of != "id" or len(meant) == 1):
            return key, found
    if target.name in found:
        others = ", ".join(shown(name) for name in found if name != target.name)
        raise InputError(f"{shown(target.name)}: {others} have the same id; use --for model")
    raise InputError(
        f"{shown(target.name)}: no udev rule can distinguish it from others; use --for kind"
    )


def _check_not_spread(
    earlier: Sequence[AppliedEntry], asked: Mapping[str, str], names: Sequence[str], roots: Roots
) -> None:
    """InputError if settings of some of these disks would now apply to all of them without being
    requested."""
    for entry in earlier:
        meant = set(rule.disks([entry.part], roots))
        unasked = [name for name in entry.settings if name not in asked]
        if unasked and meant & set(names) and not set(names) <= meant:
            own = ", ".join(map(shown, sorted(meant & set(names))))
            raise InputError(
                f"{choice.text({name: entry.settings[name] for name in unasked})} was applied to "
                f"{own} alone, and would now reach {len(names)} disks; give the same settings "
                "again, or first: blklab undo"
            )


def _module(target: Queue, settings: Mapping[str, str], roots: Roots) -> str:
    """The module to load for the scheduler; empty if there is none to load."""
    wanted = settings.get(SCHEDULER)
    if wanted is None:
        return ""
    available = target.schedulers().available
    if wanted in available:
        return ""
    name = shown(target.name)
    if available == ("none",):
        raise InputError(
            f"{name}: no scheduler fits it; see the disks below: blklab devices {name}"
        )
    loadable = modules.loadable(roots)
    if wanted not in loadable:
        every = [*available, *loadable]
        raise InputError(f"{name}: this kernel has no scheduler '{wanted}'{nearest(wanted, every)}")
    if line := modules.blocked([loadable[wanted]], roots).get(loadable[wanted]):
        raise InputError(f"{name}: the module {loadable[wanted]} may not be loaded: {line}")
    return loadable[wanted]


def _load_module(made: Plan, programs: Programs) -> list[str]:
    if not made.module:
        return []
    # At the next boot the kernel loads the module when udev sets the scheduler.
    wrong = programs.run(["modprobe", made.module])
    return [wrong] if wrong else []


def _rules(entries: Sequence[AppliedEntry]) -> str:
    return rule.text([entry.part for entry in entries])


def _new_profile(entries: Sequence[AppliedEntry], roots: Roots) -> str:
    with_tuned = [entry for entry in entries if entry.tuned is not None]
    parts = []
    for entry in with_tuned:
        disks = []
        for name in rule.disks([entry.part], roots):
            with contextlib.suppress(InputError):
                disks.append(queue.named(name, roots))
        parts.append((entry.part, disks))
    return profile.text(parts, with_tuned[0].tuned or [], roots) if with_tuned else ""


def _profile(entries: Sequence[AppliedEntry]) -> str:
    """The profile as written with the latest of them: with the names of disks at that time."""
    return entries[-1].profile if entries else ""


def _held_by_profile(one: Influence, entry: AppliedEntry) -> bool:
    return one.by == _TUNED and one.attribute in (SCHEDULER, "read_ahead_kb") and (
        one.attribute in entry.settings
    )  # fmt: skip


def _write_files(rules: str, content: str, roots: Roots) -> None:
    for path, text in ((rule.place(roots), rules), (profile.place(roots), content)):
        if text:
            write_whole(path, text, 0o644)
        else:
            path.unlink(missing_ok=True)
    if not content:
        with contextlib.suppress(OSError):
            profile.place(roots).parent.rmdir()


def _tell_udev(disks: Sequence[Queue], roots: Roots, programs: Programs) -> list[str]:
    if not udev_runs(roots):
        return ["udev is not running here: set directly; the rule takes effect where udev runs"]
    commands = [["udevadm", "control", "--reload"]]
    commands += [
        ["udevadm", "trigger", "--action=change", f"/sys/block/{disk.name}"] for disk in disks
    ]
    commands += [["udevadm", "settle", "--timeout=30"]]
    return [wrong for words in commands if (wrong := programs.run(words))]


def _tell_tuned(
    before: list[str] | None, names: str, content: str, programs: Programs
) -> list[str]:
    if before is None or not content:
        return []
    words = ["tuned-adm", "profile", *names.split()] if names else ["tuned-adm", "off"]
    wrong = programs.run(words)
    return [f"{wrong}; type: {shlex.join(words)}"] if wrong else []


def _check_all(disk: Queue, settings: Mapping[str, str]) -> None:
    """Check all again, because one setting may have changed another."""
    for name, value in settings.items():
        found = disk.read(name)
        if not same(found, value):
            raise queue.DifferentError(disk.name, name, value, found)


def _check_may_write(roots: Roots, under_sudo: Sequence[str] = ()) -> None:
    """InputError with the command to type, before any change."""
    for path in (rule.place(roots), record.path(roots)):
        there = next(place for place in path.parents if place.exists())
        if not os.access(there, os.W_OK | os.X_OK):
            if os.geteuid() == 0:
                raise InputError(f"{path}: {there} is not writable, even by root: read-only?")
            raise InputError(f"{path}: needs root; type: {as_root(under_sudo)}")


def _check_ours(entries: Sequence[AppliedEntry], roots: Roots) -> None:
    """InputError if another program has written or changed blklab's files."""
    for path, text in (
        (rule.place(roots), _rules(entries)),
        (profile.place(roots), _profile(entries)),
    ):
        found = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        if found != text and found:
            raise InputError(f"{path} is not as blklab wrote it; move it away first")
