"""``blklab.collect_fleet`` and ``blklab.judge_fleet``: one question over many machines' disks.

Collecting only reads: it runs one small script on each machine, and ``cat`` of recordings. Judging
needs no network and sets nothing anywhere.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from blklab.api.compare import Objective, checked_objective, compare
from blklab.api.fleet_loads import Loads, recorded
from blklab.api.fleet_models import chosen_model, kernel_default
from blklab.api.listener import SILENT, Listener
from blklab.api.traces import finding_text, read_trace
from blklab.base import homes
from blklab.base.files import write_whole
from blklab.base.limits import JOBS_DEFAULT
from blklab.base.plain import plain
from blklab.base.signals import Signals
from blklab.base.text import shown
from blklab.domain import defaults, recordings, specs
from blklab.domain.experiment import Disk, SchedulerSpec
from blklab.domain.measurement import Measurement
from blklab.errors import BlklabError, InputError
from blklab.experiment.analyse import analyse
from blklab.experiment.pairs import Change, change, together
from blklab.experiment.statistics import Answer, Interval, Verdict
from blklab.experiment.words import sentence
from blklab.fleet import collect as collecting
from blklab.fleet import disks as of_machines
from blklab.fleet import hosts as files
from blklab.fleet import rules
from blklab.fleet.collect import CollectedHost
from blklab.fleet.disks import Machine
from blklab.fleet.groups import DiskLoad, Group, groups
from blklab.fleet.hosts import AUTO, Fleet
from blklab.fleet.rules import Rule
from blklab.rigs import check_workload, find_disk
from blklab.rigs.sim import SimRig

_UNUSABLE = "unusable"
_ONE_WAY = "simulated"
"""The only way of loads that are no recordings."""


@dataclass(frozen=True)
class HostChange:
    """What the group's answer would change for one disk under one of its loads."""

    group: int
    host: str
    disk: str
    """The kernel's name."""
    load: str
    present: str
    """The scheduler that it has now, with the tunables that do not have their defaults."""
    target: str
    """The group's scheduler: the choice, or else the kernel's own."""
    change: Change
    """With `target` instead of `present`; for a recording, in all ways of replaying it."""
    ratio: Interval | None
    """How many times better it would be; None if it is not known, or if it has `target` already."""
    by_rule: bool
    """Whether a rule would change it."""


@dataclass(frozen=True)
class FleetGroup:
    """One recommendation, for disks of one model under one kind of load."""

    number: int
    """From 1."""
    model: str
    """As the disks report it; may be empty."""
    kind: str
    """``sata hdd``."""
    load: str
    """A workload, or the kind of load that recordings show."""
    disks: tuple[str, ...]
    """``host:disk``."""
    loads: tuple[str, ...]
    """Workloads and recordings."""
    disk_model: str
    """The model on which they are simulated."""
    model_note: str
    """How far it stands for these disks, in words."""
    kernel_default: str
    """The kernel's own choice."""
    choice: str | None
    """The recommended scheduler; None: keep the kernel's own choice."""
    gain: Interval | None
    """How many times better it is than the kernel's own choice."""
    reason: str
    """The answer in a sentence."""
    ways: Mapping[str, str]
    """By way of replaying recordings, what it alone would say."""
    rule: str
    """The lines of its udev rule; empty without one."""
    notes: tuple[str, ...]
    comparisons: tuple[int, ...]
    """Numbers in the store."""


