"""A fast block device of the kernel's own, made for a measurement and removed whatever happens.

``null_blk`` completes each request at once; its configuration is a directory of configfs, whose
name is in the journal before it is made. ``loop`` reads an anonymous file of memory without pages,
so reads give zeros; the kernel detaches it when the last process with a handle of it ends. Neither
holds data.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import struct
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from blklab.base.as_root import or_as_root
from blklab.base.journal import Journal
from blklab.base.signals import Signals
from blklab.base.text import shown
from blklab.errors import InputError, RunError, nearest
from blklab.host.roots import HERE, Roots

KIND = "nullblk"
"""The kind of the records of `null_blk`'s devices."""
SIZE_BYTES = 256 << 20
_TAGS = 128
_NAME = re.compile(r"blklab-[0-9a-f]{8}")

# From linux/loop.h.
_LOOP_CONFIGURE, _LOOP_CTL_GET_FREE = 0x4C0A, 0x4C82
_READ_ONLY, _AUTOCLEAR = 1, 4
_CONFIG = struct.Struct("=II 5Q 4I 64s 64s 32s 2Q 8Q")
_TRIES = 20


@dataclass(frozen=True)
class Made:
    """A device that exists."""

    kind: str
    """``null_blk`` or ``loop``."""
    name: str
    """As in /sys/block."""
    tags: int
    """Requests at once."""

    @property
    def path(self) -> Path:
        """Its node."""
        return Path("/dev") / self.name


def kinds(roots: Roots = HERE) -> dict[str, str]:
    """Each kind in the order of preference, with the reason why it is missing, which is empty if it
    can be made."""
    return {"null_blk": _no_null_blk(roots), "loop": _no_loop(roots)}


def chosen(kind: str | None, roots: Roots = HERE) -> str:
    """The kind that will be made: the first possible one without a `kind`. InputError with the
    reason if there is none."""
    if os.geteuid() != 0:
        raise InputError(f"a device for the measurement needs root{or_as_root()}")
    known = kinds(roots)
    if kind is not None:
        if kind not in known:
            raise InputError(f"--device: no '{shown(kind)}'{nearest(kind, list(known))}")
        if known[kind]:
            raise InputError(f"--device: {kind}: {known[kind]}")
        return kind
    for name, missing in known.items():
        if not missing:
            return name
    told = "; ".join(f"{name}: {missing}" for name, missing in known.items())
    raise InputError(f"this machine has no device for the measurement: {told}")


@contextlib.contextmanager
def made(kind: str, journal: Journal, signals: Signals, told: list[str]) -> Iterator[Made]:
    """A new device of that kind. RunError if the kernel refuses it."""
    with (_null_blk if kind == "null_blk" else _loop)(journal, signals, told) as device:
        yield device


def recover(journal: Journal, key: str, roots: Roots = HERE) -> list[str]:
    """Remove the device of record `key`; returns a line for each result. Needs the lock."""
    record = journal.read(key)
    if record is None:
        return []
    name = _checked(record, journal, key)
    problem = _remove(_nullb(roots) / name)
    if not problem:
        journal.remove(key)
    return [problem or f"{name}: null_blk's device removed"]


def _checked(record: Mapping[str, object], journal: Journal, key: str) -> str:
    name = record.get("name")
    if isinstance(name, str) and _NAME.fullmatch(name) and key == f"{KIND}-{name[7:]}":
        return name
    raise RunError(f"{journal.directory / key}.json: not a record of a null_blk device")


def _nullb(roots: Roots) -> Path:
    return roots.sys / "kernel/config/nullb"


def _no_null_blk(roots: Roots) -> str:
    if _nullb(roots).is_dir():
        return ""
    with contextlib.suppress(OSError):
        # Without devices of its own.
        subprocess.run(["modprobe", "null_blk", "nr_devices=0"], capture_output=True, check=False)
    if _nullb(roots).is_dir():
        return ""
    if (roots.sys / "module/null_blk").is_dir():
        return "configfs is not mounted; type: mount -t configfs none /sys/kernel/config"
    return "the kernel has no module null_blk"


def _no_loop(roots: Roots) -> str:
    if (roots.dev / "loop-control").exists():
        return ""
    return "there is no /dev/loop-control; type: modprobe loop"


@contextlib.contextmanager
def _null_blk(journal: Journal, signals: Signals, told: list[str]) -> Iterator[Made]:
    number = secrets.token_hex(4)
    name, key = f"blklab-{number}", f"{KIND}-{number}"
    directory = _nullb(HERE) / name

    def undo() -> None:
        problem = _remove(directory)
        if problem:
            told.append(problem)
        else:
            journal.remove(key)

    with journal.locked(key, name, once=True), signals.undoing(undo):
        journal.write(key, KIND, {"name": name})
        try:
            directory.mkdir()
            values = {
                "size": SIZE_BYTES >> 20,
                "hw_queue_depth": _TAGS,
                "submit_queues": 1,
                "power": 1,
            }
            for attribute, value in values.items():
                (directory / attribute).write_text(str(value))
            index = (directory / "index").read_text().strip()
        except OSError as error:
            raise RunError(f"{directory}: {error.strerror}") from error
        # Kernels name it by its directory or by its index.
        found = [each for each in (name, f"nullb{index}") if (HERE.sys / "block" / each).is_dir()]
        if not found:
            raise RunError(f"{directory}: made a device that /sys/block does not list")
        _wait_for(Path("/dev") / found[0])
        yield Made("null_blk", found[0], _TAGS)


def _remove(directory: Path) -> str:
    """Remove a device of null_blk; the reason if that fails."""
    try:
        (directory / "power").write_text("0")
        directory.rmdir()
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{directory}: not removed: {error.strerror}"
    return ""


@contextlib.contextmanager
def _loop(_journal: Journal, _signals: Signals, _told: list[str]) -> Iterator[Made]:
    file = os.memfd_create("blklab", os.MFD_CLOEXEC)
    try:
        os.ftruncate(file, SIZE_BYTES)
        handle, name = _attached(file)
    finally:
        os.close(file)
    try:
        yield Made("loop", name, _TAGS)
    finally:
        os.close(handle)


def _attached(file: int) -> tuple[int, str]:
    """A handle of a loop device with that file, and its name; the device is free again when its
    last handle is closed."""
    config = _CONFIG.pack(
        *(file, 0), *(0, 0, 0, 0, SIZE_BYTES), *(0, 0, 0, _READ_ONLY | _AUTOCLEAR),
        *(b"blklab", b"", b""), *(0, 0), *([0] * 8)
    )  # fmt: skip
    for _ in range(_TRIES):
        try:
            with Path("/dev/loop-control").open("rb") as control:
                number = fcntl.ioctl(control, _LOOP_CTL_GET_FREE)
            handle = os.open(f"/dev/loop{number}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise RunError(f"/dev/loop-control: {error.strerror}") from error
        try:
            fcntl.ioctl(handle, _LOOP_CONFIGURE, config)
        except OSError as error:
            os.close(handle)
            if error.errno != errno.EBUSY:
                raise RunError(f"/dev/loop{number}: {error.strerror}") from error
            # Another process was faster.
            continue
        return handle, f"loop{number}"
    raise RunError("/dev/loop-control: other processes take every free device")


def _wait_for(node: Path, is_there: Callable[[Path], bool] = Path.exists) -> None:
    for _ in range(100):
        if is_there(node):
            return
        time.sleep(0.05)
    raise RunError(f"{node}: udev has not made it")
