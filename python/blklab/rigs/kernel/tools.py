"""Programs that a build calls, and the Debian packages they come in."""

from __future__ import annotations

import shutil
from collections.abc import Iterable

from blklab.errors import RunError

# command -> package. The Makefile's TEST_PACKAGES names the same.
PACKAGES = {
    "gcc": "gcc",
    "ld": "binutils",
    "make": "make",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "perl": "perl-base",
    "tar": "tar",
    "xz": "xz-utils",
    "patch": "patch",
    "setpriv": "util-linux",
}


def missing(commands: Iterable[str] = PACKAGES) -> list[str]:
    """Those of `commands` that are not installed."""
    return [command for command in commands if shutil.which(command) is None]


def require(commands: Iterable[str] = PACKAGES) -> None:
    """RunError with the command that installs what is missing."""
    absent = missing(commands)
    if absent:
        packages = " ".join(sorted({PACKAGES[command] for command in absent}))
        raise RunError(
            f"building a kernel needs {', '.join(absent)}: apt-get install {packages} libc6-dev"
        )
