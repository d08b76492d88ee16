"""Starts a kernel as a guest: an ordinary process, behind a wall, that sees a view of this machine.

The guest's root is the view, mounted through hostfs (:mod:`blklab.rigs.kernel.view`). Its init is a
program in the view, which finds the one directory it may write to in the kernel's command line, as
``blklab.run=DIRECTORY``, and mounts that over itself (``mount -t hostfs -o DIRECTORY``).
It ends by powering off; the kernel panics if init just returns.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, cast, get_args

from blklab.base import pool
from blklab.base.text import shown as printable
from blklab.base.units import size_text
from blklab.errors import InputError, nearest
from blklab.rigs.kernel import memory, supervise, wall
from blklab.rigs.kernel.errors import (
    GuestMemoryError,
    GuestPanicError,
    GuestTimeoutError,
    KernelError,
)
from blklab.rigs.kernel.rundir import RunDirectory
from blklab.rigs.kernel.view import IMAGE, MEMORY, RUN, View

TimeTravel = Literal["off", "on", "inf-cpu"]
"""The guest's clock: the host's; virtual with CPU time; virtual without CPU time."""

_TIME_TRAVEL = {"off": [], "on": ["time-travel"], "inf-cpu": ["time-travel=inf-cpu"]}
# The wall clock at boot in virtual time, in ns since 1970: 9 September 2001.
_START_NS = 10**18
# A program that lost a process has no meaningful result, and one that is not killed may look for
# memory for ever.
_WITHOUT_MEMORY = "sysctl.vm.panic_on_oom=1"
_NO_MEMORY = re.compile(r"not syncing: .*(out of memory|deadlocked on memory)", re.IGNORECASE)
_CONSOLE_BYTES_MAX = 4 << 20
_TAIL_BYTES = 16384
_TAIL_LINES = 15
# The command line is a text of words; quotes group blanks, and a quote cannot be escaped.
_UNFIT = re.compile(r"[\"\n]")
_PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
_CPUS_IN_USE: Counter[int] = Counter()
other_guests: Counter[int] = Counter()
"""The guests of other processes, by CPU, as far as they are known: the tests' workers know."""
_CPUS_LOCK = threading.Lock()
# x86's COMMAND_LINE_SIZE, including some words that UML adds.
_LINE_BYTES_MAX = 2000


@dataclass(frozen=True)
class Outcome:
    """The result of a guest that powered off."""

    console: bytes
    """Its output, if it had no terminal."""
    wall_s: float


