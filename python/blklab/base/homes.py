"""The user's own directories:

``~``, and the base directories of the XDG specification. ``Path.expanduser`` raises RuntimeError
without HOME if the user's id has no name, as in a container; and it takes an empty HOME for ``/``.
"""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from blklab.errors import InputError


class NoHomeError(InputError):
    """The user has no home directory; the message shows how to name a place instead."""


def data() -> Path:
    """``$XDG_DATA_HOME``, else ``~/.local/share``. NoHomeError."""
    return _base("XDG_DATA_HOME", ".local/share")


def state() -> Path:
    """``$XDG_STATE_HOME``, else ``~/.local/state``. NoHomeError."""
    return _base("XDG_STATE_HOME", ".local/state")


def cache() -> Path:
    """``$XDG_CACHE_HOME``, else ``~/.cache``. NoHomeError."""
    return _base("XDG_CACHE_HOME", ".cache")


def expanded(path: str | os.PathLike[str]) -> Path:
    """`path` with the home directory in place of a ``~`` or ``~user`` at its start. InputError if
    there is no such directory."""
    text = os.fspath(path)
    if not text.startswith("~"):
        return Path(text)
    first, _, rest = text.partition("/")
    if first == "~":
        found = _home()
        if found is None:
            raise InputError(f"{text}: {_no_home()}; write the path without '~'")
        return found / rest
    try:
        return Path(pwd.getpwnam(first[1:]).pw_dir) / rest
    except (KeyError, ValueError):
        raise InputError(
            f"{text}: no user '{first[1:]}'; for a file named with a leading '~' write ./{text}"
        ) from None


def _base(variable: str, below_home: str) -> Path:
    told = Path(os.environ.get(variable, ""))
    # "All paths set in these environment variables must be absolute. If an implementation
    # encounters a relative path [...] it should consider the path invalid and ignore it."
    # (XDG Base Directory Specification 0.8)
    if told.is_absolute():
        return told
    home = _home()
    if home is None:
        raise NoHomeError(f"{_no_home()}; set HOME or {variable}")
    return home / below_home


def _home() -> Path | None:
    told = Path(os.environ.get("HOME", ""))
    if told.is_absolute():
        return told
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return None


def _no_home() -> str:
    return f"no home directory: HOME is not set and user id {os.getuid()} has no name"
