"""Temporary directories of a run, below the user's TMPDIR; all of them are removed.

The path is in the journal before the directory is made (:mod:`blklab.base.journal`): the next
process that needs scratch space, or ``blklab restore``, removes leftovers of a killed process.
:mod:`blklab.base.owned` makes and removes the directory.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from blklab.base import owned
from blklab.base.journal import Journal, default_directory
from blklab.base.text import shown
from blklab.errors import RunError

KIND = "scratch"
"""The kind of its records."""
_NAME = re.compile(r"blklab-[a-z]{1,16}-[0-9a-f]{12}")


@contextlib.contextmanager
def directory(kind: str, beside: Path | None = None) -> Iterator[Path]:
    """A new directory ``blklab-KIND-...`` that only this user can read. The end of the ``with``
    removes it with its contents. It is in TMPDIR, or on the file system of `beside`, next to it.
    RunError if it cannot be made."""
    journal = Journal(default_directory())
    _clear_once(journal)
    identity = secrets.token_hex(6)
    key, parent = f"{KIND}-{identity}", Path(tempfile.gettempdir()) if beside is None else beside
    with contextlib.ExitStack() as stack:
        try:
            place = stack.enter_context(owned.at(parent, f"blklab-{kind}-{identity}"))
        except OSError as error:
            raise _no_place(parent, error) from error
        path = place.path
        stack.enter_context(journal.locked(key, shown(str(path)), once=True))
        made: list[int] = []
        stack.callback(lambda: list(map(os.close, made)))

        def clear() -> None:
            if made:
                owned.empty(made[0])
                place.remove(made[0])
                journal.remove(key)
            else:
                recover(journal, key)

        try:
            record = {"directory": str(path), "inode": None}
            try:
                journal.write(key, KIND, record)
                made.append(place.make())
                journal.write(key, KIND, record | {"inode": os.fstat(made[0]).st_ino})
            except OSError as error:
                raise _no_place(parent, error) from error
            yield path
        finally:
            # If the directory cannot be removed, its record stays.
            with contextlib.suppress(OSError):
                try:
                    clear()
                except (KeyboardInterrupt, SystemExit):
                    # A signal in the middle of it.
                    clear()
                    raise


def recover(journal: Journal, key: str) -> list[str]:
    """Remove the directory of record `key`; returns one line for each result. Needs the lock."""
    record = journal.read(key)
    if record is None:
        return []
    path, inode = _checked(record, journal, key)
    try:
        with owned.at(path.parent, path.name) as place:
            handle = place.find(inode)
            try:
                # Before its inode is on record, nothing has been written to it.
                if inode is not None:
                    owned.empty(handle)
                place.remove(handle)
            finally:
                os.close(handle)
    except (FileNotFoundError, NotADirectoryError):
        journal.remove(key)
        return []
    except OSError as error:
        return [f"{shown(str(path))}: not removed: {error.strerror}"]
    journal.remove(key)
    return [f"{shown(str(path))}: removed"]


@functools.cache
def _clear_once(journal: Journal) -> None:
    """Remove leftovers of earlier processes, once for this process."""
    for key in [key for key in journal.keys() if key.startswith(f"{KIND}-")]:  # noqa: SIM118
        with contextlib.suppress(RunError), journal.locked(key, key, once=True):
            recover(journal, key)


def _checked(record: Mapping[str, Any], journal: Journal, key: str) -> tuple[Path, int | None]:
    text, inode = record.get("directory"), record.get("inode")
    if (
        isinstance(text, str)
        and "\0" not in text
        and Path(text).is_absolute()
        and _NAME.fullmatch(Path(text).name)
        and key == f"{KIND}-{Path(text).name.rpartition('-')[2]}"
        and (inode is None or type(inode) is int)
    ):
        return Path(text), inode
    raise RunError(f"{journal.directory / key}.json: not a record of scratch")


def _no_place(parent: Path, error: OSError) -> RunError:
    return RunError(f"{shown(str(parent))}: cannot hold temporary files: {error.strerror}")
