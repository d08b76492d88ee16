"""Runs blklab's command line as a separate process, and sends signals to it and its children.

Each command is a fork of a process that has loaded everything: the whole command, from `main` to
its exit code, without the quarter of a second that Python needs to start.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import blklab
from blklab.start import main
from tests.machine_world import HOME, OWN

TARGETS = ("blklab", "group", "unshare", "program", "job")
"""The receivers of a signal: the command; its process group; the program that confines the
workload; the workload's program; a child of that program."""
PHASES = ("begin", "written", "set", "runs", "ends")
"""The phases of a live run: its start; the journal has a record; the disk is set; the program runs;
the program has ended."""

_ENVIRONMENT = {
    "HOME": str(HOME),
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
}
SECONDS_MAX = 60.0
"""A command that takes longer hangs; in an emulated machine `machine_soak` allows more."""
_STEP_S = 0.002


def load() -> None:
    """Loads all modules, and those of typer's that it loads for the first command, so that no fork
    loads any."""
    for name in ("typer._adapters", "pydantic.plugin._loader"):
        importlib.import_module(name)
    for module in pkgutil.walk_packages(blklab.__path__, "blklab."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


@dataclass
class Command:
    """A command that was started."""

    words: tuple[str, ...]
    pid: int
    output: Path
    code: int | None = None
    """Exit code; negative is the signal that ended it."""
    hangs: bool = False

    @classmethod
    def start(cls, *words: str) -> Command:
        """Starts it; stdout and stderr go to one file."""
        handle, name = tempfile.mkstemp(prefix="output-", dir=OWN)
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            _become(words, handle)
        os.close(handle)
        return cls(words, pid, Path(name))

    def has_ended(self) -> bool:
        """Checks without waiting."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def wait(self) -> int:
        """Waits for its end; kills it if it `hangs`."""
        if not self.until(lambda: False):
            self.hangs = True
            os.kill(self.pid, signal.SIGKILL)
            _, status = os.waitpid(self.pid, 0)
            self.code = os.waitstatus_to_exitcode(status)
        assert self.code is not None
        return self.code

    def until(self, reached: Callable[[], bool], seconds: float | None = None) -> bool:
        """Waits until `reached` or its end: True if either comes in time."""
        deadline = time.monotonic() + (SECONDS_MAX if seconds is None else seconds)
        while not (self.has_ended() or reached()):
            if time.monotonic() > deadline:
                return False
            time.sleep(_STEP_S)
        return True

    def send(self, number: int, target: str) -> bool:
        """Sends a signal to one of `TARGETS`; False if that process does not exist."""
        if self.has_ended():
            return False
        with contextlib.suppress(ProcessLookupError, IndexError):
            if target == "group":
                os.killpg(self.pid, number)
            else:
                os.kill(self._below(max(TARGETS.index(target) - 1, 0))[0], number)
            return True
        return False

    def program_runs(self) -> bool:
        """Whether fio, or another workload's program, runs."""
        return any(_name(pid).startswith(("fio", "python")) for pid in self._below(2))

    def _below(self, steps: int) -> list[int]:
        """Its descendants `steps` generations below."""
        pids, parents = [self.pid], _parents()
        for _ in range(steps):
            pids = sorted(pid for pid, parent in parents.items() if parent in pids)
        return pids

    def said(self) -> str:
        """Its output so far."""
        return self.output.read_text(errors="replace")

    def __str__(self) -> str:
        return f"blklab {' '.join(self.words)}"


def _become(words: Sequence[str], output: int) -> None:
    """Turns this fork into the command; does not return."""
    code = 1
    try:
        os.setsid()
        for stream, handle in ((0, os.open(os.devnull, os.O_RDONLY)), (1, output), (2, output)):
            os.dup2(handle, stream)
        os.environ.clear()
        os.environ.update(_ENVIRONMENT)
        sys.argv = ["blklab", *words]
        main()
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


def _parents() -> dict[int, int]:
    """The parent of each process."""
    found = {}
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            with contextlib.suppress(OSError):
                # After the name, which is in parentheses and may contain any character.
                text = (place / "stat").read_text().rpartition(")")[2].split()
                if text[0] != "Z":
                    found[int(place.name)] = int(text[1])
    return found
