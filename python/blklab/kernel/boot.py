"""Starts a kernel as a guest: an ordinary process that sees this machine's files.

The guest's root is the host's, mounted read-only through hostfs. Its init is a program of the
host, which finds the one directory it may write to in the kernel's command line, as
``blklab.run=DIRECTORY``, and mounts that over itself (``mount -t hostfs -o DIRECTORY``).
It ends by powering off; the kernel panics if init just returns.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, cast, get_args

from blklab import pool
from blklab.errors import InputError, nearest
from blklab.kernel import supervise
from blklab.kernel.errors import (
    GuestMemoryError,
    GuestPanicError,
    GuestTimeoutError,
    KernelError,
)

TimeTravel = Literal["off", "on", "inf-cpu"]
"""The guest's clock: the host's; virtual, and CPU time counts; virtual, and CPU time is free."""

_TIME_TRAVEL = {"off": [], "on": ["time-travel"], "inf-cpu": ["time-travel=inf-cpu"]}
# The wall clock at boot where time is virtual, in ns since 1970: 9 September 2001.
_START_NS = 10**18
# What a program did that lost a process on its way says nothing, and one that is not killed may
# look for memory for ever.
_WITHOUT_MEMORY = "sysctl.vm.panic_on_oom=1"
_NO_MEMORY = re.compile(r"not syncing: .*(out of memory|deadlocked on memory)", re.IGNORECASE)
_CONSOLE_BYTES_MAX = 4 << 20
_TAIL_BYTES = 16384
_TAIL_LINES = 15
# The command line is a text with words; quotes hold blanks together, nothing holds a quote.
_UNFIT = re.compile(r"[\"\n]")
_PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
_CPUS_IN_USE: Counter[int] = Counter()
_CPUS_LOCK = threading.Lock()
# x86's COMMAND_LINE_SIZE, of which UML adds some words of its own.
_LINE_BYTES_MAX = 2000


@dataclass(frozen=True)
class Outcome:
    """How a guest ended that ended in order."""

    console: Path | None
    """What it printed; None if it had the terminal."""
    wall_s: float


class Guest:
    """A guest that runs. Leaving the ``with`` block ends it if it has not ended."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        console: Path | None,
        timeout_s: float,
        cpus: Sequence[int],
        *,
        memory_mib: int,
        named: bool,
    ) -> None:
        self._process = process
        self._memory_mib = memory_mib
        self._cpus = tuple(cpus)
        self._start_s = time.monotonic()
        self.console = console
        self._timeout_s = timeout_s
        self._named = named

    def __enter__(self) -> Guest:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def wait(self) -> Outcome:
        """Wait for its end.

        GuestPanicError (GuestMemoryError), GuestTimeoutError or KernelError with the last lines
        of its console
        if it did not power off in order. If this is interrupted, the guest is ended.
        """
        try:
            code = self._process.wait()
        except BaseException:
            self.kill()
            raise
        self._give_back_cpus()
        wall_s = time.monotonic() - self._start_s
        match code:
            case supervise.POWERED_OFF:
                return Outcome(self.console, wall_s)
            case supervise.PANICKED:
                tail = self.tail()
                if any(_NO_MEMORY.search(line) for line in tail):
                    raise GuestMemoryError(
                        f"the guest ran out of its {self._memory_mib} MiB of memory{self._where()}",
                        tail,
                    )
                raise GuestPanicError(f"the guest's kernel panicked{self._where()}", tail)
            case supervise.TIMED_OUT:
                raise GuestTimeoutError(
                    f"the guest was ended after {self._timeout_s:g} s{self._where()}", self.tail()
                )
            case supervise.ABANDONED:
                raise KernelError("the guest was ended before its time")
        raise KernelError(f"the guest's process died{self._where()}", self.tail())

    def kill(self) -> None:
        """End it now; returns when nothing of it is left."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._give_back_cpus()

    def _give_back_cpus(self) -> None:
        _give_back(self._cpus)
        self._cpus = ()

    def tail(self) -> list[str]:
        """The last lines of its console; up to the panic, if there was one."""
        if self.console is None or not self.console.is_file():
            return []
        with self.console.open("rb") as file:
            file.seek(max(0, self.console.stat().st_size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
        lines = [line.rstrip() for line in text.splitlines() if line.strip()]
        for number, line in enumerate(lines):
            if supervise.PANIC.decode() in line:
                # What follows is a stack with addresses.
                lines = lines[: number + 1]
                break
        return lines[-_TAIL_LINES:]

    def _where(self) -> str:
        return f"; its console: {self.console}" if self.console and self._named else ""


def boot(
    kernel: Path,
    init: Sequence[str],
    run_dir: Path | None,
    *,
    memory_mib: int = 512,
    time_travel: TimeTravel = "off",
    seed: int = 1,
    timeout_s: float = 600.0,
    interactive: bool = False,
    temporary: bool = False,
    options: Sequence[str] = (),
) -> Guest:
    """Start `kernel` with the program `init` and its arguments, and return at once.

    The guest may write to `run_dir` and nowhere else; None is a directory that goes with it.
    Its console goes to `run_dir`/console, at most 4 MiB; with `interactive` it is this
    process's terminal. A `temporary` directory is not named in messages. `options`
    are further words of the kernel's command line. InputError if that cannot be written down.
    A guest without memory ends; an `interactive` one loses a process, as Linux does it.
    The guest dies with this process, even if this is killed.

    With the clock inf-cpu all random numbers in the guest follow from `seed` (``seed.patch``),
    and its wall clock begins at the same time: the same guest does the same again.
    """
    # Sockets have short names (sun_path): not below run_dir, which may lie deep.
    private = tempfile.mkdtemp(prefix="blklab-guest-")
    if run_dir is None:
        run_dir = Path(private) / "run"
        run_dir.mkdir()
    run_dir = run_dir.absolute()
    console = None if interactive else run_dir / "console"
    terminal = os.dup(sys.stdin.fileno()) if interactive else None
    cpus = _take_cpus()
    words = [
        *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"),
        *(f"mem={memory_mib}M", "con=null", "con0=fd:0,fd:1", "console=tty0", "quiet"),
        # Faster than ptrace where the host allows it; older kernels do not know the word.
        *("seccomp=auto", f"uml_dir={private}", "umid=guest", "null_blk.nr_devices=0"),
        # Where programs are mapped decides how many page tables they take, that how much memory
        # may be dirty: the same run is the same to the page only without the dice.
        "norandmaps",
        *_clock(time_travel, seed),
        f"blklab.user_cpu={_user_cpu(cpus)}",
        *([] if interactive else [_WITHOUT_MEMORY]),
        *options,
        *(f"init={init[0]}", f"blklab.run={run_dir}"),
        *(["--", *init[1:]] if len(init) > 1 else []),
    ]
    try:
        _check(words)
        process = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", supervise.__file__),
                *(str(timeout_s), str(console or f"fd:{terminal}"), str(_CONSOLE_BYTES_MAX)),
                *(private, "taskset", "--cpu-list", str(cpus[0]), "setpriv", "--pdeathsig=KILL"),
                *(str(kernel), *map(_quoted, words)),
            ],
            stdin=subprocess.PIPE,
            stdout=None if interactive else subprocess.DEVNULL,
            env={"PATH": os.defpath, "TMPDIR": _memory_directory(memory_mib, private)},
            # Ctrl-C reaches blklab, which ends the guest; nothing else does.
            start_new_session=True,
            pass_fds=[] if terminal is None else [terminal],
        )
    except BaseException:
        _give_back(cpus)
        shutil.rmtree(private)
        raise
    finally:
        if terminal is not None:
            os.close(terminal)
    return Guest(process, console, timeout_s, cpus, memory_mib=memory_mib, named=not temporary)


def _clock(time_travel: TimeTravel, seed: int) -> list[str]:
    words = _TIME_TRAVEL[time_travel]
    # Elsewhere CPU time counts, which is never the same.
    exact = [f"time-travel-start={_START_NS}", f"blklab.seed={seed}"]
    return [*words, *exact] if time_travel == "inf-cpu" else words


def _take_cpus() -> list[int]:
    """The CPUs with the fewest of our guests: one for the kernel, and one for its processes where
    there are enough for all guests that run side by side.

    Kernel and processes never run at the same time. On one CPU each sleeps while the other runs;
    on two each waits awake (``own-cpu.patch``), which is up to three times as fast.
    """
    with _CPUS_LOCK:
        by_use = sorted(os.sched_getaffinity(0), key=lambda cpu: (_CPUS_IN_USE[cpu], cpu))
        taken = by_use[: 2 if len(by_use) >= 2 * pool.side_by_side() else 1]
        _CPUS_IN_USE.update(taken)
    return taken


def _give_back(cpus: Sequence[int]) -> None:
    with _CPUS_LOCK:
        _CPUS_IN_USE.subtract(cpus)


def _user_cpu(cpus: Sequence[int]) -> str:
    """As long in any case: how long the command line is decides how much memory is left."""
    return f"{cpus[1]:04}" if len(cpus) > 1 else "none"


def checked_time_travel(name: str) -> TimeTravel:
    """`name`, if a guest's clock can go so; InputError otherwise."""
    for known in get_args(TimeTravel):
        if name == known:
            return cast(TimeTravel, known)
    raise InputError(f"--time-travel: no '{name}'{nearest(name, get_args(TimeTravel))}")


def _check(words: Sequence[str]) -> None:
    for word in words:
        if _UNFIT.search(word):
            raise InputError(f"'{word}': a guest's command line cannot hold quotes or new lines")
    count = len(" ".join(words).encode())
    if count > _LINE_BYTES_MAX:
        raise InputError(
            f"a guest's command line of {count} bytes; at most {_LINE_BYTES_MAX} go in"
        )


def _quoted(word: str) -> str:
    return word if _PLAIN.fullmatch(word) else f'"{word}"'


def _memory_directory(memory_mib: int, private: str) -> str:
    """Where the guest's memory lies, as a file without a name.

    Of memory where that is large enough; a container's /dev/shm is often 64 MiB, and a guest
    that runs into its end dies of SIGBUS.
    """
    shared = "/dev/shm"
    try:
        found = os.statvfs(shared)
    except OSError:
        return private
    roomy = found.f_bavail * found.f_frsize >= memory_mib << 20
    return shared if roomy and os.access(shared, os.W_OK) else private
