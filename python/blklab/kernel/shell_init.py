"""The init of `blklab kernel shell`: runs inside of the guest, as its first process.

Mounts what a shell expects, runs it on the console and powers the guest off after it. Only
the standard library, and no site: it is run by path. ::

    shell_init.py SHELL [ARGUMENT...]
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import sys
import termios
from pathlib import Path

_POWER_OFF = 0x4321FEDC
"""LINUX_REBOOT_CMD_POWER_OFF, reboot(2)."""
_LIBC = ctypes.CDLL(None, use_errno=True)
# What is mounted, in order: type, place, data. A guest's own /tmp and /run hide the host's.
_MOUNTS = (
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
    ("debugfs", "/sys/kernel/debug", ""),
    ("tracefs", "/sys/kernel/tracing", ""),
    ("cgroup2", "/sys/fs/cgroup", ""),
    ("devpts", "/dev/pts", ""),
    ("tmpfs", "/dev/shm", ""),
    ("tmpfs", "/run", ""),
    ("tmpfs", "/tmp", ""),
)


def main(shell: list[str]) -> None:
    """Mount, run `shell`, power off; whatever goes wrong, power off."""
    try:
        for kind, place, data in _MOUNTS:
            _mount(kind, place, data)
        run = _run_directory()
        _mount("hostfs", run, run)
        os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        _run(shell, run)
    finally:
        os.sync()
        _LIBC.reboot(_POWER_OFF)


def _run_directory() -> str:
    """From the kernel's command line; a value with blanks stands in quotes as a whole."""
    text = Path("/proc/cmdline").read_text(encoding="utf-8")
    quoted = text.partition('"blklab.run=')[2].partition('"')[0]
    return quoted or text.partition("blklab.run=")[2].split()[0]


def _mount(kind: str, place: str, data: str) -> None:
    try:
        Path(place).mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # the root is read-only and lacks it
    if _LIBC.mount(kind.encode(), place.encode(), kind.encode(), 0, data.encode()):
        print(f"{place}: {os.strerror(ctypes.get_errno())}", file=sys.stderr)


def _run(shell: list[str], directory: str) -> None:
    child = os.fork()
    if child == 0:
        os.setsid()
        # Job control wants a terminal of the shell's own; a pipe cannot be one.
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 1)
        os.chdir(directory)
        os.execvp(shell[0], shell)
    while os.wait()[0] != child:
        pass


if __name__ == "__main__":
    main(sys.argv[1:])