@dataclass(frozen=True)
class JudgedFleet:
    """All groups, what they would change, and what is not judged."""

    objective: str
    hosts: int
    """Hosts of the file."""
    groups: tuple[FleetGroup, ...]
    changes: tuple[HostChange, ...]
    """Losers first."""
    rules: str
    """A file of udev rules; empty if no group needs one."""
    beyond: tuple[str, ...]
    """Disks outside of a rule's group that it would change: always empty, or the rules are
    wrong."""
    missing: tuple[str, ...]
    """Hosts without an answer, a line each."""
    missing_recordings: tuple[str, ...]
    """Recordings that were not collected, a line each."""
    collected: Mapping[str, str]
    """When each host has answered, in UTC."""
    notes: tuple[str, ...] = field(default=())
    """Disks and recordings that are not judged, a line each."""

    @property
    def losers(self) -> list[HostChange]:
        """Disks for which the rules would make something worse."""
        return [one for one in self.changes if one.by_rule and one.change == "worse"]

    def to_json(self) -> dict[str, Any]:
        """Plain data, as ``blklab fleet --json`` prints it."""
        document: dict[str, Any] = plain(self)
        return document | {"losers": plain(self.losers)}


def collect_fleet(
    hosts: str | os.PathLike[str],
    directory: str | os.PathLike[str],
    *,
    ended: Callable[[CollectedHost], object] = lambda _: None,
) -> list[CollectedHost]:
    """Collect disks and recordings of all hosts by ssh, read-only, into a directory.

    Args:
        hosts: the file of hosts.
        directory: it has a directory for each host, which `judge_fleet` reads; recordings that it
            has are not copied again unless they have changed.
        ended: is told of each host.

    Returns:
        What came of each host, in the order of the file.

    Raises:
        blklab.errors.InputError: the file of hosts is wrong.
        blklab.errors.RunError: ssh is missing, or `directory` cannot be written.
    """
    fleet = files.read(Path(hosts))
    with Signals.guarding():
        return collecting.collect(fleet, Path(directory), check=_unusable, ended=ended)


def fleet_directory(hosts: str | os.PathLike[str]) -> Path:
    """The directory of the cache into which ``blklab fleet`` collects for this file of hosts.
    InputError without a home directory."""
    path = Path(hosts).absolute()
    key = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    return homes.cache() / "blklab" / "fleets" / key


def write_rules(found: JudgedFleet, file: str | os.PathLike[str]) -> None:
    """Write the rules to a file; without any rule, one that only says so. RunError if it cannot be
    written."""
    write_whole(Path(file), found.rules or f"{rules.HEAD}\n# No group needs a rule.\n")


def judge_fleet(
    hosts: str | os.PathLike[str],
    directory: str | os.PathLike[str],
    *,
    unreached: Collection[str] = (),
    objective: str | None = None,
    repeats: int | None = None,
    keep: bool = False,
    store: str | None = None,
    max_parallel: int = JOBS_DEFAULT,
    listener: Listener = SILENT,
) -> JudgedFleet:
    """Group the collected disks by model and load, and recommend one scheduler for each group.

    Args:
        hosts: the file of hosts.
        directory: as of `collect_fleet`.
        unreached: labels of hosts whose older answers do not count.
        objective: replaces the file's.
        repeats: replaces the file's.
        keep, store, max_parallel: as of `compare`.
        listener: receives notes and progress.

    Raises:
        blklab.errors.InputError: the file of hosts is wrong, or no disk can be judged.
        blklab.errors.RunError: a run failed.
    """
    fleet = files.read(Path(hosts))
    ranked_by = checked_objective(objective or fleet.objective)
    work = _Work(
        fleet,
        ranked_by,
        repeats or fleet.repeats,
        tuple(specs.scheduler(one) for one in fleet.schedulers or defaults.LINUX),
        keep,
        store,
        max_parallel,
        listener,
    )
    _check(work)
    # Not scratch of the journal's: this command may have given up the right to write there.
    with tempfile.TemporaryDirectory(prefix="blklab-fleet-") as top:
        machines, missing = _machines(fleet, Path(directory), unreached, Path(top))
        loads = Loads(fleet, Path(directory))
        members = [loads.member(disk, one) for one in machines.values() for disk in one.disks]
        loads.check_all(machines)
        found = groups([one for one in members if one is not None])
        notes = [*(_left_out(machines)), *loads.notes]
        if not found:
            reason = (*missing, *loads.missing, *notes, "no host has a disk")[0]
            raise InputError(f"{shown(str(fleet.file.path))}: no disk can be judged; {reason}")
        judged = _judged(found, machines, work)
        return replace(
            judged,
            missing=tuple(missing),
            missing_recordings=tuple(loads.missing),
            notes=tuple(notes),
        )


