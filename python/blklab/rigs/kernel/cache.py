"""The cache of kernels and all their parts, and the locks for access to it.

::

    downloads/   packages, as the mirror gave them
    sources/     unpacked sources, one directory each, never changed
    trees/       per source: a copy to patch (hard links) and the objects built of it
    built/       finished kernels by key: `linux`, `config`, `kernel.json`; never changed
    names/       a file per name that holds a key

Anything that takes longer than a write is made beside its place under a lock and renamed at the
end, so a killed build leaves only files that the next one removes.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from blklab.base import homes
from blklab.base.files import text_content, write_whole
from blklab.domain import specs
from blklab.errors import InputError, nearest
from blklab.rigs.kernel import config

OWN_PATCHES = {
    "clock.patch": "a guest reads its clock in 256 ns steps",
    "seed.patch": "a guest has other random numbers at each boot",
    "own-cpu.patch": "a guest is slower, on one CPU",
    "disk.patch": "a guest's disk can only be ublk, neither SATA, SAS nor NVMe",
    "ticks.patch": "a guest has 100 ticks per second, not 1000",
    "cpus.patch": "a guest's disk has one hardware queue, and the kernel queues for one CPU",
    "work.patch": "a buffered call costs its CPU work before it begins, not while it copies",
    "cpu.patch": "CPU work of programs takes no time in a guest",
    "spin.patch": "a guest runs no MariaDB, which would wait for a tick for ever",
}
"""Our own patches in order, each with the consequence for a kernel that it does not fit. They touch
no scheduler."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,79}")
_VERSION = re.compile(r"\d{1,4}\.", re.ASCII)
_KEY_DIGITS = 12
_NAMES_TOLD = 5
_NAME_BYTES_MAX = 1 << 10
_RECORD_BYTES_MAX = 1 << 20
_PARTIAL = ".partial-"


@dataclass(frozen=True)
class Kernel:
    """A finished kernel."""

    key: str
    version: str
    """The kernel's own version: ``7.3.4``."""
    source: str
    """The source, for display."""
    base: str
    """The source's identity."""
    patches: tuple[str, ...]
    """File names, in the order in which they were applied."""
    config: tuple[str, ...]
    """Options that the user set."""
    built_at: str
    """ISO 8601, UTC."""
    build_s: float
    """Wall time of the build."""
    compiled: int
    """The number of files compiled for it; earlier builds made the others."""
    added: tuple[str, ...] = ()
    """Names of the user's files in ``block/``."""
    hz: int = 100
    """Ticks per second."""
    has_transports: bool = False
    """A guest's disk has the transport of the modelled one; elsewhere it is ublk."""
    names: tuple[str, ...] = ()

    @property
    def has_cpus(self) -> bool:
        """Its queues are those of as many CPUs as the modelled host has."""
        return self.has_transports and "cpus.patch" in self.patches

    @property
    def as_guest(self) -> specs.GuestKernel:
        """What its guests have by themselves."""
        return specs.GuestKernel(self.version, self.hz, self.has_transports, self.has_cpus)

    @property
    def directory(self) -> Path:
        """The directory of the files below."""
        return root() / "built" / self.key

    @property
    def image(self) -> Path:
        """The executable."""
        return self.directory / "linux"

    @property
    def size_bytes(self) -> int:
        """Size of the executable."""
        return self.image.stat().st_size

    def to_json(self) -> dict[str, Any]:
        """Plain data, as ``blklab kernel list --json`` prints it."""
        return asdict(self) | {"image": str(self.image), "size_bytes": self.size_bytes}

    def has(self, options: Collection[str]) -> bool:
        """Whether its configuration has all of these options, named without ``CONFIG_``."""
        if not options:
            return True
        found = config.parse((self.directory / "config").read_text(encoding="utf-8"))
        return all(found.get(option) == "y" for option in options)

    @property
    def number(self) -> tuple[int, ...]:
        """Its version as numbers: (7, 3, 4)."""
        return tuple(map(int, re.findall(r"\d+", self.version, re.ASCII)))

    @property
    def label(self) -> str:
        """Its name, or its key if it has none."""
        return self.names[0] if self.names else self.key

    @property
    def changes(self) -> tuple[str, ...]:
        """The difference from the published kernel; a user's directory and its commits may contain
        anything."""
        patches = ", ".join(label for label in self.patches if label not in OWN_PATCHES)
        found = (
            self.source if self.base.startswith(("directory ", "commit ")) else "",
            f"patched with {patches}" if patches else "",
            f"with {', '.join(self.added)}" if self.added else "",
        )
        return tuple(filter(None, found))

    @property
    def text(self) -> str:
        """For display: ``Linux 7.3.4 (mine, patched with mine.patch)``."""
        label = () if self.label == self.version else (self.label,)
        lacking = (f"lacks {patch}" for patch in OWN_PATCHES if patch not in self.patches)
        told = (*label, *(self.changes or ["without changes"]), *self.config, *lacking)
        return f"Linux {self.version} ({', '.join(told)})"


