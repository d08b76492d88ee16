"""The rights that root gives up before it reads untrusted documents."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from blklab import _core
from blklab.store import place

# Devices that programs write to without being told: terminals, null, shared memory.
_DEVICES = ("/dev/null", "/dev/tty", "/dev/pts", "/dev/shm")


def give_up_rights(paths: Iterable[Path], store: str | None = None) -> None:
    """Root keeps only the rights to files, and from now on this process changes files only in the
    directories of `paths`, of the store, and for temporary files. This cannot be undone.

    Raises:
        blklab.errors.InputError: `store` is neither a file nor the URL of a database.
        OSError: the kernel refuses.
    """
    writable = [*map(Path, _DEVICES), Path(tempfile.gettempdir()), *map(_existing, paths)]
    kept = place.find(store)
    if kept.file is not None:
        writable.append(_existing(kept.file))
    _core.give_up_rights(list(dict.fromkeys(writable)))


def _existing(path: Path) -> Path:
    """The directory itself if it is one, else the nearest existing directory above it."""
    whole = path.absolute()
    return next(directory for directory in (whole, *whole.parents) if directory.is_dir())