@dataclass(frozen=True)
class _Work:
    """What all groups share."""

    fleet: Fleet
    objective: Objective
    repeats: int
    schedulers: tuple[SchedulerSpec, ...]
    keep: bool
    store: str | None
    max_parallel: int
    listener: Listener


def _check(work: _Work) -> None:
    """InputError, with the line, if the file names what there is not."""
    place, fleet = SimRig(), work.fleet
    for number, one in enumerate(work.schedulers):
        try:
            place.check_scheduler(one)
        except InputError as error:
            raise fleet.wrong(("schedulers", number), str(error)) from None
    for pattern, model in fleet.models.items():
        try:
            if model != AUTO:
                find_disk(place, model)
        except InputError as error:
            raise fleet.wrong(("models", pattern), str(error)) from None
    seen: set[object] = set()
    for host in fleet.hosts:
        for load in (*host.loads, *host.usual):
            if load.source != "workload" or load.place in seen:
                continue
            seen.add(load.place)
            try:
                entry = specs.workload(load.text)
                check_workload(place.spec, entry)
            except InputError as error:
                raise fleet.wrong(load.place, str(error)) from None
            if recordings.is_recording(entry):
                text = "a recording; expected it as the key 'file' of a [[host.load]]"
                raise fleet.wrong(load.place, text)


def _unusable(recording: Path) -> str:
    """Why a copied recording cannot be used, as ``blklab trace check`` says it; empty if it can."""
    try:
        found = read_trace(recording).findings
    except InputError as error:
        # Its path is that of a part of a file.
        return f"not a recording: {error.reason}"
    return next((finding_text(one) for one in found if one.weight == _UNUSABLE), "")


def _machines(
    fleet: Fleet, directory: Path, unreached: Collection[str], top: Path
) -> tuple[dict[str, Machine], list[str]]:
    """All hosts that have answered, by their labels, and a line for each of the others."""
    found: dict[str, Machine] = {}
    missing: list[str] = []
    for number, host in enumerate(fleet.hosts):
        if host.label in unreached:
            continue
        try:
            answer, collected = collecting.read_answer(directory / host.label)
            found[host.label] = of_machines.machine(
                host.label, answer, collected, top / str(number)
            )
        except InputError as error:
            missing.append(f"{host.label}: {error}")
    return found, missing


def _left_out(machines: Mapping[str, Machine]) -> list[str]:
    return [f"{one.label}:{line}" for one in machines.values() for line in one.left_out]


def _judged(found: Sequence[Group], machines: Mapping[str, Machine], work: _Work) -> JudgedFleet:
    judged: list[FleetGroup] = []
    every: list[Rule] = []
    changes: list[HostChange] = []
    lines: list[str] = []
    allowed: set[str] = set()
    everywhere = rules.Everywhere(machines)
    for group in found:
        one, rule, of_hosts = _one_group(group, everywhere, work)
        judged.append(one)
        changes += of_hosts
        if rule is not None:
            every.append(rule)
            allowed |= {member.disk.place for member in group.members}
            count = len(group.members)
            disks = "1 disk" if count == 1 else f"{count} disks"
            lines.append(shown(f"{group.number}: {group.name}, {disks}"))
    content = rules.text(every, lines)
    beyond = everywhere.matched(content) - allowed if every else set()
    order = {"worse": 0, "not known": 1, "no difference": 2, "better": 3}
    changes.sort(key=lambda one: (not one.by_rule, order[one.change], one.host, one.disk))
    return JudgedFleet(
        work.objective,
        len(work.fleet.hosts),
        tuple(judged),
        tuple(changes),
        content,
        tuple(sorted(beyond)),
        (),
        (),
        {label: one.collected for label, one in machines.items()},
    )


