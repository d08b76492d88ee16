"""A udev rule for each group, and on which disks of the fleet it would match.

A rule has the least key that separates its group from all other disks of the fleet: the model; the
model and the machines' names, if one model has several loads; or the disks' own ids. A candidate
counts only if udev's rules, judged on every collected disk, match those of the group and no other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.base.text import shown
from blklab.errors import InputError
from blklab.fleet.disks import Machine
from blklab.fleet.groups import Group
from blklab.host.devices.deciders import tuned
from blklab.host.roots import Roots
from blklab.host.udev import judge, node
from blklab.host.udev.parse import Line, parse
from blklab.settings import choice, rule
from blklab.settings import keys as of_disks
from blklab.settings.keys import Key
from blklab.settings.rule import Part

HEAD = "# Written by blklab fleet. Install it as /etc/udev/rules.d/99-fleet.rules"
_FILE = Path("/etc/udev/rules.d/99-fleet.rules")
_KEY_CHARACTERS_MAX = 8000
"""udev reads lines of up to 16 KiB."""
_BUSES = {"sata": ("ENV{ID_BUS}", "ata"), "usb": ("ENV{ID_BUS}", "usb")}
_SUBSYSTEMS = {"nvme": "nvme", "virtio": "virtio", "sas": "scsi", "mmc": "mmc"}
_PLACES_MAX = 5
_HOST_NAME = "SYSCTL{kernel/hostname}"


@dataclass(frozen=True)
class Rule:
    """The rule of a group."""

    group: int
    """Its number."""
    keys: tuple[Key, ...]
    """Any of them matches; several if the names of its machines need several lines."""
    settings: Mapping[str, str]
    """Attributes of the queue."""

    @property
    def parts(self) -> list[Part]:
        """As of `blklab.settings.rule`."""
        return [Part(key, self.settings) for key in self.keys]


class Everywhere:
    """All disks of the fleet, also those that are not judged, as udev sees them."""

    def __init__(self, machines: Mapping[str, Machine]) -> None:
        self.machines = machines
        self._devices = {
            f"{label}:{disk}": (node.device(machine.queue(disk).disk, machine.roots), machine.roots)
            for label, machine in machines.items()
            for disk in machine.every
        }

    def matched(self, content: str) -> set[str]:
        """The disks, each as ``host:disk``, on which a file of rules sets something, or may."""
        lines = parse(_FILE, content)
        return {place for place in self._devices if self._is_matched(lines, place)}

    def is_exactly(self, content: str, wanted: Collection[str]) -> bool:
        """Whether these are the ones that are wanted."""
        lines = parse(_FILE, content)
        # The first one that is wrong decides.
        others = (place for place in self._devices if place not in wanted)
        return all(self._is_matched(lines, place) for place in wanted) and not any(
            self._is_matched(lines, place) for place in others
        )

    def _is_matched(self, lines: Sequence[Line], place: str) -> bool:
        """The rules alone, behind udev's own."""
        device, roots = self._devices[place]
        return any(
            judge.of_lines(lines, device, action, roots, imported=True) for action in judge.ACTIONS
        )


def make(group: Group, scheduler: str, everywhere: Everywhere) -> Rule | None:
    """The rule that sets `scheduler`, as on the command line, on all disks of the group; None if no
    key separates them from other disks. InputError if `scheduler` cannot be set by a rule."""
    first = group.members[0].disk
    machines = everywhere.machines
    settings = choice.together(choice.parse(scheduler, machines[first.host].queue(first.name)))
    wanted = {one.disk.place for one in group.members}
    for keys in _candidates(group, machines):
        found = Rule(group.number, keys, settings)
        if everywhere.is_exactly(text([found], ()), wanted):
            return found
    return None


def text(rules: Sequence[Rule], notes: Sequence[str]) -> str:
    """The file of all rules; `notes` are lines about them, for its head."""
    head = "\n".join([HEAD, *(f"# {line}" for line in notes)])
    parts = [part for one in rules for part in one.parts]
    # The latest part comes first there.
    return rule.text(parts[::-1], head=head)


