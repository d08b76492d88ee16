"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from blklab.errors import InputError, RunError


def write_whole(path: Path, text: str) -> None:
    """Replace `path` by `text`; whatever goes wrong, what was there before stays.

    RunError with one line if it cannot be written (disk full, no permission).
    """
    partial: str | None = None
    try:
        if path.exists() and not path.is_file():
            # A device or a pipe is written to, never replaced.
            path.write_text(text, encoding="utf-8")
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files that nobody else may read.
        Path(partial).chmod(0o666 & ~_umask())
        Path(partial).replace(path)
        partial = None
    except OSError as error:
        raise RunError(f"{path}: not written: {error.strerror or error}") from error
    finally:
        if partial is not None:
            with contextlib.suppress(OSError):
                Path(partial).unlink()


def check_directory(path: Path) -> None:
    """InputError if no file can be written below `path`; asked before work that takes long."""
    there = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not there.is_dir():
        raise InputError(f"{path}: {there} is not a directory")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(f"{path}: no permission to write in {there}")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
