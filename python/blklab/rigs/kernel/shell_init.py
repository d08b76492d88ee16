"""The init of `blklab kernel shell`: runs inside of the guest, as its first process.

Mounts the file systems that a shell expects, runs it on the console and then powers the guest off.
Uses only the standard library without site, because it is run by path. ::

    shell_init.py ROWS COLUMNS SHELL [ARGUMENT...]

The first two are the size of the terminal, which the kernel does not see: its keyboard is a pipe.
If the run directory has a ``disk.json``, there is a disk: ``serve`` in it is the command of
the server, the rest is as in the guest.json of a run. If the disk fails, there is no shell, and the
file ``failed`` has the reason.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

_POWER_OFF = 0x4321FEDC
"""LINUX_REBOOT_CMD_POWER_OFF, reboot(2)."""
_LIBC = ctypes.CDLL(None, use_errno=True)
# The mounts, in order: type, place, data. A guest's own /tmp and /run hide the host's.
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


def main(size: tuple[int, int], shell: list[str]) -> None:
    """Mount, run `shell`, power off; power off after any error."""
    try:
        if os.isatty(0):
            termios.tcsetwinsize(0, size)
        for kind, place, data in _MOUNTS:
            _mount(kind, place, data)
        run = _run_directory()
        _mount("hostfs", run, run)
        os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        order = Path(run) / "disk.json"
        if order.exists():
            _run_with_disk(shell, run, json.loads(order.read_text(encoding="utf-8")))
        else:
            _run(shell, run)
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
    finally:
        os.sync()
        _LIBC.reboot(_POWER_OFF)


def _run_directory() -> str:
    """A value of the kernel's command line; a value with blanks is quoted as a whole."""
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


def _run_with_disk(shell: list[str], directory: str, order: dict[str, Any]) -> None:
    """Serve the disk while the shell runs; without a disk there is no shell."""
    with subprocess.Popen(order["serve"], stdout=subprocess.PIPE, cwd=directory) as server:
        assert server.stdout is not None
        first = server.stdout.readline().decode()
        if not first:
            _fail(directory, "the disk could not be served")  # it has printed the reason
            return
        device = first.partition(":")[0]
        os.environ["BLKLAB_DISK"] = device
        queue = Path("/sys/block") / Path(device).name / "queue"
        try:
            _set(queue / "scheduler", order["scheduler"])
            for folder in ("queue", "iosched"):
                for name, value in order[folder].items():
                    _set((queue if folder == "queue" else queue / folder) / name, value)
        except OSError as error:
            _fail(directory, f"{error.filename}: {error.strerror}")
        else:
            print(f"{first.partition(';')[0]}; {order['scheduler']}", file=sys.stderr)
            _run(shell, directory)
        server.send_signal(signal.SIGTERM)
        # Its report needs a file.
        server.communicate()


def _fail(directory: str, reason: str) -> None:
    (Path(directory) / "failed").write_text(reason, encoding="utf-8")


def _set(file: Path, value: object) -> None:
    # One write and no more: closing a text file would write again after an error.
    handle = os.open(file, os.O_WRONLY)
    try:
        os.write(handle, str(value).encode())
    except OSError as error:
        raise OSError(error.errno, f"{value} was refused: {error.strerror}", str(file)) from error
    finally:
        os.close(handle)


def _run(shell: list[str], directory: str) -> None:
    child = os.fork()
    if child == 0:
        os.setsid()
        # Job control needs a terminal for the shell; a pipe cannot be one.
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 1)
        os.chdir(directory)
        os.execvp(shell[0], shell)
    while os.wait()[0] != child:
        pass


if __name__ == "__main__":
    _rows, _columns, *_shell = sys.argv[1:]
    main((int(_rows), int(_columns)), _shell)
