"""Whether another user of this machine could have written, or could replace, a file."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def why_not(found: os.stat_result) -> str:
    """Why the content of a file or directory is not trusted; empty if only this user and root
    can write to it."""
    if found.st_uid not in (0, os.geteuid()):
        return f"it belongs to {_name(found.st_uid)}"
    return "other users may write to it" if found.st_mode & _OTHERS_WRITE else ""


def replaceable_part(path: Path) -> str:
    """The part of an absolute path without links that another user can replace, as a clause; empty
    if there is none.

    The user who called sudo does not count as another user, nor does a user's private group.
    """
    sudo = os.environ.get("SUDO_UID", "")
    trusted = {0, os.geteuid(), *([int(sudo)] if sudo.isdecimal() else [])}
    for directory in reversed(path.parents):
        found = directory.stat(follow_symlinks=False)
        if found.st_uid not in trusted:
            return f"{_name(found.st_uid)} may change the contents of {directory}"
        if found.st_mode & stat.S_ISVTX:
            # In it only a file's owner may rename the file; the next step checks the owner.
            continue
        group = found.st_mode & stat.S_IWGRP and found.st_gid not in trusted
        if group or found.st_mode & stat.S_IWOTH:
            return f"other users may change the contents of {directory}"
    return ""


def _name(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"
