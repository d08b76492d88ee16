"""Runs one guest and ends all of it when the process that started it ends.

A separate program, run by path, so that it starts fast and survives a killed blklab. Its standard
input is a pipe that blklab holds open: when that closes for any reason, it kills the guest. ::

    supervise.py TIMEOUT_S CONSOLE CONSOLE_BYTES_MAX INFO READY GO COMMAND...

CONSOLE is ``to:N``, a descriptor for the guest's output; with ``terminal:N`` the guest writes to
standard output and reads, through a pipe, what is typed on the terminal N. INFO, READY and GO are
descriptors too, which the command finds under the numbers below. Exit codes are below.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import select
import signal
import sys
import threading
import time

POWERED_OFF, PANICKED, TIMED_OUT, ABANDONED, DIED, KILLED = 0, 10, 11, 12, 13, 14
"""Exit codes: the guest ended in order; its kernel panicked; the limit of wall time passed;
the starting process has ended; the guest's process ended in another way; SIGKILL ended it."""

INFO, READY, GO = 3, 4, 5
"""Descriptors of the command: see :mod:`blklab.rigs.kernel.wall`. One digit, for a shell's sake."""

PANIC = b"Kernel panic"
_ENDS = {
    (os.CLD_EXITED, 0): POWERED_OFF,
    (os.CLD_KILLED, signal.SIGKILL): KILLED,
    # The sandbox tells it of its child, as a shell does.
    (os.CLD_EXITED, 128 + signal.SIGKILL): KILLED,
}
_BLOCK_BYTES = 1 << 16
_CUT = b"\n[blklab: the console is longer than this file may be; the rest is left out]\n"
_AFTER_PANIC_S = 2.0
_OUT_OF_THE_WAY = 64
# keyctl(2), which the C library does not have, where user-mode Linux runs.
_KEYCTL = {"x86_64": 250, "i686": 288}
_JOIN_SESSION_KEYRING = 1


def main(timeout_s: float, console: str, console_bytes_max: int, shared: list[int],
         command: list[str]) -> int:  # fmt: skip
    """Run the guest to its end; returns one of the exit codes above."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Only the end of standard input counts, so that there is a single way to end.
        signal.signal(number, signal.SIG_IGN)
    kind, _, number_text = console.partition(":")
    terminal, file = (int(number_text), -1) if kind == "terminal" else (None, int(number_text))
    guest, output = _start(command, terminal, shared)
    try:
        return _watch(guest, output, timeout_s, file, console_bytes_max)
    finally:
        _kill(guest)


def _start(command: list[str], terminal: int | None, shared: list[int]) -> tuple[int, int | None]:
    """The guest's process id, and where its console can be read if it has no terminal."""
    # Its console is written to this pipe, or its keyboard is read from it.
    reading, writing = os.pipe()
    guest = os.fork()
    if guest:
        for one in shared:
            os.close(one)
        if terminal is None:
            # blklab must notice when the other end is closed.
            os.close(writing)
            return guest, reading
        os.close(reading)
        threading.Thread(target=_type, args=(terminal, writing), daemon=True).start()
        return guest, None
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        if terminal is None:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(writing, 1)
            os.dup2(writing, 2)
        else:
            os.dup2(reading, 0)
        _leave_keys()
        # First move them away from each other's new numbers.
        away = [fcntl.fcntl(one, fcntl.F_DUPFD, _OUT_OF_THE_WAY) for one in shared]
        for one, agreed in zip(away, (INFO, READY, GO), strict=True):
            os.dup2(one, agreed)
        os.closerange(GO + 1, os.sysconf("SC_OPEN_MAX"))
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(127)


def _type(terminal: int, keyboard: int) -> None:
    """Copy what is typed, to the end of the terminal.

    A terminal sends SIGIO before epoll knows of its input, so that user-mode Linux, which asks
    epoll once for each SIGIO, may not see a key until the next one. A pipe does both in the other
    order.
    """
    with contextlib.suppress(OSError):
        while True:
            # The guest sets its output, and so the same terminal, not to block.
            select.select([terminal], [], [])
            try:
                typed = os.read(terminal, _BLOCK_BYTES)
            except BlockingIOError:
                continue
            if not typed:
                break
            os.write(keyboard, typed)
    os.close(keyboard)


def _leave_keys() -> None:
    """Drop the keys of the login session, which a process inherits even as another user."""
    number = _KEYCTL.get(os.uname().machine)
    if number is not None:
        ctypes.CDLL(None).syscall(number, _JOIN_SESSION_KEYRING, None)


def _watch(
    guest: int, output: int | None, timeout_s: float, file: int, console_bytes_max: int
) -> int:
    end_s = time.monotonic() + timeout_s
    lifeline, tail, panicked, left = sys.stdin.fileno(), b"", False, console_bytes_max
    ended = os.pidfd_open(guest)
    while True:
        wanted = [lifeline, ended, *([] if output is None else [output])]
        ready, _, _ = select.select(wanted, [], [], max(0.0, end_s - time.monotonic()))
        if lifeline in ready:
            return ABANDONED
        # A guest with endless output ends in time, too.
        if not ready or time.monotonic() >= end_s:
            return PANICKED if panicked else TIMED_OUT
        if output is not None and output in ready:
            block = os.read(output, _BLOCK_BYTES)
            if block:
                left = _write(file, block, left)
                tail = (tail + block)[-_BLOCK_BYTES:]
                if PANIC in tail and not panicked:
                    # It may hang after the panic; its remaining output is worth a moment.
                    panicked, end_s = True, min(end_s, time.monotonic() + _AFTER_PANIC_S)
                continue
            output = None
        if ended in ready:
            # It stays a zombie until its group is dead, so that its number is not reused.
            found = os.waitid(os.P_PID, guest, os.WEXITED | os.WNOWAIT)
            if panicked:
                return PANICKED
            assert found is not None
            return _ENDS.get((found.si_code, found.si_status), DIED)


def _write(file: int, block: bytes, left: int) -> int:
    """Append within the bound; returns the number of bytes that may still come."""
    if left <= 0:
        return left
    os.write(file, block[:left])
    if len(block) >= left:
        os.write(file, _CUT)
        return 0
    return left - len(block)


def _kill(guest: int) -> None:
    """Kill its session; in the sandbox all processes die with the first one."""
    # First by its own number: before its setsid it has no group, and there is no other process.
    for kill in (os.kill, os.killpg):
        with contextlib.suppress(ProcessLookupError):
            kill(guest, signal.SIGKILL)
    os.waitpid(guest, 0)


if __name__ == "__main__":
    _timeout, _console, _bytes, _info, _ready, _go, *_command = sys.argv[1:]
    _shared = [int(_info), int(_ready), int(_go)]
    sys.exit(main(float(_timeout), _console, int(_bytes), _shared, _command))
