"""The cgroups of a job file, inside one of our own that goes with the run.

fio would make them at the top of the hierarchy, and leave them there if it is killed. So they are
made here, below ``blklab-...``, whose path the journal knows before it is made, and fio finds them
there. Weights are written here too: fio 3.33 writes ``blkio.weight``, which no scheduler
reads since Linux 5.0.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab.base.journal import Journal, boot_id
from blklab.base.signals import Signals
from blklab.base.text import shown
from blklab.errors import InputError, RunError
from blklab.host.devices import mounts
from blklab.host.roots import HERE, Roots

KIND = "cgroup"
"""Of its records."""
PATH_BYTES_MAX = 63
"""fio keeps a cgroup's path, mount point and all, in 64 bytes, and does not count."""

_PREFIX = "blklab-"
_NAME = re.compile(r"blklab-[0-9a-f]{6}")
# What schedulers read a weight from: bfq and io.cost, version 2 before version 1.
_WEIGHTS = ("io.bfq.weight", "io.weight", "blkio.bfq.weight", "blkio.weight")
_DEFAULT_WEIGHT = 100


@dataclass(frozen=True)
class Group:
    """A cgroup of a job file."""

    path: str
    """Names from the outermost in, with slashes between."""
    weight: int


@dataclass(frozen=True)
class Made:
    """Cgroups that are there, empty."""

    directory: Path
    """Ours, above them."""

    @property
    def name(self) -> str:
        """What stands before each of their paths, as fio is told it."""
        return self.directory.name

    def writable(self) -> list[Path]:
        """What fio writes to: the cgroups, and the lists of the top one, into which a process goes
        back when it ends."""
        top = self.directory.parent
        return [self.directory, top / "tasks", top / "cgroup.procs"]

    def weigh(self, groups: Sequence[Group]) -> list[str]:
        """Write the weights; a line if this kernel has no place for one that is asked for.
        RunError if it does not take one."""
        unread = []
        for group in groups:
            files = [self.directory / group.path / name for name in _WEIGHTS]
            there = [file for file in files if file.exists()]
            for file in there:
                try:
                    file.write_text(str(group.weight))
                except OSError as error:
                    raise RunError(f"{file}: {group.weight}: {error.strerror}") from error
            if not there and group.weight != _DEFAULT_WEIGHT:
                unread.append(group.path)
        if not unread:
            return []
        return [
            f"cgroup_weight of {', '.join(map(shown, unread))}: without effect: no scheduler that "
            "is loaded reads weights, or the io controller is off"
        ]


@contextlib.contextmanager
def made(
    groups: Sequence[Group],
    journal: Journal,
    signals: Signals,
    told: list[str],
    roots: Roots = HERE,
) -> Iterator[Made]:
    """The cgroups, which go with all processes' leaving when the ``with`` ends. InputError if
    there is no hierarchy, or no permission."""
    top = _hierarchy(roots)
    if top is None:
        raise InputError("cgroup=: no cgroups of I/O are mounted on this machine")
    name = f"{_PREFIX}{secrets.token_hex(3)}"
    key = f"{KIND}-{name.removeprefix(_PREFIX)}"
    place = top / name
    for group in groups:
        if (length := len(os.fsencode(place / group.path))) > PATH_BYTES_MAX:
            raise InputError(
                f"cgroup={shown(group.path)}: with its place, {top}, {length} bytes; fio keeps "
                f"{PATH_BYTES_MAX}"
            )
    with (
        journal.locked(key, str(place), once=True),
        signals.undoing(lambda: told.extend(_remove(place, journal, key))),
    ):
        journal.write(key, KIND, {"directory": str(place)})
        try:
            place.mkdir()
            _let_inner_weigh(place)
            for group in groups:
                (place / group.path).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cgroup=: {place}: {error.strerror}") from error
        yield Made(place)


def recover(journal: Journal, key: str) -> list[str]:
    """Remove the cgroups of record `key`; what was done or not, a line each. With the lock
    held."""
    record = journal.read(key)
    if record is None:
        return []
    place = _checked(record, journal, key)
    if record["boot_id"] != boot_id():
        journal.remove(key)
        return []
    there = place.exists()
    return _remove(place, journal, key) or ([f"{place}: removed"] if there else [])


def _remove(place: Path, journal: Journal, key: str) -> list[str]:
    """The innermost first; the kernel removes none that has a process."""
    try:
        for directory, _, _ in os.walk(place, topdown=False):
            with contextlib.suppress(FileNotFoundError):
                Path(directory).rmdir()
    except OSError as error:
        return [f"{place}: not removed: {error.strerror}"]
    journal.remove(key)
    return []


def _hierarchy(roots: Roots) -> Path | None:
    """Where fio looks: the first of version 2, or of version 1 with blkio."""
    for mount in mounts.mounts(roots):
        if mount.type == "cgroup2" or (mount.type == "cgroup" and "blkio" in mount.point):
            return Path(mount.point)
    return None


def _let_inner_weigh(place: Path) -> None:
    """In version 2 a cgroup has weights if the one above passes the controller on."""
    with contextlib.suppress(OSError):
        (place / "cgroup.subtree_control").write_text("+io")


def _checked(record: Mapping[str, Any], journal: Journal, key: str) -> Path:
    text = record.get("directory")
    if isinstance(text, str):
        path = Path(text)
        if (
            _NAME.fullmatch(path.name)
            and key == f"{KIND}-{path.name.removeprefix(_PREFIX)}"
            and path.parent == _hierarchy(HERE)
        ):
            return path
    raise RunError(f"{journal.directory / key}.json: not a record of cgroups")
