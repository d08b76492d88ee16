"""The barrier that confines fio, or a replay, to its own files, besides the list of allowed
options.

A job file comes from anywhere and fio may run as root, so ``blklab-confine`` runs fio: with
Landlock, fio can change only the run's files, read only what it needs to start, and start no other
program. If the kernel has no Landlock, bubblewrap gives it a mount namespace in which everything
else is read-only. In both cases, root's rights are dropped except for those that jobs need.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from blklab.base import binaries

_LIBRARIES = ("/etc/ld.so.cache", "/usr", "/lib", "/lib64", "/opt", "/nix/store", "/gnu/store")
_MACHINE = ("/sys", "/proc")
# Priorities of I/O and CPU, pinned memory and huge pages; for a device, dropping its cached pages.
_RIGHTS = ("sys_nice", "ipc_lock")
_RIGHTS_ON_DEVICE = ("sys_admin",)
_PROBE_S = 10.0

NO_WALL = (
    "only the list of allowed options confines fio: this kernel has no Landlock (needs 5.13), "
    "and bubblewrap does not run: apt-get install bubblewrap"
)


def around_fio(place: Path, writable: Sequence[Path]) -> list[str]:
    """See `around`."""
    return around(Path(shutil.which("fio") or "fio"), place, writable)


def around(program: Path, place: Path, writable: Sequence[Path]) -> list[str]:
    """The words in front of the command of a program that does a job's I/O. It may change a device,
    if that is its `place`, or the existing files in a directory, in which it then starts; and
    everything below the `writable` paths."""
    rights = _RIGHTS + (() if place.is_dir() else _RIGHTS_ON_DEVICE)
    return [*_fewer_rights(rights), *_walled(program, place, writable, rights)]


def told() -> list[str]:
    """A line if there is no barrier."""
    return [] if _has_landlock() or _has_bubblewrap() else [NO_WALL]


def _walled(
    program: Path, place: Path, writable: Sequence[Path], rights: Sequence[str]
) -> list[str]:
    if _has_landlock():
        found = program.resolve()
        words = [str(binaries.find("blklab-confine"))]
        words += [f"--read={path}" for path in (*_LIBRARIES, *_MACHINE, found.parent)]
        words += [f"--run={path}" for path in (found, *_interpreter(found))]
        words += [f"--write={path}" for path in ("/dev/null", *writable)]
        # The path of the directory may work only in this process.
        return [*words, f"--change={'.' if place.is_dir() else place}", "--"]
    if _has_bubblewrap():
        words = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev"]
        words += [word for path in writable for word in ("--bind", str(path), str(path))]
        # Existing files only, no new ones.
        changed = sorted(place.resolve().iterdir()) if place.is_dir() else [place]
        kind = "--bind" if place.is_dir() else "--dev-bind"
        words += [word for path in changed for word in (kind, str(path), str(path))]
        if os.geteuid() == 0:
            words += ["--cap-drop", "ALL"]
            words += [word for name in rights for word in ("--cap-add", f"CAP_{name.upper()}")]
        return [*words, "--"]
    return []


def _fewer_rights(rights: Sequence[str]) -> list[str]:
    """Dropped rights of root; a user has none. bubblewrap drops them after its mounts."""
    if os.geteuid() != 0 or not _has_landlock():
        return []
    kept = ",".join(["-all", *(f"+{name}" for name in rights)])
    return ["setpriv", "--no-new-privs", f"--bounding-set={kept}", "--inh-caps=-all", "--"]


@functools.cache
def _has_landlock() -> bool:
    return _runs([str(binaries.find("blklab-confine")), "--check"])


@functools.cache
def _has_bubblewrap() -> bool:
    return _runs(["bwrap", "--ro-bind", "/", "/", "--", "true"])


def _runs(command: Sequence[str]) -> bool:
    try:
        tried = subprocess.run(command, capture_output=True, check=False, timeout=_PROBE_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


def _interpreter(program: Path) -> list[Path]:
    """The dynamic loader that the program names; none for a static program or a script."""
    # Takes 20 ms.
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        with program.open("rb") as file:
            segments = ELFFile(file).iter_segments("PT_INTERP")
            return [Path(str(segment.get_interp_name())) for segment in segments]  # type: ignore[attr-defined]
    except (OSError, ELFError):
        return []
