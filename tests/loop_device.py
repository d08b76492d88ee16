"""Real block devices for tests as root: loop devices over the test's own files."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

SIZE_BYTES = 16 << 20
_LOOP_CTL_ADD, _LOOP_CTL_REMOVE = 0x4C80, 0x4C81
"""From linux/loop.h."""
OWN_NUMBERS = range(200, 1000)
"""Above the numbers in use on a machine: the kernel assigns the lowest free number."""


def missing() -> str:
    """The reason why loop devices are impossible here; empty if they are possible."""
    if os.geteuid() != 0:
        return "needs root"
    if not shutil.which("losetup"):
        return "needs losetup: apt-get install mount"
    if not Path("/dev/loop-control").exists():
        return "needs loop devices: modprobe loop"
    return ""


def require() -> None:
    """Skip the test, with the reason, where there are no loop devices."""
    if reason := missing():
        pytest.skip(reason)


@contextlib.contextmanager
def attached(directory: Path, size_bytes: int = SIZE_BYTES) -> Iterator[str]:
    """The name of a loop device over a new sparse file in `directory`.

    Only this test uses its number: it may detach the file and attach another one, while a process
    that asks the kernel for a free device gets a lower one. The device is new, with default
    settings.
    """
    file = directory / "loop.img"
    with file.open("wb") as made:
        made.truncate(size_bytes)
    with _own_number() as number:
        node = f"/dev/loop{number}"
        losetup(node, str(file))
        try:
            yield Path(node).name
        finally:
            losetup("--detach", node)


@contextlib.contextmanager
def _own_number() -> Iterator[int]:
    """The name of a new loop device, which is removed at the end."""
    number = next(number for number in OWN_NUMBERS if _is_added(number))
    try:
        yield number
    finally:
        # A program that probes every disk may have it open; then it stays, without a file.
        with contextlib.suppress(OSError):
            remove(number)


def _is_added(number: int) -> bool:
    try:
        add(number)
    except FileExistsError:
        return False
    return True


def add(number: int) -> None:
    """Create the device with this number. FileExistsError if there is one."""
    _control(_LOOP_CTL_ADD, number)


def remove(number: int) -> None:
    """Remove the device with this number. OSError if it is in use."""
    _control(_LOOP_CTL_REMOVE, number)


def _control(what: int, number: int) -> None:
    with Path("/dev/loop-control").open("rb") as control:
        fcntl.ioctl(control, what, number)


@contextlib.contextmanager
def file_system(
    directory: Path, size_bytes: int = SIZE_BYTES, kind: str = "ext4"
) -> Iterator[Path]:
    """A mounted file system on a loop device of its own."""
    require()
    if not shutil.which(f"mkfs.{kind}"):
        pytest.skip(f"needs mkfs.{kind}: apt-get install e2fsprogs")
    with attached(directory, size_bytes) as name:
        # All at once: ext4 would go on writing in the background after it was mounted.
        whole = ["-E", "lazy_itable_init=0,lazy_journal_init=0"] if kind == "ext4" else []
        subprocess.run([f"mkfs.{kind}", "-q", *whole, f"/dev/{name}"], check=True)
        mounted = directory / "mounted"
        mounted.mkdir()
        subprocess.run(["mount", f"/dev/{name}", str(mounted)], check=True)
        try:
            yield mounted
        finally:
            if mounted.is_mount():
                subprocess.run(["umount", str(mounted)], check=True)


def losetup(*arguments: str) -> str:
    done = subprocess.run(["losetup", *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()
