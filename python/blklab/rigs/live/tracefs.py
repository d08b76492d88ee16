"""A private instance of tracefs, for the block layer's events of some disks.

Its name is in the journal before it is created: other programs may trace meanwhile, and the next
start finds leftovers of ``kill -9``.
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

from blklab import _core
from blklab.base.journal import Journal, boot_id
from blklab.base.signals import Signals
from blklab.base.text import shown
from blklab.errors import RunError
from blklab.host.roots import HERE, Roots

KIND = "trace"
"""The kind of its records."""
_PREFIX = "blklab-"
_NAME = re.compile(r"blklab-\d+-[0-9a-f]{6}")
_PLACES = ("kernel/tracing", "kernel/debug/tracing")
"""The paths of tracefs below /sys: since 4.1, and before."""

BUFFER_KIB = 8 << 10
"""The buffer of each CPU: some 100,000 events, more than a disk makes between two reads."""
_BUFFERS_KIB = 256 << 10
"""The buffers of all CPUs together, if that leaves `_LEAST_KIB` for each."""
_LEAST_KIB = 256
_CLOCK = "mono"
_HAS_DEVICE = "field:dev_t dev;"


@dataclass(frozen=True)
class Instance:
    """A directory of tracefs that is ours."""

    path: Path
    header_page: str
    formats: tuple[tuple[str, str], ...]

    def write(self, file: str, text: str) -> None:
        """RunError in one line if the kernel refuses it."""
        try:
            (self.path / file).write_text(text)
        except OSError as error:
            raise RunError(f"{self.path / file}: {error.strerror}") from error

    def lost(self) -> int:
        """Events lost to a full buffer since it was emptied. OSError if the kernel does not report
        it."""
        texts = [path.read_text() for path in self.path.glob("per_cpu/cpu*/stats")]
        return sum(int(found) for text in texts for found in re.findall(r"overrun: (\d+)", text))


def why_not(roots: Roots = HERE, needed: Sequence[str] | None = None) -> str:
    """The reason if requests cannot be traced here; else empty."""
    place = _tracefs(roots)
    if place is None:
        return (
            "tracefs is not mounted; type: mount -t tracefs tracefs /sys/kernel/tracing"
            if os.geteuid() == 0
            else "that needs root, and tracefs mounted at /sys/kernel/tracing"
        )
    if not os.access(place / "instances", os.W_OK):
        return f"no permission to write to {place / 'instances'}; that needs root"
    names = _core.BlockEvents.tracepoints() if needed is None else needed
    if missing := [name for name in names if not _has(place, name)]:
        return f"the kernel has no {', '.join(missing)} (CONFIG_BLK_DEV_IO_TRACE)"
    return ""


@contextlib.contextmanager
def tracing(
    disks: Sequence[str],
    journal: Journal,
    signals: Signals,
    told: list[str],
    roots: Roots = HERE,
    tracepoints: Sequence[str] | None = None,
) -> Iterator[Instance]:
    """An instance prepared for the events of these `disks`, by default those that a run needs; the
    end of the ``with`` removes it. RunError in one line if the kernel refuses a step."""
    place = _tracefs(roots)
    if place is None:
        raise RunError(why_not(roots))
    # Containers share tracefs but not process IDs: an ID is not unique as a name.
    name = f"{os.getpid()}-{secrets.token_hex(3)}"
    key = f"{KIND}-{name}"
    path = place / "instances" / f"{_PREFIX}{name}"
    with (
        journal.locked(key, str(path), once=True),
        signals.undoing(lambda: told.extend(_remove(path, journal, key))),
    ):
        journal.write(key, KIND, {"instance": str(path)})
        try:
            path.mkdir()
            header_page = (path / "events/header_page").read_text()
            formats = tuple(
                (name, (path / f"events/block/{name}/format").read_text())
                for name in tracepoints or _core.BlockEvents.tracepoints()
            )
        except OSError as error:
            raise RunError(f"{path}: {error.strerror}") from error
        instance = Instance(path, header_page, formats)
        instance.write("tracing_on", "0")
        cpus = len(list(path.glob("per_cpu/cpu*")))
        share_kib = max(_BUFFERS_KIB // max(cpus, 1), _LEAST_KIB)
        instance.write("buffer_size_kb", str(min(BUFFER_KIB, share_kib)))
        instance.write("trace_clock", _CLOCK)
        wanted = " || ".join(f"dev == {of}" for disk in disks for of in numbers(disk, roots))
        for name, text in formats:
            # A plug is a process's, not a device's.
            if _HAS_DEVICE in text:
                instance.write(f"events/block/{name}/filter", wanted)
            instance.write(f"events/block/{name}/enable", "1")
        yield instance


def recover(journal: Journal, key: str) -> list[str]:
    """Remove the instance of record `key`; returns a line for each result. Needs the lock."""
    record = journal.read(key)
    if record is None:
        return []
    path = _checked(record, journal, key)
    if record["boot_id"] != boot_id():
        journal.remove(key)
        return []
    there = path.exists()
    return _remove(path, journal, key) or ([f"{path}: removed"] if there else [])


def _remove(path: Path, journal: Journal, key: str) -> list[str]:
    try:
        path.rmdir()
    except FileNotFoundError:
        pass
    except OSError as error:
        return [f"{path}: not removed: {error.strerror}"]
    journal.remove(key)
    return []


def _checked(record: Mapping[str, Any], journal: Journal, key: str) -> Path:
    text = record.get("instance")
    if isinstance(text, str):
        path = Path(text)
        if (
            path.parent in [HERE.sys / place / "instances" for place in _PLACES]
            and _NAME.fullmatch(path.name)
            and key == f"{KIND}-{path.name.removeprefix(_PREFIX)}"
        ):
            return path
    raise RunError(f"{journal.directory / key}.json: not a record of tracing")


def _tracefs(roots: Roots) -> Path | None:
    places = (roots.sys / place for place in _PLACES)
    return next((place for place in places if _is_there(place / "instances")), None)


def has(name: str, roots: Roots = HERE) -> bool:
    """Whether the kernel has this tracepoint of the block layer."""
    place = _tracefs(roots)
    return place is not None and _has(place, name)


def _has(place: Path, name: str) -> bool:
    return _is_there(place / f"events/block/{name}")


def _is_there(path: Path) -> bool:
    """Also works without permission to list the folder."""
    try:
        path.stat()
    except OSError:
        return False
    return True


def numbers(disk: str, roots: Roots = HERE) -> list[int]:
    """The kernel's own numbers of the disk and its partitions: 12 bits major, 20 minor. RunError in
    one line if the disk is gone."""
    place = roots.sys / "block" / disk
    found = []
    try:
        for folder in (place, *(path.parent for path in sorted(place.glob("*/partition")))):
            major, minor = map(int, (folder / "dev").read_text().split(":"))
            found.append(major << 20 | minor)
    except (OSError, ValueError) as error:
        raise RunError(f"{shown(disk)}: the disk is gone") from error
    return found
