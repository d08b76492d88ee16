"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from blklab.errors import RunError


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


def check_folder(folder: Path) -> None:
    """Make sure that files can be written there, before the work whose result they hold.

    RunError with one line if they cannot. Nothing is created yet.
    """
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise RunError(f"{folder}: cannot write there: {place} is not a directory")
    if not os.access(place, os.W_OK | os.X_OK):
        raise RunError(f"{folder}: cannot write there: {place} is not writable")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
