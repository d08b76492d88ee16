"""A private database server: its user, its directory, its start.

It ends with us, and its data are removed with the directory. It neither reads nor changes a system
server or its settings.
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
"""A short path: the path of a socket has at most 107 bytes."""
_START_S = 60.0
_STOP_S = 600.0
"""Time to write back its memory to a slow disk."""
_THROWN_AWAY_S = 5.0
_POLL_S = 0.02
_DYING_S = 1.0
"""Time for a server to end after its client has failed."""


@dataclass(frozen=True)
class Site:
    """The place of one server."""

    place: Place
    name: str
    """The server's name: ``PostgreSQL``."""
    user: str | None
    """The user that runs it; None for the current user."""

    @property
    def data(self) -> Path:
        """Its directory, in which its programs run."""
        return self.place.directory / "data"

    def make(self) -> None:
        """Creates its directory, which only its user can enter. RunError if that user cannot reach
        it."""
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
        """Run one of its programs as its user; returns its output. RunError if it fails."""
        return self.place.run(command, self.user, self.data)

    @contextlib.contextmanager
    def running(
        self, command: Sequence[str], is_up: Callable[[], bool], stop: signal.Signals
    ) -> Iterator[None]:
        """The running server, from its first answer; shut down properly at the end. RunError with
        its last line if it does not start."""
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
        except BaseException as error:
            # A client of a server that ends knows only that its connection is gone.
            if isinstance(error, RunError) and _ends(process, _DYING_S):
                raise failed("") from None
            # With a full disk, MariaDB would wait for space.
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
    """Shut down properly within this time; returns whether that succeeded."""
    process.send_signal(stop)
    if _ends(process, patience_s):
        return True
    process.kill()
    process.wait()
    return False


def _ends(process: subprocess.Popen[bytes], patience_s: float) -> bool:
    """Wait for its end; returns whether it came within this time."""
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        return False
    return True
