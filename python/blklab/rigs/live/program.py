"""A program and all of its children, which end with blklab, however it ends. fio's processes have
their own sessions, and continue if fio itself is killed.

So fio runs as the first process of a PID namespace (``unshare``): when it ends, the kernel kills
all others. It is killed when the thread that started it ends (``setpriv --pdeathsig``), as after
``kill -9``. Both programs are from util-linux.
"""

from __future__ import annotations

import contextlib
import functools
import os
import resource
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.errors import InputError

PACKAGES = {"fio": "fio", "unshare": "util-linux", "setpriv": "util-linux"}
"""The programs, and Debian's packages that have them."""


@dataclass(frozen=True)
class Ended:
    """The end of a program."""

    code: int
    """Exit code; negative is the signal that killed it."""
    stderr: str
    cpu_s: float
    """User and system time of the program and its children."""
    stdout: str = ""
    """Start of the measured time, for a program that waits for us."""


def check_there() -> None:
    """InputError with the command to type if a program is missing."""
    if missing := [name for name in PACKAGES if shutil.which(name) is None]:
        packages = " ".join(dict.fromkeys(PACKAGES[name] for name in missing))
        raise InputError(f"--rig live needs {', '.join(missing)}: apt-get install {packages}")


@functools.cache
def confined() -> tuple[str, ...]:
    """The words in front of a command that confine it to a PID namespace; empty if this user may
    not create one. Then only the program itself surely ends with us. The namespace also removes
    shared memory, which a killed fio would leave behind."""
    kill = ("--fork", "--pid", "--ipc", "--kill-child=KILL", "--")
    for words in (("unshare", *kill), ("unshare", "--user", "--map-current-user", *kill)):
        with contextlib.suppress(OSError):
            tried = subprocess.run([*words, "true"], capture_output=True, check=False)
            if tried.returncode == 0:
                return words
    return ()


class Program:
    """Runs of programs, one or several at a time, which another thread can end."""

    def __init__(self) -> None:
        self._processes: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._killed = False

    def run(
        self,
        command: Sequence[str],
        directory: Path,
        begin: Callable[[], None] | None = None,
        wall: Sequence[str] = (),
    ) -> Ended:
        """Run it in `directory` to its end, after the words of a `wall` if it has one.

        KeyboardInterrupt if it was killed by `kill`. With `begin`, the program writes a line when
        it is ready and waits for a line: `begin` is called in between.
        """
        pipe = subprocess.DEVNULL if begin is None else subprocess.PIPE
        deadly = ("setpriv", "--pdeathsig", "KILL", "--")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with self._lock:
            if self._killed:
                raise KeyboardInterrupt
            process = subprocess.Popen(
                [*deadly, *confined(), *wall, *command],
                cwd=directory,
                stdin=pipe,
                stdout=pipe,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                # Ctrl-C on the terminal must only reach us.
                start_new_session=True,
            )
            self._processes.add(process)
        try:
            # An empty line: it has failed, with the reason on stderr.
            if begin is not None and process.stdout is not None and process.stdout.readline():
                begin()
            stdout, stderr = process.communicate(None if begin is None else "go\n")
        finally:
            _end(process)
            process.wait()
            with self._lock:
                self._processes.discard(process)
        if self._killed:
            raise KeyboardInterrupt
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
        return Ended(process.returncode, stderr, cpu_s, stdout or "")

    def kill(self) -> None:
        """End it and all its children, or prevent its start."""
        with self._lock:
            self._killed = True
            self._end()

    def end(self) -> None:
        """End what runs now, and all its children: its code is that of a killed program."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        for process in self._processes:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """Kill it and all of its children; in a PID namespace, all have ended when it has ended.

    ``unshare`` waits for the first process of the namespace, which ends after all others.
    """
    if process.poll() is not None:
        return
    first = _children(process.pid) if confined() else []
    for pid in first:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if not first:
        process.kill()


def _children(pid: int) -> list[int]:
    """Also empty if the kernel does not report them (``CONFIG_PROC_CHILDREN``)."""
    with contextlib.suppress(OSError, ValueError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []
