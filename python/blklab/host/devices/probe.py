"""The contents of a device, found from its first and last blocks, if udev has not probed it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

_TIMEOUT_S = 5.0
# Drives that may be empty, or take long to answer.
_NOT_ASKED = ("sr", "fd")


def found(program: str) -> str | None:
    """Where a program of util-linux is: users have no ``sbin`` in their path."""
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")


def blkid(node: Path) -> dict[str, str]:
    """The result of ``blkid --probe``, by its names:

    ``TYPE``, ``LABEL``, ``UUID``. Empty if blkid finds nothing or several things, if this user may
    not read the device, or if blkid is missing.
    """
    program = found("blkid")
    if program is None or node.name.startswith(_NOT_ASKED) or not os.access(node, os.R_OK):
        return {}
    try:
        done = subprocess.run(
            [program, "--probe", "--output", "export", "--", node],
            capture_output=True,
            encoding="utf-8",
            errors="backslashreplace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (subprocess.TimeoutExpired, OSError):
        return {}
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
