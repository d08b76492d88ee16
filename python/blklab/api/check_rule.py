"""``blklab.check_rule``: what does a udev rule that sets schedulers change, on which disks, and for
better or worse?"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab import _core
from blklab.api.compare import Objective, checked_objective, compare
from blklab.api.listener import SILENT, Listener
from blklab.base.catalogue import Entry
from blklab.base.files import text_content
from blklab.base.limits import JOBS_DEFAULT
from blklab.base.plain import plain
from blklab.base.text import shown
from blklab.disks import DISKS
from blklab.domain import core, defaults, specs
from blklab.domain.experiment import Disk, SchedulerSpec
from blklab.errors import InputError
from blklab.experiment.pairs import Change, change
from blklab.experiment.statistics import Interval
from blklab.host.udev import judge, modelled, parse
from blklab.rigs import find_disk
from blklab.rigs.sim import SimRig

REPEATS = 5
_RULE_BYTES_MAX = 1 << 20
_SECTOR_BYTES = 512
_SCHEDULER = "scheduler"
_OF_SCHEDULER = "iosched/"
_NOT_A_DISK = ("constant",)
"""Models that stand for no real disk."""


@dataclass(frozen=True)
class Judged:
    """The rule on one disk under one workload."""

    disk: str
    workload: str
    change: Change
    ratio: Interval | None
    """How many times better it is with the rule; None without a verdict."""


@dataclass(frozen=True)
class OfDisk:
    """What the rule sets on one disk."""

    disk: str
    before: str
    """The kernel's own choice."""
    after: str
    """With the rule."""
    lines: tuple[int, ...]
    """The lines of the file that set something, by number."""
    not_simulated: tuple[str, ...]
    """Settings that the simulator does not have: ``rq_affinity=2``."""
    unknown: tuple[str, ...]
    """Settings that may be made, and what that depends on."""


@dataclass(frozen=True)
class CheckedRule:
    """A rule on all disks."""

    file: str
    disks: tuple[OfDisk, ...]
    rows: tuple[Judged, ...]
    """Only of disks on which it changes something that is simulated."""
    wrong: tuple[str, ...]
    """Lines that udev ignores, with the reason."""

    @property
    def worse(self) -> list[Judged]:
        """Where it makes something worse."""
        return [row for row in self.rows if row.change == "worse"]

    @property
    def is_good(self) -> bool:
        """Whether udev takes every line and nothing gets worse."""
        return not self.worse and not self.wrong

    def to_json(self) -> dict[str, Any]:
        """Plain data, as ``blklab check-rule --json`` prints it."""
        document: dict[str, Any] = plain(self)
        return document | {"good": self.is_good}


def check_rule(
    file: str | os.PathLike[str],
    *,
    disks: Sequence[str | os.PathLike[str] | Disk] = (),
    workloads: Sequence[str | os.PathLike[str] | Entry] = (),
    objective: Objective = "both",
    repeats: int = REPEATS,
    seed: int = 1,
    host: Mapping[str, int] | None = None,
    out: str | os.PathLike[str] | None = None,
    max_parallel: int = JOBS_DEFAULT,
    listener: Listener = SILENT,
) -> CheckedRule:
    """Judge a file of udev rules for each disk, and compare what it sets with the kernel's choice.

    Args:
        file: the rules, alone: rules of other files are not there.
        disks: disk models; by default all that stand for a real disk.
        workloads: as of `compare`.
        objective: as of `compare`.
        repeats: as of `compare`; each repeat has a drawn disk.
        seed: as of `compare`.
        host: as of `compare`.
        out: a directory; the report of each disk is a directory in it.
        max_parallel: as of `compare`.
        listener: receives notes and progress.

    Raises:
        blklab.errors.InputError: the file cannot be read or sets no queue, or a name is wrong.
        blklab.errors.RunError: a run failed.
    """
    checked_objective(objective)
    path = Path(file)
    text = text_content(path, _RULE_BYTES_MAX, "a file of udev rules")
    lines = parse.parse(path, text)
    wrong = tuple(f"{shown(str(path))}:{one.number}: {one.error}" for one in lines if one.error)
    place = SimRig()
    found = [find_disk(place, one) for one in disks or _models()]
    jobs = specs.workloads(workloads or defaults.WORKLOADS)
    judged = [_of_disk(disk, path, text) for disk in found]
    if not any(one.lines or one.unknown for one in judged):
        names = ", ".join(one.disk for one in judged)
        raise InputError(
            f"{shown(str(path))}: sets nothing of the queue of any of these disks: {names}"
            + (f"; {wrong[0]}" if wrong else "")
        )
    rows: list[Judged] = []
    for disk, one in zip(found, judged, strict=True):
        if one.before == one.after:
            continue
        compared = compare(
            disks=[disk],
            workloads=jobs,
            schedulers=[specs.scheduler(one.before), specs.scheduler(one.after)],
            repeats=repeats,
            seed=seed,
            objective=objective,
            host=host,
            out=None if out is None else Path(out) / _directory(disk.label),
            max_parallel=max_parallel,
            listener=listener,
        )
        rows += [
            Judged(cell.disk, cell.workload, *change(cell.verdicts[objective], one.after))
            for cell in compared.analysis.cells
        ]
    return CheckedRule(str(path), tuple(judged), tuple(rows), wrong)


def _models() -> list[str]:
    return [name for name in DISKS.names() if name not in _NOT_A_DISK]


def _directory(label: str) -> str:
    return label.replace("/", "_")


def _of_disk(disk: Disk, path: Path, text: str) -> OfDisk:
    """What the rules set when the disk appears."""
    model = core.disk_model(disk)
    limits = model.limits
    facts = modelled.Facts(
        disk.file.name,
        model.transport,
        limits.rotational,
        limits.capacity_bytes // _SECTOR_BYTES,
        limits.hw_queues,
        defaults.of_linux(disk),
        _rpm(model.parameters),
    )
    # Not scratch of the journal's: this command has given up the right to write there.
    with tempfile.TemporaryDirectory(prefix="blklab-rule-") as top:
        directory, roots = modelled.written(facts, Path(top))
        made = judge.effects(directory, "add", roots, {path: text}, imported=True)
    settings: dict[str, str] = {}
    unknown = []
    for one in made:
        told = f"{one.attribute}={one.value}" if one.value is not None else one.attribute
        if not one.sure or one.value is None:
            unknown.append(f"line {one.line.number}: {told}: {one.why or 'its value is not known'}")
        else:
            if one.attribute == _SCHEDULER:
                # A new scheduler begins with its own defaults.
                settings = {
                    key: value
                    for key, value in settings.items()
                    if not key.startswith(_OF_SCHEDULER)
                }
            settings[one.attribute] = one.value.strip()
    name = settings.pop(_SCHEDULER, facts.default)
    after, left_out = _spec(name, settings, path)
    lines = tuple(dict.fromkeys(one.line.number for one in made if one.sure))
    return OfDisk(disk.label, facts.default, after.label, lines, left_out, tuple(unknown))


def _spec(
    name: str, settings: Mapping[str, str], path: Path
) -> tuple[SchedulerSpec, tuple[str, ...]]:
    """The scheduler with the settings that are simulated, and the others. InputError for a
    scheduler that is not simulated, or for a value out of range."""
    tunables = {info.name: {row.name for row in info.tunables} for info in core.schedulers()}
    if name not in tunables:
        raise InputError(
            f"{shown(str(path))}: sets the scheduler '{shown(name)}', which is not simulated; "
            f"there is: {', '.join(tunables)}"
        )
    queue = {row.name for row in core.environment()["queue"]}
    known: dict[str, str] = {}
    others = []
    for attribute, value in settings.items():
        own = attribute.removeprefix(_OF_SCHEDULER)
        is_own = attribute.startswith(_OF_SCHEDULER) and own in tunables[name]
        if is_own or attribute in queue:
            known[own] = value
        else:
            others.append(f"{attribute}={shown(value)}")
    spec = SchedulerSpec(name, tuple(sorted(known.items())))
    SimRig().check_scheduler(spec)
    return spec, tuple(others)


def _rpm(parameters: Sequence[_core.Parameter]) -> int:
    """The speed of a hard disk; 0 without one."""
    for row in parameters:
        if row.key.endswith("rpm"):
            return round(float(row.value))
    return 0
