"""The loads of collected disks: workloads, and recordings with the kind of load that they show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from blklab import _core
from blklab.api.traces import finding_text, read_trace
from blklab.base.catalogue import Entry
from blklab.base.text import shown
from blklab.domain import core, recordings
from blklab.domain.experiment import Disk
from blklab.domain.recordings import WAYS
from blklab.errors import InputError
from blklab.fleet import collect
from blklab.fleet.disks import FleetDisk, Machine
from blklab.fleet.groups import DiskLoad, Member, kind_of
from blklab.fleet.hosts import Fleet, Host, Load

_SECTOR_BYTES = 512
_WARNING = "warning"


class Loads:
    """The loads of all disks. `missing` has a line for each recording that was not collected,
    `notes` one for each disk or other load that is left out."""

    def __init__(self, fleet: Fleet, directory: Path) -> None:
        self._hosts = {host.label: host for host in fleet.hosts}
        self._directory = directory
        self._readings: dict[tuple[Path, str | None], _core.TraceReading] = {}
        self._used: set[tuple[str, Load]] = set()
        self._kept: dict[str, dict[str, collect.Copied]] = {}
        self.notes: list[str] = []
        self.missing: list[str] = []

    def member(self, disk: FleetDisk, machine: Machine) -> Member | None:
        """The disk with its loads; None, with a note, if it has none."""
        host = self._hosts[disk.host]
        named = [*self._without_disk(host, disk, machine), *host.loads_of(disk.name)]
        # A recording that names no disk is as good as one that names it.
        if any(one.disk is None for one in named):
            named = [one for one in named if one not in host.usual]
        loads: list[DiskLoad] = []
        for one in named:
            self._used.add((host.label, one))
            if self._is_missing(one, host):
                continue
            try:
                loads.append(self._load(one, disk))
            except InputError as error:
                self.notes.append(f"{disk.place}: {error}")
        if not loads:
            if not named:
                self.notes.append(f"{disk.place}: the file of hosts gives it no load")
            return None
        return Member(disk, tuple(dict.fromkeys(loads)))

    def check_all(self, machines: Mapping[str, Machine]) -> None:
        """Add a note for each load that is of no disk."""
        for label in machines:
            for one in self._hosts[label].loads:
                if (label, one) not in self._used:
                    which = "no disk" if one.disk is None else f"no disk '{shown(one.disk)}'"
                    self.notes.append(f"{label}: {shown(one.text)}: {which} for it")

    def _without_disk(self, host: Host, disk: FleetDisk, machine: Machine) -> Iterable[Load]:
        """Loads that name no disk: a recording has the number of its disk, and a machine with one
        disk has no other."""
        for one in host.loads:
            if one.disk is not None:
                continue
            if len(machine.disks) == 1:
                yield one
            elif one.source != "workload":
                if self._is_missing(one, host):
                    self._used.add((host.label, one))
                    continue
                try:
                    names = [name for name, _ in self._read(self._file(one, host), None).devices]
                except InputError as error:
                    if (host.label, one) not in self._used:
                        self.notes.append(f"{host.label}: {error}")
                    self._used.add((host.label, one))
                    continue
                if disk.number in names:
                    yield one
            else:
                yield one

    def _load(self, one: Load, disk: FleetDisk) -> DiskLoad:
        """InputError if a recording cannot be used."""
        if one.source == "workload":
            return DiskLoad(one.text, one.text.partition(":")[0], workload=one.text)
        host = self._hosts[disk.host]
        file = self._file(one, host)
        reading = self._read(file, None)
        device = None
        if len(reading.devices) > 1:
            if disk.number not in [name for name, _ in reading.devices]:
                raise InputError(f"{shown(one.text)}: has several devices, but not {disk.number}")
            device = disk.number
            reading = self._read(file, device)
        base = one.text.rpartition("/")[2]
        name = shown(f"{host.label}/{base}" if one.source == "recording" else base)
        for finding in reading.findings:
            note = f"{name}: {finding_text(finding)}"
            if finding.weight == _WARNING and note not in self.notes:
                self.notes.append(note)
        if device is not None:
            name += f"#{device}"
        return DiskLoad(name, kind_of(reading, disk.host), file=file, device=device)

    def _file(self, one: Load, host: Host) -> Path:
        if one.source == "file":
            return Path(one.text)
        place = self._directory / host.label
        return place / self._records(host)[one.text].file

    def _is_missing(self, one: Load, host: Host) -> bool:
        """Whether it is a recording that was not collected, which is said once."""
        if one.source != "recording" or one.text in self._records(host):
            return False
        line = f"{host.label}: {shown(one.text)}: was not collected"
        if line not in self.missing:
            self.missing.append(line)
        return True

    def _records(self, host: Host) -> dict[str, collect.Copied]:
        if host.label not in self._kept:
            self._kept[host.label] = collect.records(self._directory / host.label)
        return self._kept[host.label]

    def _read(self, file: Path, device: str | None) -> _core.TraceReading:
        key = file, device
        if key not in self._readings:
            self._readings[key] = read_trace(file, device=device)
        return self._readings[key]


def recorded(loads: Sequence[DiskLoad], model: Disk) -> tuple[dict[str, list[str]], list[Entry]]:
    """The recordings among the loads as workloads of a comparison, each in all ways, and their
    names by way; without recordings nothing. InputError if one cannot be read."""
    ways: dict[str, list[str]] = {}
    entries: list[Entry] = []
    sectors = core.disk_model(model).limits.capacity_bytes // _SECTOR_BYTES
    for load in loads:
        if load.file is None:
            continue
        changes = {} if load.device is None else {"device": load.device}
        found = recordings.load(recordings.chosen(recordings.entry(load.file, changes, load.name)))
        # A model of the kind may be smaller.
        changes["fit"] = "scale" if found.end_sector > sectors else "refuse"
        for way in WAYS:
            name = f"{load.name}:way={way}"
            # Without completions nothing says what an I/O waited for.
            if way == "open" or found.completed:
                entries.append(recordings.entry(load.file, changes | {"way": way}, name))
            else:
                name = f"{load.name}:way=open"
            ways.setdefault(way, []).append(name)
    return ways, entries