def _one_group(
    group: Group, everywhere: rules.Everywhere, work: _Work
) -> tuple[FleetGroup, Rule | None, list[HostChange]]:
    model, told = chosen_model(group, work.fleet)
    default = kernel_default(group, model)
    notes: list[str] = []
    measured = _Measured((), {_ONE_WAY: ()}, ())
    if all(load.is_idle for load in group.loads):
        choice, gain, reason = None, None, "its disks are idle: nothing to gain"
        ways: dict[str, str] = {}
    else:
        try:
            measured = _measure(group, model, default, work)
        except InputError as error:
            notes.append(f"not simulated: {error}")
            choice, gain, reason = None, None, "not known: its loads cannot be simulated"
            ways = {}
        else:
            choice, gain, reason, ways = _answer(measured, model.label, default, work)
    rule = None
    if choice is not None:
        rule = rules.make(group, choice, everywhere)
        if rule is None:
            notes.append("no rule: no key of udev separates its disks from the others")
        else:
            notes += rules.overruled(rule, group, everywhere.machines)
        notes += _not_loaded(group, choice)
    changes = _changes(group, model.label, choice or default, rule is not None, measured, work)
    judged = FleetGroup(
        group.number,
        group.model,
        group.members[0].disk.kind,
        group.kind,
        tuple(one.disk.place for one in group.members),
        tuple(load.name for load in group.loads),
        model.label,
        told,
        default,
        choice,
        gain,
        reason,
        ways,
        "" if rule is None else rules.text([rule], ()).partition("\n\n")[2].partition("\n\n")[0],
        tuple(notes),
        measured.kept,
    )
    return judged, rule, changes


@dataclass(frozen=True)
class _Measured:
    """The runs of a group."""

    runs: Sequence[Measurement]
    ways: Mapping[str, Sequence[str]]
    """The names of workloads by way of replaying."""
    kept: tuple[int, ...]

    def of(self, way: str, schedulers: Collection[str], only: Collection[str]) -> list[Measurement]:
        """The runs of these schedulers in one way, under those of the loads in `only`."""
        names = set(self.ways[way]) & set(only)
        return [run for run in self.runs if run.workload in names and run.scheduler in schedulers]

    def pair(
        self, disk: str, before: str, after: str, only: Collection[str], work: _Work
    ) -> tuple[Change, Interval | None]:
        """What `after` is compared with `before` under these loads, in all ways."""
        found: list[tuple[Change, Interval | None]] = []
        for way in self.ways:
            runs = self.of(way, (before, after), only)
            if len({run.scheduler for run in runs}) > 1:
                found.append(change(_recommended(runs, disk, work), after))
        return together(found) if found else ("not known", None)


def _measure(group: Group, model: Disk, default: str, work: _Work) -> _Measured:
    """Run the group's loads under all schedulers that may be chosen, and those that its disks have
    now. InputError if a load does not fit the model."""
    chosen = dict.fromkeys(
        (*work.schedulers, specs.scheduler(default), *_simulated(group)),
    )
    ways, entries = recorded(group.loads, model)
    plain_loads = [specs.workload(load.workload) for load in group.loads if load.workload]
    named: dict[str, Sequence[str]] = {
        way: [*names, *(one.name for one in plain_loads)] for way, names in ways.items()
    } or {_ONE_WAY: [one.name for one in plain_loads]}
    runs: list[Measurement] = []
    kept: list[int] = []
    # The times of a recording contain the host's CPU work.
    for loads, host in ((plain_loads, {}), (entries, specs.host(["guest"]))):
        if loads:
            ran = compare(
                disks=[model],
                workloads=loads,
                schedulers=list(chosen),
                repeats=work.repeats,
                seed=work.fleet.seed,
                objective=work.objective,
                host=host,
                vary_disk=True,
                keep=work.keep,
                store=work.store,
                max_parallel=work.max_parallel,
                listener=work.listener,
            )
            runs += ran.results.runs
            kept += [] if ran.kept is None else [ran.kept]
    return _Measured(runs, named, tuple(kept))


def _simulated(group: Group) -> list[SchedulerSpec]:
    """The present schedulers of its disks, as far as they are simulated."""
    found: list[SchedulerSpec] = []
    for spec in dict.fromkeys(one.disk.present for one in group.members):
        try:
            SimRig().check_scheduler(spec)
        except BlklabError:
            continue
        found.append(spec)
    return found


def _recommended(runs: Sequence[Measurement], disk: str, work: _Work) -> Answer:
    return analyse(runs, work.objective).recommendations[disk][work.objective]


def _answer(
    measured: _Measured, disk: str, default: str, work: _Work
) -> tuple[str | None, Interval | None, str, dict[str, str]]:
    """The choice, its gain, the answer in a sentence, and what each way alone would say."""
    names = list(dict.fromkeys((*(one.label for one in work.schedulers), default)))
    every = [name for of_way in measured.ways.values() for name in of_way]
    answers = {
        way: _recommended(measured.of(way, names, every), disk, work) for way in measured.ways
    }
    told = {way: sentence(one, work.objective) for way, one in answers.items()}
    verdicts = [one for one in answers.values() if isinstance(one, Verdict)]
    keep = f"keep the kernel's own choice, {default}"
    if len(verdicts) < len(answers):
        why = next(told[way] for way, one in answers.items() if not isinstance(one, Verdict))
        return None, None, f"{keep}: {why}", told
    leads = set.intersection(*(set(one.leads) for one in verdicts))
    pairs = {
        name: measured.pair(disk, default, name, every, work) for name in leads if name != default
    }
    better = {
        name: gain for name, (word, gain) in pairs.items() if word == "better" and gain is not None
    }
    if better:
        choice = max(better, key=lambda name: better[name].estimate)
        return choice, better[choice], f"{choice} instead of {default}", told
    if default in leads:
        return None, None, f"{keep}: no other scheduler is shown to be better", told
    if leads:
        which = " or ".join(sorted(leads))
        text = f"{keep}: {which} may be better, which is not shown"
        return None, None, text + (" in every way of replaying" if len(told) > 1 else ""), told
    return None, None, f"{keep}: which is best depends on what the I/O waits for", told


def _changes(
    group: Group, disk: str, target: str, by_rule: bool, measured: _Measured, work: _Work
) -> list[HostChange]:
    found: list[HostChange] = []
    for one in group.members:
        present = one.disk.present.label
        for load in one.loads:
            word: Change = "no difference"
            ratio: Interval | None = None
            if present != target:
                word, ratio = measured.pair(disk, present, target, _names(load, measured), work)
            found.append(
                HostChange(
                    group.number,
                    one.disk.host,
                    one.disk.name,
                    load.name,
                    shown(present),
                    target,
                    word,
                    ratio,
                    by_rule and present != target,
                )
            )
    return found


def _names(load: DiskLoad, measured: _Measured) -> list[str]:
    """The names of its workloads in the runs."""
    if load.workload:
        return [specs.workload(load.workload).name]
    return [
        name
        for names in measured.ways.values()
        for name in names
        if name.rpartition(":way=")[0] == load.name
    ]


def _not_loaded(group: Group, choice: str) -> list[str]:
    """A note if some kernels have not loaded the scheduler."""
    name = choice.partition(":")[0]
    without = [one.disk.place for one in group.members if name not in one.disk.available]
    if not without:
        return []
    which = ", ".join(without[:5]) + (f" and {len(without) - 5} more" if len(without) > 5 else "")  # noqa: PLR2004
    return [f"{name} is not loaded for {which}: the rule loads it if the kernel has the module"]
