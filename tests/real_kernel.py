"""The default kernel, built or taken from the user's cache, once for all tests."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from blklab.base.steps import Steps
from blklab.errors import RunError
from blklab.rigs.kernel import cache, nfs, source, tools, wall
from blklab.rigs.kernel.build import build
from blklab.rigs.kernel.errors import KernelError

POWER_OFF = "exec python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321FEDC)'\n"
"""The last line of an init in sh."""


_CPU_S_A_FILE = 0.6
"""estimate: 730 files took 440 s of CPU."""

built_before: Path | None = None
"""The image, in a worker of pytest-xdist, which need not wait for other builds from the source."""


class _Told(Steps):
    """Reports the steps that take minutes, past pytest's capture; the others are quick and
    silent."""

    capture: Any = None
    """pytest's capture manager, which ``conftest.py`` puts here."""

    def begin(self, what: str, total: int | None = None, unit: str = "") -> None:
        if total is None:
            return
        if unit == "files":
            minutes = total * _CPU_S_A_FILE / len(os.sched_getaffinity(0)) / 60
            what = f"{what} Linux once, {total} files: about {minutes:.0f} minutes"
        with self.capture.global_and_fixture_disabled():
            print(f"\n{what}", file=sys.stderr, flush=True)


def let_it_tell(config: pytest.Config) -> None:
    """Lets the kernel's build print past the capture of `config`."""
    _Told.capture = config.pluginmanager.getplugin("capturemanager")


@functools.cache
def image_or_reason() -> Path | str:
    """The kernel's image, or the reason why there is none. A cold build takes some minutes."""
    if built_before is not None:
        return built_before
    if absent := tools.missing():
        return f"not installed: {', '.join(absent)}"
    if not _may_trace():
        return "ptrace is not allowed here"
    try:
        wall.told()
    except RunError as error:
        return str(error)
    told = _Told()
    try:
        source.find(None, told)
    except KernelError as error:
        return f"no kernel source: {error}"
    return build(steps=told).kernel.image


def image() -> Path:
    """The kernel's image; skips with the reason where there is none."""
    found = image_or_reason()
    if isinstance(found, str):
        pytest.skip(found)
    return found


FILE_SYSTEMS = ("XFS_FS=y", "BTRFS_FS=y", "F2FS_FS=y")
"""Options of a kernel with all file systems that a guest's disk may have."""


@functools.cache
def with_file_systems() -> str:
    """The key of the default kernel with all file systems; skips with the reason where there is
    none. After the default one its build compiles what these need."""
    image()
    return build(name="file-systems", options=FILE_SYSTEMS, steps=_Told()).kernel.key


@functools.cache
def with_nfs() -> str:
    """The key of the default kernel with an NFS server and client; skips with the reason where
    there is none. It takes as long to build as the default one: with them every file is another."""
    image()
    return build(name="nfs", options=nfs.CONFIG, steps=_Told()).kernel.key


def older(version: str) -> str:
    """The key of a built kernel of that version (``6.12``) without changes; skips with the reason
    where there is none, since a second kernel takes as long to build as the first."""
    image()
    of_version = (kernel for kernel in cache.kernels() if kernel.version.startswith(f"{version}."))
    found = next((kernel for kernel in of_version if not kernel.changes), None)
    if found is None:
        pytest.skip(f"Linux {version} is not built: blklab kernel build --source {version}")
    return found.key


def processes(directory: Path) -> list[str]:
    """Command lines with the directory in them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if str(directory) in line:
            found.append(line)
    return found


def descendants(ancestors: Iterable[int], name: str) -> list[dict[str, str]]:
    """The kernel's status of processes with that name that descend from one of those."""
    rows = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            rows.append(dict(line.split(":\t", 1) for line in status.read_text().splitlines()))
    family = set(map(str, ancestors))
    while more := {row["Pid"] for row in rows if row["PPid"] in family} - family:
        family |= more
    return [row for row in rows if row["Name"] == name and row["Pid"] in family]


def _may_trace() -> bool:
    """Whether a child may ask to be traced, as user-mode Linux does."""
    import ctypes
    import os

    trace_me = 0
    child = os.fork()
    if child == 0:
        os._exit(0 if ctypes.CDLL(None).ptrace(trace_me, 0, None, None) == 0 else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
