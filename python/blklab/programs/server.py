"""A private database server: its user, its directory, its start.

It ends with us, and what it has written goes with the directory. Nothing of a server that runs
already, or of its settings, is read or touched.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import RunError
from blklab.programs.place import Place, last_line

HERE = "/proc/self/cwd"
"""The path of a socket has 107 bytes at most, that of a directory any number."""
_START_S = 60.0
_STOP_S = 600.0
"""To write back all that it has in memory, on a slow disk."""
_THROWN_AWAY_S = 5.0
_POLL_S = 0.02


@dataclass(frozen=True)
class Site:
    """Where one server lies."""

    place: Place
    name: str
    """The server's: ``PostgreSQL``."""
    user: str | None
    """The user that runs it; None for the current user."""

    @property
    def data(self) -> Path:
        """Its directory, where its programs run."""
        return self.place.directory / "data"

    def make(self) -> None:
        """Its directory, which only its user enters. RunError if that one cannot get there."""
        self.data.mkdir(mode=0o700)
        if self.user is None:
            return
        shutil.chown(self.data, self.user)
        try:
            self.place.run(["test", "-w", str(self.data)], self.user)
        except RunError:
            raise RunError(
                f"the user {self.user}, which runs {self.name}, cannot enter the directory: "
                "name one that other users can enter (chmod o+x)"
            ) from None

    def run(self, command: Sequence[str]) -> str:
        """What one of its programs has written, run as its user. RunError if it fails."""
        return self.place.run(command, self.user, self.data)

    @contextlib.contextmanager
    def running(
        self, command: Sequence[str], is_up: Callable[[], bool], stop: signal.Signals
    ) -> Iterator[None]:
        """The server, from when it answers; stopped in order at the end. RunError with its last
        words if it does not come up."""
        log = self.place.directory / "server.log"
        process = self.place.start(command, log, self.user, self.data)

        def failed(how: str) -> RunError:
            why = last_line(
                log.read_text(encoding="utf-8", errors="replace"), process.returncode or 0
            )
            return RunError(f"{Path(command[0]).name}: {how}{why}")

        try:
            end_s = time.monotonic() + _START_S
            while not is_up():
                if process.poll() is not None or time.monotonic() > end_s:
                    raise failed("")
                time.sleep(_POLL_S)
            yield
        except BaseException:
            # Where the disk is full, MariaDB would wait for room.
            _stop(process, stop, _THROWN_AWAY_S)
            raise
        if not _stop(process, stop, _STOP_S):
            raise failed("does not stop: ")


def user_of(name: str) -> str | None:
    """The user for a server that does not run as root: `name`, or `nobody` if it does not exist."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return name if name in names else "nobody"


def _stop(process: subprocess.Popen[bytes], stop: signal.Signals, patience_s: float) -> bool:
    """In order if that takes no longer; whether it did."""
    process.send_signal(stop)
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True
