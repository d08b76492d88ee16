"""Where a program runs: its directory or device, and the programs that it starts there."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.devices.text import shown
from blklab.errors import RunError

_DEADLY = ("setpriv", "--pdeathsig", "KILL")
"""What is started ends with us, also where there is no PID namespace."""


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
            text=True,
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


def last_line(text: str, code: int) -> str:
    """What a program said at last, fit for a terminal."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return shown(lines[-1]) if lines else f"failed with exit code {code}"


def _words(user: str | None) -> list[str]:
    as_user = [f"--reuid={user}", f"--regid={user}", "--init-groups"] if user else []
    return [*_DEADLY, *as_user, "--"]