def overruled(rule: Rule, group: Group, machines: Mapping[str, Machine]) -> list[str]:
    """What else sets the same on disks of the group after the rule, as far as it was collected:
    other rules of udev, and tuned's active profile; a line for each, with the disks."""
    content = text([rule], ())
    found: dict[str, list[str]] = {}
    for one in group.members:
        machine = machines[one.disk.host]
        for told in dict.fromkeys(_later(rule, content, machine, one.disk.name)):
            found.setdefault(told, []).append(one.disk.place)
    return [f"{told}: on {_few(places)}" for told, places in found.items()]


def _later(rule: Rule, content: str, machine: Machine, disk: str) -> Iterator[str]:
    queue, roots = machine.queue(disk), machine.roots
    for action in judge.ACTIONS:
        ours = False
        for one in judge.effects(queue.disk, action, roots, {_FILE: content}, imported=True):
            if one.line.file == _FILE:
                ours = True
            elif one.attribute in rule.settings and ours:
                verb = "sets" if one.sure else "may set"
                yield _told(one.line.file, one.line.number, verb, one.attribute, one.value, roots)
    for other in tuned.influences(queue, roots):
        if other.attribute in rule.settings:
            file = Path(other.file)
            told = _told(file, other.line, "sets", other.attribute, other.value, roots)
            yield f"{told} where tuned runs"


def _told(file: Path, line: int, verb: str, attribute: str, value: str | None, roots: Roots) -> str:
    place = Path("/", *file.relative_to(roots.etc.parent).parts)
    what = "something else" if value is None else shown(value)
    return f"{place}:{line} {verb} {attribute} to {what} after this rule"


def _few(places: Sequence[str]) -> str:
    more = len(places) - _PLACES_MAX
    return ", ".join(places[:_PLACES_MAX]) + (f" and {more} more" if more > 0 else "")


def _candidates(group: Group, machines: Mapping[str, Machine]) -> Iterator[tuple[Key, ...]]:
    """Keys of the group, the widest first."""
    kinds = list(_of_model(group, machines))
    for matches in kinds:
        yield (Key("model", matches),)
    names = [machines[one.disk.host].host_name for one in group.members]
    if all(names):
        for matches in kinds:
            yield tuple(
                Key("model", (*matches, f'{_HOST_NAME}=="{part}"'))
                for part in _joined(sorted(set(names)))
            )
    if ids := _ids(group, machines):
        yield ids


def _of_model(group: Group, machines: Mapping[str, Machine]) -> Iterator[tuple[str, ...]]:
    """Matches of the disks' model, transport and kind: as the kernel names it, and as udev does,
    whose name is longer for SATA disks."""
    first = group.members[0].disk
    machine = machines[first.host]
    common = [f'ATTR{{queue/rotational}}=="{int(group.rotational)}"']
    if group.transport in _BUSES:
        name, value = _BUSES[group.transport]
        common.append(f'{name}=="{value}"')
    elif group.transport in _SUBSYSTEMS:
        common.append(f'SUBSYSTEMS=="{_SUBSYSTEMS[group.transport]}"')
    queue = machine.queue(first.name)
    try:
        of_kernel = of_disks.key("model", queue, machine.roots)[0].matches
    except InputError:
        # Virtual disks report no model.
        of_kernel = ()
    yield (*of_kernel, *common)
    stored = node.device(queue.disk, machine.roots).database or {}
    if name := stored.get("ID_MODEL", ""):
        yield (f'ENV{{ID_MODEL}}=="{of_disks.pattern(name)}"', *common)


def _ids(group: Group, machines: Mapping[str, Machine]) -> tuple[Key, ...]:
    """The ids of all disks, by the attribute that has them; none if one has no id."""
    found: dict[str, list[str]] = {}
    for one in group.members:
        machine = machines[one.disk.host]
        try:
            [match, *_] = of_disks.key("id", machine.queue(one.disk.name), machine.roots)[0].matches
        except InputError:
            return ()
        name, _, value = match.partition("==")
        found.setdefault(name, []).append(value.strip('"'))
    return tuple(
        Key("id", (f'{name}=="{part}"',))
        for name, values in sorted(found.items())
        for part in _joined(values)
    )


def _joined(patterns: Sequence[str]) -> list[str]:
    """udev's alternatives, in as many texts as lines need."""
    texts: list[str] = []
    for one in patterns:
        if texts and len(texts[-1]) + len(one) < _KEY_CHARACTERS_MAX:
            texts[-1] += f"|{one}"
        else:
            texts.append(one)
    return texts
