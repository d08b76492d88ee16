"""Real block devices for tests as root: loop devices over files of the test's own."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

SIZE_BYTES = 16 << 20


def missing() -> str:
    """Why there can be none here; empty if there can."""
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
    """The name of a loop device over a new sparse file in `directory`."""
    file = directory / "loop.img"
    with file.open("wb") as made:
        made.truncate(size_bytes)
    node = losetup("--find", "--show", str(file))
    try:
        # Settings outlive the file behind it: a test that was killed may have left another one.
        (Path("/sys/block") / Path(node).name / "queue/scheduler").write_text("none")
        yield Path(node).name
    finally:
        losetup("--detach", node)


@contextlib.contextmanager
def file_system(
    directory: Path, size_bytes: int = SIZE_BYTES, kind: str = "ext4"
) -> Iterator[Path]:
    """A mounted file system on a loop device of its own."""
    require()
    if not shutil.which(f"mkfs.{kind}"):
        pytest.skip(f"needs mkfs.{kind}: apt-get install e2fsprogs")
    with attached(directory, size_bytes) as name:
        subprocess.run([f"mkfs.{kind}", "-q", f"/dev/{name}"], check=True)
        mounted = directory / "mounted"
        mounted.mkdir()
        subprocess.run(["mount", f"/dev/{name}", str(mounted)], check=True)
        try:
            yield mounted
        finally:
            subprocess.run(["umount", str(mounted)], check=True)


def losetup(*arguments: str) -> str:
    done = subprocess.run(["losetup", *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()
