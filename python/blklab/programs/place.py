"""Where a program runs: its directory or device, and the programs that it starts there."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.base.text import shown
from blklab.errors import RunError

_DEADLY = ("setpriv", "--pdeathsig", "KILL")
"""What is started ends with us, also where there is no PID namespace."""
_ERRORS = ("[ERROR]", "panic: ")
"""Of MariaDB, which says at last only that it gives up, and of Go, which tells where it was."""


@dataclass(frozen=True)
class Place:
    """Of one run."""

    directory: Path
    """Empty, its own, and the current one."""
    device: Path | None
    """Of a program that reads from the device itself."""
    seed: int

    def run(
        self, command: Sequence[str], user: str | None = None, directory: Path | None = None
    ) -> str:
        """What the program has written on both streams, run as `user` in `directory`. RunError
        with its last words if it fails."""
        done = subprocess.run(
            [*_words(user), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=directory,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise RunError(f"{Path(command[0]).name}: {last_line(done.stdout, done.returncode)}")
        return done.stdout

    def start(
        self, command: Sequence[str], log: Path, user: str | None, directory: Path
    ) -> subprocess.Popen[bytes]:
        """The same, not waited for; what it writes goes to `log`."""
        with log.open("wb") as file:
            return subprocess.Popen(
                [*_words(user), *command],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                cwd=directory,
            )


def told(name: str, what: re.Pattern[str], text: str) -> re.Match[str]:
    """What a program tells in its output. RunError with its last words if it does not."""
    found = what.search(text)
    if found is None:
        raise RunError(f"{name}: told no figure: {last_line(text)}")
    return found


def write_all(handle: int, data: memoryview) -> None:
    """A file system without room takes a part before it says so. OSError."""
    while data:
        data = data[os.write(handle, data) :]


def last_line(text: str, code: int = 0) -> str:
    """What a program that ended with `code` said at last, or marked as its first error, fit for a
    terminal."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if any(mark in line for mark in _ERRORS)]
    if said := errors[0] if errors else lines[-1] if lines else "":
        return shown(said)
    return f"failed with exit code {code}" if code else "it wrote nothing"


def _words(user: str | None) -> list[str]:
    as_user = []
    if user:
        # Not every user's group has his name.
        group = pwd.getpwnam(user).pw_gid
        as_user = [f"--reuid={user}", f"--regid={group}", "--init-groups"]
    return [*_DEADLY, *as_user, "--"]
