"""A program and all of its children, which end when we do, however that is.

fio's processes lead sessions of their own, and go on when fio itself is killed. So it runs as the
first process of a PID namespace (``unshare``): with it the kernel kills all others. It is killed
itself when the thread ends that started it (``setpriv --pdeathsig``), as by ``kill -9``. Both
programs are util-linux's.
"""

from __future__ import annotations

import contextlib
import functools
import resource
import shutil
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import InputError

PACKAGES = {"fio": "fio", "unshare": "util-linux", "setpriv": "util-linux"}
"""The programs, and Debian's packages that have them."""


@dataclass(frozen=True)
class Ended:
    """How it ended."""

    code: int
    """Exit code; negative is the signal that killed it."""
    stderr: str
    cpu_s: float
    """User and system time of the program and its children."""


def check_there() -> None:
    """InputError with what to type, if a program is missing."""
    if missing := [name for name in PACKAGES if shutil.which(name) is None]:
        packages = " ".join(dict.fromkeys(PACKAGES[name] for name in missing))
        raise InputError(f"--rig live needs {', '.join(missing)}: apt-get install {packages}")


@functools.cache
def confined() -> tuple[str, ...]:
    """The words in front of a command that confine it to a PID namespace; empty where a user may
    have none. Then only the program itself is sure to end with us."""
    kill = ("--fork", "--pid", "--kill-child=KILL", "--")
    for words in (("unshare", *kill), ("unshare", "--user", "--map-current-user", *kill)):
        with contextlib.suppress(OSError):
            tried = subprocess.run([*words, "true"], capture_output=True, check=False)
            if tried.returncode == 0:
                return words
    return ()


class Program:
    """One run of a program, which another thread can end."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._killed = False

    def run(self, command: Sequence[str], directory: Path) -> Ended:
        """Run it in `directory` to its end. KeyboardInterrupt if it was killed by `kill`."""
        deadly = ("setpriv", "--pdeathsig", "KILL", "--")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with self._lock:
            if self._killed:
                raise KeyboardInterrupt
            self._process = subprocess.Popen(
                [*deadly, *confined(), *command],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                # Ctrl-C on the terminal is for us alone.
                start_new_session=True,
            )
        process = self._process
        try:
            _, stderr = process.communicate()
        finally:
            process.kill()
            process.wait()
        if self._killed:
            raise KeyboardInterrupt
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
        return Ended(process.returncode, stderr, cpu_s)

    def kill(self) -> None:
        """End it and all its children; if it has not begun, it does not."""
        with self._lock:
            self._killed = True
            if self._process is not None and self._process.poll() is None:
                self._process.kill()
