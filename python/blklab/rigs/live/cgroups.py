"""The cgroups of a job file, inside a cgroup of our own that is removed after the run. fio would
create them at the top of the hierarchy, and leave them there if it is killed.

So they are created here, below ``blklab-...``; its path is in the journal before it is created, and
fio finds the cgroups there. Weights are written here too: fio 3.33 writes ``blkio.weight``, which
no scheduler reads since Linux 5.0.
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
"""The kind of its records."""
PATH_BYTES_MAX = 63
"""fio stores a cgroup's path with the mount point in 64 bytes, without a check."""

_PREFIX = "blklab-"
_NAME = re.compile(r"blklab-[0-9a-f]{6}")
# The files from which bfq and io.cost read a weight, version 2 before version 1.
_WEIGHTS = ("io.bfq.weight", "io.weight", "blkio.bfq.weight", "blkio.weight")
_DEFAULT_WEIGHT = 100


@dataclass(frozen=True)
class Group:
    """A cgroup of a job file."""

    path: str
    """Names from the outermost inwards, separated by slashes."""
    weight: int


@dataclass(frozen=True)
class Made:
    """Existing, empty cgroups."""

    directory: Path
    """Our own cgroup above them."""

    @property
    def name(self) -> str:
        """The prefix of their paths, as fio receives it."""
        return self.directory.name

    def writable(self) -> list[Path]:
        """The files that fio writes to: the cgroups, and the process lists of the top one, into
        which a process returns when it ends."""
        top = self.directory.parent
        return [self.directory, top / "tasks", top / "cgroup.procs"]

    def weigh(self, groups: Sequence[Group]) -> list[str]:
        """Write the weights; returns a line if this kernel has no file for a requested one.
        RunError if the kernel refuses one."""
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
    """The cgroups; the end of the ``with`` removes them after their processes have left. InputError
    if there is no hierarchy, or no permission."""
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
    """Remove the cgroups of record `key`; returns a line for each result. Needs the lock."""
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
    """Removes the innermost first; the kernel refuses to remove one with a process."""
    try:
        for directory, _, _ in os.walk(place, topdown=False):
            with contextlib.suppress(FileNotFoundError):
                Path(directory).rmdir()
    except OSError as error:
        return [f"{place}: not removed: {error.strerror}"]
    journal.remove(key)
    return []


def _hierarchy(roots: Roots) -> Path | None:
    """The hierarchy that fio uses: the first of version 2, or of version 1 with blkio."""
    for mount in mounts.mounts(roots):
        if mount.type == "cgroup2" or (mount.type == "cgroup" and "blkio" in mount.point):
            return Path(mount.point)
    return None


def _let_inner_weigh(place: Path) -> None:
    """In version 2 a cgroup has weights if its parent enables the controller for its children."""
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
