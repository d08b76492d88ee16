"""The common part of every target: the allowed errors and their messages."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from blklab.errors import BlklabError

_QUOTED_MAX = 4096
"""Bytes of a message besides its quotes of the input, once or twice."""


@contextlib.contextmanager
def refusing(data: bytes) -> Iterator[None]:
    """The body of the ``with`` may refuse `data` with an error of blklab's that is not empty and
    not too long to read. All other errors propagate."""
    try:
        yield
    except BlklabError as error:
        said = str(error)
        if not said.strip():
            raise AssertionError("an error without a word") from error
        # An invisible byte is shown as \xff.
        if len(said) > _QUOTED_MAX + 8 * len(data):
            raise AssertionError(f"{len(said)} characters of message") from error


def text(data: bytes) -> str:
    """Text from a command line or a file's name: any bytes."""
    return data.decode(errors="surrogateescape")


@cache
def scratch() -> Path:
    """A directory of this process, in memory if possible; it is removed with the process."""
    shared = Path("/dev/shm")
    own = Path(tempfile.mkdtemp(prefix="blklab-fuzz-", dir=shared if shared.is_dir() else None))
    import atexit

    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(own, ignore_errors=True)

    atexit.register(remove)
    return own