def root() -> Path:
    """``$BLKLAB_CACHE/kernels``, else below ``$XDG_CACHE_HOME/blklab`` or ``~/.cache/blklab``."""
    own = os.environ.get("BLKLAB_CACHE")
    if own:
        return homes.expanded(own).absolute() / "kernels"
    try:
        return homes.cache() / "blklab" / "kernels"
    except homes.NoHomeError as error:
        raise InputError(f"{error}, or BLKLAB_CACHE") from None


def key_of(*parts: str) -> str:
    """A short name for all of `parts` together."""
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:_KEY_DIGITS]


@contextlib.contextmanager
def locked(place: Path, waiting: Callable[[], None] | None = None) -> Iterator[int]:
    """Lock `place`, which may not exist yet; yields the descriptor of the lock.

    A child that gets the descriptor keeps the lock for as long as it lives. `waiting` is
    called once if another process has it.
    """
    lock = place.parent / f".{place.name}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting is not None:
                waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def partial_of(place: Path) -> Path:
    """The place for an incomplete `place`; needs its lock."""
    return place.with_name(f"{_PARTIAL}{place.name}")


@contextlib.contextmanager
def whole_directory(place: Path) -> Iterator[Path]:
    """A directory to fill that becomes `place` at the end, or is removed.

    Needs the lock of `place`: leftovers of a killed process are removed.
    """
    partial = partial_of(place)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        if place.exists():
            shutil.rmtree(place)
        partial.rename(place)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def checked_name(name: str) -> str:
    """`name`, if it is valid for a kernel; InputError otherwise."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"--name: '{name}': expected letters, digits and . _ + -, at most 80 characters"
        )
    return name


def by_key(key: str) -> Kernel | None:
    """The finished kernel of that key, if it is complete."""
    found = _read(key)
    return found if isinstance(found, Kernel) else None


def kernels() -> list[Kernel]:
    """All finished kernels, the latest first."""
    found = [kernel for kernel in map(_read, _keys()) if isinstance(kernel, Kernel)]
    return sorted(found, key=lambda kernel: kernel.built_at, reverse=True)


def damaged() -> list[str]:
    """A line for each incomplete kernel."""
    return [line for line in map(_read, _keys()) if isinstance(line, str)]


def _read(key: str) -> Kernel | str:
    """The kernel, or a line with the error."""
    import msgspec

    place = root() / "built" / key
    record = place / "kernel.json"
    names = [name for name, target in _names().items() if target == key]
    try:
        row = json.loads(text_content(record, _RECORD_BYTES_MAX, "a kernel's record"))
        known = {"key": key, "names": sorted(names)}
        kernel = msgspec.convert(row | known if isinstance(row, dict) else row, Kernel)
    except InputError as error:
        return f"{error}; the kernel is incomplete: remove {place}, or build it again"
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        return f"{record}: not a kernel's record ({error}); remove {place}, or build it again"
    if not _VERSION.match(kernel.version):
        return (
            f"{record}: no version of Linux: '{kernel.version}'; remove {place}, or build it again"
        )
    if not kernel.image.is_file():
        return f"{kernel.image}: missing; remove {place}, or build the kernel again"
    return kernel


def _keys() -> list[str]:
    return sorted(path.name for path in _entries("built"))


def find(name: str) -> Kernel:
    """The kernel of that name or key. InputError if there is none."""
    names = _names()
    key = names.get(name, name)
    if not _NAME.fullmatch(name) or (name not in names and key not in _keys()):
        there = [named for named, key in names.items() if by_key(key) is not None]
        hint = nearest(name, there) if there else "; build one: blklab kernel build"
        raise InputError(f"no kernel '{name}'{hint}")
    found = _read(key) if _NAME.fullmatch(key) else f"'{key}' is not a kernel's key"
    if isinstance(found, str):
        raise InputError(f"kernel '{name}': {found}")
    return found


def chosen(name: str | None, needs: Collection[str] = ()) -> Kernel:
    """The kernel for a run: the kernel `name`, else the newest version without changes, of which
    one with blklab's own options, of which the build that was made last.

    `needs` are options of the configuration: kernels that have them go before all others.
    InputError if there is none: a kernel with changes must be named.
    """
    if name is not None:
        return find(name)
    there = kernels()
    unchanged = (kernel for kernel in there if not kernel.changes)
    # Of equal ones max() takes the first, which was built last.
    found = max(
        unchanged,
        key=lambda kernel: (kernel.has(needs), kernel.number, not kernel.config),
        default=None,
    )
    if found is None:
        with_changes = ", ".join(kernel.label for kernel in there[:_NAMES_TOLD])
        raise InputError(
            f"no kernel without changes in the cache; name one ({with_changes}), or build one: "
            "blklab kernel build"
            if there
            else "no kernel in the cache; build one: blklab kernel build"
        )
    return found


def keep(kernel: Kernel, files: Mapping[str, Path]) -> None:
    """Store `kernel` with `files`, which are copied: name in the cache -> path."""
    row: Mapping[str, Any] = {
        field: value for field, value in asdict(kernel).items() if field not in ("key", "names")
    }
    with locked(kernel.directory), whole_directory(kernel.directory) as partial:
        for name, path in files.items():
            shutil.copy2(path, partial / name)
            # Root's guests run as the user `nobody`, which must be able to read it.
            (partial / name).chmod(0o755 if os.access(path, os.X_OK) else 0o644)
        (partial / "kernel.json").write_text(json.dumps(row, indent=2) + "\n", encoding="utf-8")


def give_name(name: str, key: str) -> None:
    """Give `name` to the kernel `key`; the previous kernel of that name stays under its key."""
    write_whole(root() / "names" / name, f"{key}\n")


def remove(kernel: Kernel, name: str) -> bool:
    """Drop `name`, and with its last name the kernel.

    True if the kernel was removed. The source and its objects stay for the next build; see
    `remove_sources`.
    """
    if name != kernel.key:
        (root() / "names" / name).unlink(missing_ok=True)
        if len(kernel.names) > 1:
            return False
    for other in kernel.names:
        (root() / "names" / other).unlink(missing_ok=True)
    with locked(kernel.directory):
        shutil.rmtree(kernel.directory, ignore_errors=True)
    return True


def remove_sources() -> int:
    """Remove downloads, sources and objects that are not in use; returns the freed bytes."""
    before = sum(used_bytes().values())
    for part in ("trees", "sources", "downloads"):
        for path in (root() / part).glob("*"):
            name = path.name.removeprefix(_PARTIAL)
            if name.startswith("."):
                continue
            with contextlib.suppress(BlockingIOError), _locked_now(path.with_name(name)):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    return before - sum(used_bytes().values())


def used_bytes() -> dict[str, int]:
    """Bytes on the disk per part of the cache; a file with several links counts once."""
    seen: set[tuple[int, int]] = set()
    return {part: _used(root() / part, seen) for part in ("built", "downloads", "sources", "trees")}


def now_text() -> str:
    """The current time in UTC, to the second, in the form of `Kernel.built_at`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@contextlib.contextmanager
def _locked_now(place: Path) -> Iterator[None]:
    handle = os.open(place.parent / f".{place.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _names() -> dict[str, str]:
    found = {}
    for path in _entries("names"):
        with contextlib.suppress(OSError):
            found[path.name] = path.read_bytes()[:_NAME_BYTES_MAX].decode(errors="replace").strip()
    return found


def _entries(part: str) -> list[Path]:
    try:
        return [path for path in (root() / part).iterdir() if not path.name.startswith(".")]
    except FileNotFoundError:
        return []


def _used(directory: Path, seen: set[tuple[int, int]]) -> int:
    total = 0
    for where, _, files in os.walk(directory):
        for name in files:
            with contextlib.suppress(FileNotFoundError):
                found = os.lstat(os.path.join(where, name))  # noqa: PTH118 (100,000 files)
                if (found.st_dev, found.st_ino) not in seen:
                    seen.add((found.st_dev, found.st_ino))
                    total += found.st_blocks * 512
    return total
