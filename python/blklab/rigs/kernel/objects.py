"""The objects of a source, one directory for each configuration of the kernel.

make compiles a file again if an option that it mentions has changed, which for some options is
nearly all of them. The objects of a configuration are therefore put aside when another one is
built, and return with it. Those in use are always at one path, which is in make's commands.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from blklab.base.files import text_content
from blklab.errors import InputError
from blklab.rigs.kernel import cache
from blklab.rigs.kernel.errors import KernelError

WISH = ".wish"
"""The file with the configuration that objects were made for."""
_KEPT = 4
"""Directories put aside; each has some 160 MB."""
_WISH_BYTES_MAX = 1 << 20


def select(place: Path, wish: str) -> Path:
    """The directory of objects below `place`, with those of the configuration `wish`, or else of
    the nearest one. Needs the lock of `place`; after an interruption, the next call completes
    it."""
    active, aside = place / "objects", place / "aside"
    partial = aside / ".partial"
    shutil.rmtree(partial, ignore_errors=True)
    current = _wish(active)
    if current == wish or (active.is_dir() and current is None):
        # Without a configuration objects belong to the next one.
        return active
    aside.mkdir(exist_ok=True)
    own = aside / cache.key_of(wish)
    if not own.is_dir():
        known = {path: text for path in (active, *_aside(aside)) if (text := _wish(path))}
        if known:
            _copy(_nearest(known, wish), partial)
        else:
            partial.mkdir()
        partial.rename(own)
    if current is not None:
        former = aside / cache.key_of(current)
        shutil.rmtree(former, ignore_errors=True)
        active.rename(former)
        # Its time says when it was last in use.
        former.touch()
    own.rename(active)
    for path in _aside(aside)[_KEPT:]:
        shutil.rmtree(path)
    return active


def _copy(objects: Path, to: Path) -> None:
    """A copy with the same times, by which make judges objects. KernelError where it does not fit
    the disk."""
    # cp, since it shares the bytes where the file system can.
    command = ["cp", "--archive", "--reflink=auto", str(objects), str(to)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        shutil.rmtree(to, ignore_errors=True)
        raise KernelError(done.stderr.strip().splitlines()[0])


def _nearest(known: dict[Path, str], wish: str) -> Path:
    """The directory that was made for the configuration with the fewest lines that differ."""
    wanted = set(wish.splitlines())
    return min(known, key=lambda path: len(wanted ^ set(known[path].splitlines())))


def _aside(aside: Path) -> list[Path]:
    """Directories put aside, the last used first."""
    found = [path for path in aside.iterdir() if path.is_dir()]
    return sorted(found, key=lambda path: path.stat().st_mtime_ns, reverse=True)


def _wish(objects: Path) -> str | None:
    """The configuration of `objects`; None if it is not known, or there are no objects."""
    try:
        return text_content(objects / WISH, _WISH_BYTES_MAX, "a configuration")
    except (InputError, OSError):
        return None