class Guest:
    """A running guest. Leaving the ``with`` block ends it."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        first: int,
        run: RunDirectory,
        console: int,
        timeout_s: float,
        cpus: Sequence[int],
        *,
        memory_mib: int,
    ) -> None:
        self._process = process
        self._first = first
        self._console = console
        self._memory_mib = memory_mib
        self._cpus = tuple(cpus)
        self._lock = threading.Lock()
        self._start_s = time.monotonic()
        self._timeout_s = timeout_s
        self.run = run
        """Its run directory, which exists until the end of the ``with`` block."""

    def __enter__(self) -> Guest:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.kill()
        self.run.close()
        os.close(self._console)

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def wait(self) -> Outcome:
        """Wait for its end; afterwards the run directory does not change any more.

        GuestPanicError (GuestMemoryError), GuestTimeoutError or KernelError with the last lines of
        its console if it did not power off. An interrupt ends the guest.
        """
        try:
            code = self._process.wait()
        except BaseException:
            self.kill()
            raise
        self._ended()
        wall_s = time.monotonic() - self._start_s
        match code:
            case supervise.POWERED_OFF:
                return Outcome(_content(self._console), wall_s)
            case supervise.PANICKED:
                tail = self.tail()
                if any(_NO_MEMORY.search(line) for line in tail):
                    raise GuestMemoryError(
                        f"the guest ran out of its {self._memory_mib} MiB of memory", tail
                    )
                raise GuestPanicError("the guest's kernel panicked", tail)
            case supervise.TIMED_OUT:
                raise GuestTimeoutError(
                    f"the guest was ended after {self._timeout_s:g} s", self.tail()
                )
            case supervise.ABANDONED:
                raise KernelError("the guest was ended early")
            case supervise.KILLED:
                free = size_text(memory.available_bytes())
                raise KernelError(
                    "SIGKILL ended the guest's process, which the system sends when memory is "
                    f"short: the guest may need {self._memory_mib} MiB; {free} are available now",
                    self.tail(),
                )
        raise KernelError("the guest's process died", self.tail())

    def kill(self) -> None:
        """End it now; returns after all its processes have ended."""
        _end(self._process)
        self._ended()

    def _ended(self) -> None:
        # One thread may wait for it while another one kills it.
        with self._lock:
            if self._first < 0:
                return
            # Its first process ends after all others.
            poll = select.poll()
            poll.register(self._first, select.POLLIN)
            poll.poll()
            os.close(self._first)
            self._first = -1
            _give_back(self._cpus)

    def tail(self) -> list[str]:
        """The last lines of its console; up to the panic, if there was one."""
        return _tail(_content(self._console))


def boot(
    kernel: Path,
    init: Sequence[str],
    files: Mapping[str, bytes | None],
    view: View,
    *,
    memory_mib: int = 512,
    scratch_mib: int = wall.SCRATCH_MIB,
    time_travel: TimeTravel = "off",
    seed: int = 1,
    timeout_s: float = 600.0,
    interactive: bool = False,
    options: Sequence[str] = (),
) -> Guest:
    """Start `kernel` with the program `init` and its arguments, and return at once.

    The guest sees `view`, and can write only to its run directory, which has room for
    `scratch_mib`; `files` are in it from the start (:meth:`RunDirectory.put`). At most 4 MiB of its
    console are stored; with `interactive` it is this process's terminal. `options` are further
    words of the kernel's command line. InputError if it cannot hold them; RunError if nothing can
    confine a guest, KernelError if the confinement of this view fails. A guest without memory ends;
    in an `interactive` one the kernel kills a process instead. The guest dies with this process,
    even after SIGKILL.

    With the clock inf-cpu all random numbers in the guest follow from `seed` (``seed.patch``),
    and its wall clock begins at the same time, so that the same guest repeats exactly.
    """
    cpus = _take_cpus()
    words = [
        *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"),
        *(f"mem={memory_mib}M", "con=null", "con0=fd:0,fd:1", "console=tty0", "quiet"),
        # Faster than ptrace if the host allows it; older kernels ignore the word.
        *("seccomp=auto", f"uml_dir={MEMORY}", "umid=guest", "null_blk.nr_devices=0"),
        # The addresses of programs determine the number of page tables, and so the dirty limits: a
        # run repeats to the page only without address randomisation.
        "norandmaps",
        *_clock(time_travel, seed),
        f"blklab.user_cpu={_user_cpu(cpus)}",
        *([] if interactive else [_WITHOUT_MEMORY]),
        *options,
        *(f"init={init[0]}", f"blklab.run={RUN}"),
        *(["--", *init[1:]] if len(init) > 1 else []),
    ]
    with contextlib.ExitStack() as ours, contextlib.ExitStack() as undone:
        undone.callback(_give_back, cpus)
        _check(words)
        linux = [str(IMAGE), *map(_quoted, words)]
        confined = wall.command(view, kernel, memory_mib, scratch_mib, linux)
        entry = ours.enter_context(contextlib.closing(wall.Entry()))
        console = os.memfd_create("console")
        undone.callback(os.close, console)
        shown = os.dup(sys.stdin.fileno()) if interactive else os.dup(console)
        ours.callback(os.close, shown)
        process = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", supervise.__file__, str(timeout_s)),
                *(f"{'terminal' if interactive else 'to'}:{shown}", str(_CONSOLE_BYTES_MAX)),
                *map(str, entry.theirs),
                *("taskset", "--cpu-list", str(cpus[0]), *confined),
            ],
            stdin=subprocess.PIPE,
            stdout=None if interactive else subprocess.DEVNULL,
            env={"PATH": os.defpath, "TMPDIR": str(MEMORY)},
            # Ctrl-C reaches only blklab, which ends the guest.
            start_new_session=True,
            pass_fds=[shown, *entry.theirs, *view.held],
        )
        undone.callback(_end, process)
        entry.given_on()
        entered = entry.enter()
        if entered is None:
            # It ends by itself, and its last output is stored.
            entry.close()
            process.wait()
            raise KernelError("the guest could not be started", _tail(_content(console)))
        first, run = entered
        undone.callback(os.close, first)
        undone.callback(run.close)
        run.put(files)
        entry.let_go()
        undone.pop_all()
    return Guest(process, first, run, console, timeout_s, cpus, memory_mib=memory_mib)


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait()


def _content(console: int) -> bytes:
    return os.pread(console, os.fstat(console).st_size, 0)


def _tail(console: bytes) -> list[str]:
    text = console[-_TAIL_BYTES:].decode(errors="replace")
    lines = [printable(line.rstrip()) for line in text.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if supervise.PANIC.decode() in line:
            # A stack with addresses follows.
            lines = lines[: number + 1]
            break
    return lines[-_TAIL_LINES:]


def _clock(time_travel: TimeTravel, seed: int) -> list[str]:
    words = _TIME_TRAVEL[time_travel]
    # With other clocks CPU time counts, which always differs.
    exact = [f"time-travel-start={_START_NS}", f"blklab.seed={seed}"]
    return [*words, *exact] if time_travel == "inf-cpu" else words


def _take_cpus() -> list[int]:
    """The CPUs with the fewest guests: one for the kernel, and one for its processes if
    there are enough for all parallel guests.

    Kernel and processes never run at the same time. On one CPU each sleeps while the other runs;
    on two each spins (``own-cpu.patch``), which is up to three times as fast.
    """
    with _CPUS_LOCK:
        in_use = _CPUS_IN_USE + other_guests
        by_use = sorted(os.sched_getaffinity(0), key=lambda cpu: (in_use[cpu], cpu))
        parallel = pool.side_by_side() + other_guests.total()
        taken = by_use[: 2 if len(by_use) >= 2 * parallel else 1]
        _CPUS_IN_USE.update(taken)
    return taken


def _give_back(cpus: Sequence[int]) -> None:
    with _CPUS_LOCK:
        _CPUS_IN_USE.subtract(cpus)


def _user_cpu(cpus: Sequence[int]) -> str:
    """A text of constant length, because the length of the command line affects the free memory."""
    return f"{cpus[1]:04}" if len(cpus) > 1 else "none"


def checked_time_travel(name: str) -> TimeTravel:
    """`name`, if there is such a clock; InputError otherwise."""
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
