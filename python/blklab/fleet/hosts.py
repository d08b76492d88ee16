"""From a file of hosts to `Fleet`. Errors name the file, line, key and value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, cast

from blklab.base.catalogue import Entry
from blklab.base.files import text_content
from blklab.base.text import shown
from blklab.errors import InputError
from blklab.fleet import keys
from blklab.study import tables
from blklab.study.model import beside, wrong
from blklab.study.places import KeyPath

_BYTES_MAX = 4 << 20
Source = Literal["workload", "recording", "file"]
AUTO = "auto"


@dataclass(frozen=True)
class Load:
    """What some disks of a host do."""

    disk: str | None
    """A pattern of the kernel's name; None if the file names none."""
    source: Source
    """``workload``: `text` names it; ``recording``: its path on the host; ``file``: its path
    here."""
    text: str
    place: KeyPath
    """Where the file of hosts has it, for errors."""

    def is_of(self, disk: str) -> bool:
        """Whether the disk with the kernel's name may have this load."""
        return self.disk is None or fnmatchcase(disk, self.disk)


@dataclass(frozen=True)
class Host:
    """A machine."""

    name: str
    """As for ssh: ``db1``, ``root@db1``."""
    label: str
    """Its name in tables and directories; no other host has it."""
    port: int | None
    options: tuple[str, ...]
    """``NAME=VALUE`` of ssh."""
    loads: tuple[Load, ...]
    usual: tuple[Load, ...]
    """The loads of each disk that is in none of `loads`."""

    def loads_of(self, disk: str) -> list[Load]:
        """The loads of the disk with the kernel's name, but for recordings without a disk."""
        own = [one for one in self.loads if one.disk is not None and one.is_of(disk)]
        return own or list(self.usual)

    @property
    def recordings(self) -> list[str]:
        """Paths of recordings on the host, each once."""
        return list(dict.fromkeys(one.text for one in self.loads if one.source == "recording"))


@dataclass(frozen=True)
class Fleet:
    """A whole file of hosts."""

    file: Entry
    hosts: tuple[Host, ...]
    objective: str
    schedulers: tuple[str, ...]
    """Empty: Linux's own of today."""
    repeats: int
    seed: int
    timeout_s: int
    parallel: int
    models: Mapping[str, str]
    """Disk models by patterns of disks' models, in order."""

    def model(self, of_disk: str) -> str:
        """What the file says of a disk's model; `AUTO` if it says nothing."""
        return next((m for p, m in self.models.items() if fnmatchcase(of_disk, p)), AUTO)

    def wrong(self, place: KeyPath, message: str) -> InputError:
        """The error for the value at `place` in the file."""
        return wrong(self.file, place, message)


def read(path: Path) -> Fleet:
    """The file at `path`. InputError if it cannot be read, or for any invalid part."""
    text = text_content(path, _BYTES_MAX, "a file of hosts")
    return parse(Entry(shown(path.stem), path, text.replace("\r\n", "\n").replace("\r", "\n")))


def parse(file: Entry) -> Fleet:
    """The fleet in `file`. InputError for any invalid part."""
    rows = tables.checked(file, tables.document(file, "a file of hosts"), (), keys.FILE)
    hosts: list[Host] = []
    places: dict[str, KeyPath] = {}
    for number, table in enumerate(rows["host"]):
        for place, host in _hosts(file, table, ("host", number), rows.get("workloads", ())):
            if host.label in places:
                raise wrong(file, place, f"'{host.label}' is given twice; give one another label")
            places[host.label] = place
            hosts.append(host)
    if not hosts:
        raise wrong(file, ("host",), "missing; expected at least one [[host]]")
    if len(hosts) > keys.HOSTS_MAX:
        raise wrong(file, ("host",), f"{len(hosts)} hosts; expected at most {keys.HOSTS_MAX}")
    return Fleet(
        file,
        tuple(hosts),
        rows.get("objective", "both"),
        tuple(rows.get("schedulers", ())),
        rows.get("repeats", 10),
        rows.get("seed", 1),
        rows.get("timeout_s", 30),
        rows.get("parallel", 16),
        rows.get("models", {}),
    )


def _hosts(
    file: Entry, table: dict[str, Any], path: KeyPath, workloads: list[str]
) -> Iterator[tuple[KeyPath, Host]]:
    """The hosts of one table, each with its place."""
    row = tables.checked(file, table, path, keys.HOSTS)
    if ("name" in row) == ("names" in row):
        raise wrong(file, path, "expected either the key 'name' or the key 'names'")
    if "label" in row and "names" in row:
        raise wrong(file, (*path, "label"), "several hosts cannot have one label; use 'name'")
    named = [((*path, "name"), row["name"])] if "name" in row else []
    named += [((*path, "names", n), name) for n, name in enumerate(row.get("names", ()))]
    loads = [_load(file, each, (*path, "load", n)) for n, each in enumerate(row.get("load", ()))]
    where = (*path, "workloads") if "workloads" in row else ("workloads",)
    usual = [
        Load("*", "workload", _workload(file, text), (*where, n))
        for n, text in enumerate(row.get("workloads", workloads))
    ]
    for place, name in named:
        label = row.get("label", name.rpartition("@")[2].replace(":", "_"))
        yield (
            place,
            Host(
                name,
                label,
                row.get("port"),
                tuple(row.get("options", ())),
                tuple(loads),
                tuple(usual),
            ),
        )


def _load(file: Entry, table: dict[str, Any], path: KeyPath) -> Load:
    row = tables.checked(file, table, path, keys.LOAD)
    given = [name for name in keys.SOURCES if name in row]
    if len(given) != 1:
        told = " and ".join(given) if given else "none of them"
        raise wrong(file, path, f"expected one of {', '.join(keys.SOURCES)}; found {told}")
    [source] = given
    text = row[source]
    if source == "workload":
        text = _workload(file, text)
    elif source == "file":
        text = str(file.path.parent / text)
    return Load(row.get("disk"), cast(Source, source), text, (*path, source))


def _workload(file: Entry, text: str) -> str:
    return beside(file.path.parent, text, ".fio")
