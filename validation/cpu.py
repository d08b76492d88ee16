"""What a program's CPU work takes in a guest, against the same work on this machine.

``python -m validation.cpu [--rounds N] [--directory DIR] [--out FILE] [--only TEXT]``. Each row
repeats one operation, in a guest of the kernel rig on `DISK` and by a process of this machine in
DIR (which should be on ext4, as in the guest; default: the system's temporary directory), in turns.
Compared are the medians of CPU time for an operation, user and kernel mode together, as the guest
charges it and as the kernel of this machine counts it. A guest is right if it charges what the
machine takes: the ratio should be 1. The exit code is 1 if a row is beyond its bar: a factor of
`COMPUTES` where a process only computes; `CALLS` where it enters the kernel, which in a guest is
another process of the host (or `SWITCH_NS`); `STARTS` where it starts a program, which makes such a
process.

Rows differ with the machine, and with what else it runs. Skipped with the reason where no kernel is
built or a guest cannot be started.
"""

from __future__ import annotations

import argparse
import json
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import blklab
from blklab.base.files import write_whole
from blklab.domain.experiment import RigSpec

DISK = "su800-128gb"
ROUNDS = 5
COMPUTES = 1.3
CALLS = 3.0
STARTS = 4.0
SWITCH_NS = 1_500
"""The noise of an entry into the kernel, which takes a switch between two processes of the host."""
_PYTHON = "/usr/bin/python3"
"""The one that a guest finds."""


@dataclass(frozen=True)
class Work:
    """An operation, repeated by a program in Python."""

    name: str
    bar: float
    """The ratio to be below, and its inverse to be above."""
    count: int
    code: str
    """Repeats it `n` times. What it does without any, and the start of Python, is taken off."""


WORKS = (
    Work("a loop of Python", COMPUTES, 20_000_000, "for i in range(n):\n    pass\n"),
    Work(
        "SHA-256 of 4 KiB", COMPUTES, 200_000,
        "import hashlib; block = bytes(4096)\n"
        "for i in range(n):\n    hashlib.sha256(block).digest()\n",
    ),
    Work("getppid", CALLS, 1_000_000, "import os\nfor i in range(n):\n    os.getppid()\n"),
    Work(
        "a new page of memory", CALLS, 50_000,
        "import mmap; m = mmap.mmap(-1, n * 4096 or 1)\n"
        "for i in range(0, n * 4096, 4096):\n    m[i] = 1\n",
    ),
    Work(
        "write 4 KiB in place", CALLS, 100_000,
        "import os; f = os.open('a', os.O_CREAT | os.O_WRONLY); block = bytes(4096)\n"
        "for i in range(256): os.pwrite(f, block, i * 4096)\n"
        "for i in range(n):\n    os.pwrite(f, block, i % 256 * 4096)\n",
    ),
    Work(
        "read 4 KiB from the page cache", CALLS, 100_000,
        "import os; f = os.open('a', os.O_CREAT | os.O_RDWR); os.pwrite(f, bytes(1 << 20), 0)\n"
        "for i in range(n):\n    os.pread(f, 4096, i % 256 * 4096)\n",
    ),
    Work(
        "create a file of 4 KiB", CALLS, 10_000,
        "import os; block = bytes(4096)\nfor i in range(n):\n"
        "    f = os.open(str(i), os.O_CREAT | os.O_WRONLY); os.write(f, block); os.close(f)\n",
    ),
    Work(
        "start a program", STARTS, 500,
        "import os\nfor i in range(n):\n"
        "    os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)\n",
    ),
    Work(
        "SQLite: an insertion", CALLS, 1000,
        "import sqlite3; base = sqlite3.connect('base.db', isolation_level=None)\n"
        "base.execute('CREATE TABLE t (number INTEGER PRIMARY KEY, text TEXT)')\n"
        "for i in range(n):\n    base.execute('INSERT INTO t (text) VALUES (?)', ('x' * 60,))\n",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """An operation as measured, ns of CPU time, each round."""

    name: str
    bar: float
    guest_ns: tuple[float, ...]
    here_ns: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """A guest's median beside this machine's."""
        return statistics.median(self.guest_ns) / statistics.median(self.here_ns)

    @property
    def is_good(self) -> bool:
        """It is within its bar, or within the noise of one entry into the kernel."""
        guest, here = statistics.median(self.guest_ns), statistics.median(self.here_ns)
        is_noise = self.bar != COMPUTES and abs(guest - here) <= SWITCH_NS
        return is_noise or 1 / self.bar <= self.ratio <= self.bar


def main(arguments: Sequence[str] | None = None) -> int:
    """See the head of the file."""
    parser = argparse.ArgumentParser(prog="python -m validation.cpu", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of each row")
    parser.add_argument("--directory", type=Path, help="of this machine's processes")
    parser.add_argument("--out", type=Path, help="write each row there, as JSON")
    parser.add_argument("--only", default="", help="rows with this text in their names")
    asked = parser.parse_args(arguments)
    kernels = blklab.list_kernels()
    if reason := kernels.refused or ("" if kernels.kernels else "no kernel is built"):
        print(f"skipped: {reason}")
        return 0
    rows = []
    for work in (one for one in WORKS if asked.only in one.name):
        rounds = [(_in_guest(work), _here(work, asked.directory)) for _ in range(asked.rounds)]
        guest, here = zip(*rounds, strict=True)
        row = Row(work.name, work.bar, guest, here)
        rows.append(row)
        print(
            f"{row.name}: {_middle(guest)} in a guest, {_middle(here)} here: {row.ratio:.2f} times "
            f"(at most {row.bar:g}){'' if row.is_good else ': beyond'}",
            flush=True,
        )
    if asked.out:
        document = {"rounds": asked.rounds, "rows": [asdict(row) for row in rows]}
        write_whole(asked.out, json.dumps(document, indent=1) + "\n")
    print(f"{sum(row.is_good for row in rows)} of {len(rows)} rows within their bars")
    return 0 if all(row.is_good for row in rows) else 1


def _middle(times_ns: Sequence[float]) -> str:
    low, middle, high = min(times_ns), statistics.median(times_ns), max(times_ns)
    return f"{middle / 1000:.3g} us ({low / 1000:.3g} to {high / 1000:.3g})"


def _words(work: Work, count: int) -> list[str]:
    return [_PYTHON, "-c", f"n = {count}\n{work.code}"]


def _in_guest(work: Work) -> float:
    found = blklab.compare(
        disks=[DISK],
        workloads=[f"command:{shlex.join(_words(work, count))}" for count in (0, work.count)],
        schedulers=["none"],
        repeats=1,
        rig=RigSpec("kernel"),
        vary_disk=False,
    )
    used = []
    for run in found.results.runs:
        assert run.costs is not None
        assert run.costs.cpu is not None
        used.append(run.costs.cpu.user_ns + run.costs.cpu.kernel_ns)
    return (used[1] - used[0]) / work.count


def _here(work: Work, within: Path | None) -> float:
    used = []
    for count in (0, work.count):
        with tempfile.TemporaryDirectory(dir=within) as directory:
            before = _children_s()
            subprocess.run(_words(work, count), cwd=directory, check=True)
            used.append(_children_s() - before)
    return (used[1] - used[0]) * 1e9 / work.count


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
