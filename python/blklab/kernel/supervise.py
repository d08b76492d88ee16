"""Runs one guest and sees to it that nothing of it outlives whoever asked for it.

A program of its own, run by path, so that it starts fast and lives on when blklab is
killed. Its standard input is a pipe that blklab holds open: when that closes, for whatever
reason, the guest is killed and its private directory is removed. ::

    supervise.py TIMEOUT_S CONSOLE CONSOLE_BYTES_MAX PRIVATE_DIRECTORY COMMAND...

CONSOLE is a file for what the guest prints; ``fd:N`` gives the guest itself descriptor N to
read from and standard output to write to. Exit codes are below.
"""

# ruff: noqa: PTH106, PTH108 (pathlib takes longer to load than all else)

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

POWERED_OFF, PANICKED, TIMED_OUT, ABANDONED, DIED = 0, 10, 11, 12, 13
"""Exit codes: the guest ended in order; its kernel panicked; the limit of wall time passed;
nobody waits for it any more; its process ended in some other way."""

PANIC = b"Kernel panic"
_BLOCK_BYTES = 1 << 16
_CUT = b"\n[blklab: the console is longer than this file may be; the rest is left out]\n"
_AFTER_PANIC_S = 2.0


def main(timeout_s: float, console: str, console_bytes_max: int, private: str,
         command: list[str]) -> int:  # fmt: skip
    """Run the guest to its end, whichever it is; an exit code of those above."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Only the end of standard input counts, so that there is one way to end.
        signal.signal(number, signal.SIG_IGN)
    terminal = int(console.removeprefix("fd:")) if console.startswith("fd:") else None
    guest, output = _start(command, terminal)
    try:
        return _watch(guest, output, timeout_s, console, console_bytes_max)
    finally:
        _kill(guest)
        _remove(private)


def _start(command: list[str], terminal: int | None) -> tuple[int, int | None]:
    """The guest's process id, and where its console can be read."""
    reading, writing = os.pipe() if terminal is None else (None, None)
    guest = os.fork()
    if guest:
        if writing is not None:
            os.close(writing)
        return guest, reading
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY) if terminal is None else terminal, 0)
        if writing is not None:
            os.dup2(writing, 1)
            os.dup2(writing, 2)
        os.closerange(3, 64)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(127)


def _watch(
    guest: int, output: int | None, timeout_s: float, console: str, console_bytes_max: int
) -> int:
    end_s = time.monotonic() + timeout_s
    lifeline, tail, panicked, left = sys.stdin.fileno(), b"", False, console_bytes_max
    file = -1 if output is None else os.open(console, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    ended = os.pidfd_open(guest)
    while True:
        wanted = [lifeline, ended, *([] if output is None else [output])]
        ready, _, _ = select.select(wanted, [], [], max(0.0, end_s - time.monotonic()))
        if output is not None and output in ready:
            block = os.read(output, _BLOCK_BYTES)
            if block:
                left = _write(file, block, left)
                tail = (tail + block)[-_BLOCK_BYTES:]
                if PANIC in tail and not panicked:
                    # It may hang after it; what it still says is worth a moment.
                    panicked, end_s = True, min(end_s, time.monotonic() + _AFTER_PANIC_S)
                continue
            output = None
        if lifeline in ready:
            return ABANDONED
        if ended in ready:
            # It stays a zombie until its group is dead, so that no other can have its number.
            found = os.waitid(os.P_PID, guest, os.WEXITED | os.WNOWAIT)
            if panicked:
                return PANICKED
            in_order = found and (found.si_code, found.si_status) == (os.CLD_EXITED, 0)
            return POWERED_OFF if in_order else DIED
        if not ready:
            return PANICKED if panicked else TIMED_OUT


def _write(file: int, block: bytes, left: int) -> int:
    """Append within the bound; how many bytes may still come."""
    if left <= 0:
        return left
    os.write(file, block[:left])
    if len(block) >= left:
        os.write(file, _CUT)
        return 0
    return left - len(block)


def _kill(guest: int) -> None:
    """The kernel and all of its session; its processes' stubs ask to die with it."""
    # By its own number first: until its setsid it has no group, and nothing else to kill.
    for kill in (os.kill, os.killpg):
        with contextlib.suppress(ProcessLookupError):
            kill(guest, signal.SIGKILL)
    os.waitpid(guest, 0)


def _remove(directory: str) -> None:
    for where, directories, files in os.walk(directory, topdown=False):
        for name in files:
            os.unlink(f"{where}/{name}")
        for name in directories:
            os.rmdir(f"{where}/{name}")
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(directory)


if __name__ == "__main__":
    _timeout, _console, _bytes, _private, *_command = sys.argv[1:]
    sys.exit(main(float(_timeout), _console, int(_bytes), _private, _command))
