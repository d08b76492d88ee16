"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from blklab.errors import InputError, RunError


def write_whole(path: Path, text: str) -> None:
    """Replace `path` by `text`; whatever goes wrong, what was there before stays.

    RunError with one line if it cannot be written (disk full, no permission).
    """
    write_together({path: text})


def write_together(texts: Mapping[Path, str | bytes], *, durable: bool = True) -> None:
    """The same for files that belong together: if one cannot be written, all stay as they were.

    Each is there under another name before the first is replaced, and with `durable` on the disk.
    """
    partial: dict[Path, Path] = {}
    path = Path()
    try:
        for path, text in texts.items():
            if not _is_special(path):
                partial[path] = _beside(path, _bytes(text), durable)
        for path, text in texts.items():
            if path not in partial:
                path.write_bytes(_bytes(text))
        directories = {path.absolute().parent for path in partial}
        for path in list(partial):
            partial[path].replace(path)
            del partial[path]
        for directory in directories if durable else ():
            # Some file systems cannot; all is written then.
            with contextlib.suppress(OSError):
                sync_directory(directory)
    except OSError as error:
        raise RunError(f"{path}: not written: {error.strerror or error}") from error
    finally:
        for left in partial.values():
            with contextlib.suppress(OSError):
                left.unlink()


def sync_directory(directory: Path) -> None:
    """What was renamed, made or removed in it is so on the disk. OSError."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _is_special(path: Path) -> bool:
    """A device, a pipe (which are written to, never replaced) or a directory (which refuses)."""
    return path.exists() and not path.is_file()


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _beside(path: Path, content: bytes, durable: bool) -> Path:
    """A new file beside `path` that holds `content`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    made = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        # mkstemp makes files that nobody else may read.
        made.chmod(0o666 & ~_umask())
    except BaseException:
        with contextlib.suppress(OSError):
            made.unlink()
        raise
    return made


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
