"""Write files completely or not at all; read user files, which may be anything."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from blklab.base.text import utf8
from blklab.errors import InputError, RunError

_NUMBER = re.compile(r" \(os error \d+\)$")
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def content(path: Path, bytes_max: int, what: str) -> bytes:
    """All of the file at `path`, which should be `what` (``a patch``).

    InputError if it is not a regular file, is larger, or cannot be read. Never waits
    for a pipe without a writer. A pipe from the shell, ``<(...)`` or ``/dev/stdin``, is read to its
    end.
    """
    try:
        # Without O_NONBLOCK, opening a pipe waits for its other end.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        kind = stat.S_IFMT(os.fstat(handle).st_mode)
        if kind == stat.S_IFDIR:
            os.close(handle)
            raise IsADirectoryError(f"is a directory; expected a regular file that is {what}")
        with os.fdopen(handle, "rb") as file:
            if kind == stat.S_IFIFO and os.path.realpath(path).startswith("/proc/"):
                os.set_blocking(handle, True)
            elif kind != stat.S_IFREG:
                found = _KINDS.get(kind, "no file")
                raise InputError(f"{path}: is {found}; expected a regular file that is {what}")
            # Files of /proc have a size of 0, and some have no end.
            found_bytes = file.read(bytes_max + 1)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {why(error)}") from error
    if found_bytes is None:
        raise InputError(f"{path}: it has no data to read now")
    if len(found_bytes) > bytes_max:
        raise InputError(f"{path}: more than {bytes_max} bytes are not {what}")
    return found_bytes


def text_content(path: Path, bytes_max: int, what: str) -> str:
    """The same of a text in UTF-8."""
    try:
        return content(path, bytes_max, what).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not a text file in UTF-8: byte {error.start}") from error


def why(error: OSError | ValueError) -> str:
    """The reason, for the user. Python raises ValueError for a path with a NUL in it."""
    said = error.strerror if isinstance(error, OSError) else None
    # The core's errors have their number, too.
    return _NUMBER.sub("", said or str(error))


def write_whole(path: Path, text: str, mode: int | None = None) -> None:
    """Replace `path` by `text`; after any error the old file remains. The file has `mode`, or the
    umask's default.

    RunError with one line if it cannot be written (disk full, no permission).
    """
    write_together({path: text}, mode=mode)


def write_together(
    texts: Mapping[Path, str | bytes], *, durable: bool = True, mode: int | None = None
) -> None:
    """The same for files that belong together: if one cannot be written, all stay unchanged.

    Each is written under another name before the first is replaced, and with `durable` flushed to
    the disk.
    """
    partial: dict[Path, Path] = {}
    path = Path()
    try:
        for path, text in texts.items():
            if not _is_special(path):
                partial[path] = _beside(path, _bytes(text), durable, mode)
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


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield the name of a file to be made beside `path`; it gets the name `path` at the end if no
    error was raised, else it is removed.

    Raises:
        InputError: `path` exists.
        RunError: it cannot be written.
    """
    if os.path.lexists(path):
        raise InputError(f"{path}: exists already")
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        yield part
        part.rename(path)
    except OSError as error:
        raise RunError(f"{path}: {why(error)}") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def sync_directory(directory: Path) -> None:
    """Flush its renames, creations and removals to the disk. OSError."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _is_special(path: Path) -> bool:
    """A device or pipe (written to, never replaced) or a directory (which refuses)."""
    return path.exists() and not path.is_file()


def _bytes(text: str | bytes) -> bytes:
    # A file name in it may not be UTF-8.
    return utf8(text).encode() if isinstance(text, str) else text


def _beside(path: Path, content: bytes, durable: bool, mode: int | None) -> Path:
    """A new file beside `path` that holds `content`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.parent / f".{path.name}.{secrets.token_hex(4)}"
    handle, unnamed = _unnamed(made)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            # A new file is not readable for other users.
            os.fchmod(file.fileno(), 0o666 & ~_umask() if mode is None else mode)
            file.flush()
            if durable:
                os.fsync(file.fileno())
            if unnamed:
                # A directory (of no use to a path from the root) makes Python call linkat, which
                # follows.
                os.link(f"/proc/self/fd/{file.fileno()}", made, src_dir_fd=file.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            made.unlink()
        raise
    return made


def _unnamed(made: Path) -> tuple[int, bool]:
    """A new file that will be called `made`, and whether it has no name yet.

    An unnamed file disappears if the process is killed before it is complete. Not every file system
    supports files without a name.
    """
    try:
        return os.open(made.parent, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o600), True
    except OSError:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(made, flags, 0o600), False


def check_files(*paths: Path) -> None:
    """InputError if one of them cannot be written; checked before long work."""
    for path in paths:
        if path.is_dir():
            raise InputError(f"{path}: is a directory; expected a file to write")
        if not _is_special(path):
            check_directory(path.parent)


def check_directory(path: Path) -> None:
    """InputError if no file can be written below `path`; checked before long work."""
    there = next(place for place in (path, *path.absolute().parents) if os.path.lexists(place))
    if there.is_symlink() and not there.exists():
        raise InputError(f"{path}: {there} is a link to {there.readlink()}, which does not exist")
    if not there.is_dir():
        raise InputError(f"{path}: {there} is not a directory")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(f"{path}: no permission to write in {there}")
    try:
        # Not every file system that is mounted writable accepts a file.
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise InputError(f"{path}: cannot create a file in {there}: {error.strerror}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
