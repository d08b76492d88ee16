"""The place where a program runs: its directory or device, and the programs that it starts
there."""

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
"""Started programs end with us, even without a PID namespace."""
_ERRORS = ("[ERROR]", "panic: ", "PANIC: ", "FATAL: ")
"""Uninformative last lines: MariaDB and PostgreSQL only report that they end, Go prints a stack
trace."""
_NO_ERROR = "the database system is starting up"
"""PostgreSQL's answer to a client that came too early."""


@dataclass(frozen=True)
class Place:
    """The place of one run."""

    directory: Path
    """Empty, its own, and the current one."""
    device: Path | None
    """The device, for a program that reads from it."""
    seed: int

    def run(
        self, command: Sequence[str], user: str | None = None, directory: Path | None = None
    ) -> str:
        """Run the program as `user` in `directory`; returns its output of both streams. RunError
        with its last line if it fails."""
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
        """The same without waiting for its end; its output goes to `log`."""
        with log.open("wb") as file:
            return subprocess.Popen(
                [*_words(user), *command],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                cwd=directory,
            )


def told(name: str, what: re.Pattern[str], text: str) -> re.Match[str]:
    """The figure in a program's output. RunError with its last line if there is none."""
    found = what.search(text)
    if found is None:
        raise RunError(f"{name}: printed no figure: {last_line(text)}")
    return found


def write_all(handle: int, data: memoryview) -> None:
    """Writes everything: a full file system accepts a part before it reports the error. OSError."""
    while data:
        data = data[os.write(handle, data) :]


def last_line(text: str, code: int = 0) -> str:
    """The last line of a program that ended with `code`, or the line marked as its first error,
    safe for a terminal."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    marked = (line for line in lines if any(mark in line for mark in _ERRORS))
    errors = [line for line in marked if _NO_ERROR not in line]
    if said := errors[0] if errors else lines[-1] if lines else "":
        return shown(said)
    return f"failed with exit code {code}" if code else "it wrote nothing"


def _words(user: str | None) -> list[str]:
    as_user = []
    if user:
        # A user's group may have another name.
        group = pwd.getpwnam(user).pw_gid
        as_user = [f"--reuid={user}", f"--regid={group}", "--init-groups"]
    return [*_DEADLY, *as_user, "--"]
