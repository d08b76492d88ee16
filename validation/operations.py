"""What an operation of a program costs the disk, against a real kernel's own events.

``python -m validation.operations [--out FILE] [--only TEXT]``. Each operation of the table runs in
a guest of the kernel rig, on a new ext4 with a journal of 16 MiB on a disk with a write cache and
without FUA, as on the machine of the table: Linux 6.18 on a loop device, requests of
``block_rq_issue``. Compared are bytes of data, bytes with the mark of metadata (the journal among
them), and flushes, each per operation; all bytes together decide whether a row is within `BAR`. The
exit code is 1 if a row outside of `BAR` has no reason in `MISSES`, or if one with a reason is
within it.

Skipped with the reason where no kernel is built or a guest cannot be started.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import blklab
from blklab.base.files import write_whole
from blklab.domain.experiment import RigSpec

BAR = 0.1
COUNT = 500
"""Operations of a run."""
_DISK = "wd10ezrx"
_JOURNAL = "ext4:-J=size=16"
_FAST = f"{_JOURNAL},-O=fast_commit"

_HEAD = f"import os, sqlite3; n = {COUNT}; block = os.urandom(4096)\n"
_APPEND = """
f = os.open("a", os.O_WRONLY | os.O_CREAT)
for i in range(n):
    os.pwrite(f, block, i * 4096)
    os.{sync}(f)
"""
_WRITTEN = """
f = os.open("a", os.O_WRONLY | os.O_CREAT)
for i in range(n):
    os.pwrite(f, block, i * 4096)
os.sync()
"""
_FALLOCATED = """
f = os.open("a", os.O_WRONLY | os.O_CREAT)
os.posix_fallocate(f, 0, n * 4096)
os.sync()
"""
_CREATE = """
for i in range(n):
    f = os.open(f"{name}", os.O_WRONLY | os.O_CREAT)
    os.write(f, block)
    {then}
    os.close(f)
    {last}
{after}
"""
_SQLITE = """
base = sqlite3.connect("base.db", isolation_level=None)
base.execute("PRAGMA journal_mode={mode}")
base.execute("PRAGMA synchronous={sync}")
base.execute("CREATE TABLE IF NOT EXISTS t (number INTEGER PRIMARY KEY, text TEXT)")
"""
_INSERT = """
for i in range(n):
    base.execute("INSERT INTO t (text) VALUES (?)", ("x" * 60,))
"""


def _created(name: str, then: str, last: str = "pass", after: str = "pass") -> str:
    # The braces of the name are Python's own, in the guest.
    return _CREATE.format(name=name, then=then, last=last, after=after)


def _sqlite(mode: str, sync: str = "FULL") -> str:
    return _SQLITE.format(mode=mode, sync=sync)


@dataclass(frozen=True)
class Operation:
    """A row of the table: bytes and flushes of one operation."""

    name: str
    before: str
    """Not measured; Python, as the next."""
    code: str
    data_bytes: float
    marked_bytes: float
    """With the mark of metadata: the journal's and others."""
    flushes: float
    fast_bytes: float | None = None
    """Marked bytes with the feature fast_commit."""


_PREPARED = _sqlite("DELETE") + "base.close()\nos.sync()\n"
_REUSED = _sqlite("WAL") + _INSERT.replace("range(n)", "range(6 * n)") + "os._exit(0)\n"
"""Nothing closes the log, so that it stays; after a checkpoint it is written from its beginning."""
_RESTART = 'base.execute("PRAGMA wal_checkpoint(RESTART)")\n'

# Linux 6.18, ext4's defaults on a loop device, 500 to 2,000 operations each; SQLite 3.40.1.
OPERATIONS = (
    Operation("append 4 KiB, fsync", "", _APPEND.format(sync="fsync"), 4096, 20488, 2.0, 4325),
    Operation(
        "append 4 KiB, fdatasync", "", _APPEND.format(sync="fdatasync"), 4096, 24461, 2.0, 4325
    ),
    Operation(
        "overwrite a written block, fdatasync", _WRITTEN, _APPEND.format(sync="fdatasync"),
        4096, 0, 1.0, 0,
    ),
    Operation(
        "overwrite a written block, fsync", _WRITTEN, _APPEND.format(sync="fsync"),
        4096, 1425, 1.1, 4211,
    ),
    Operation(
        "overwrite in an allocated file, fdatasync", _FALLOCATED,
        _APPEND.format(sync="fdatasync"), 4096, 12296, 2.0, 4211,
    ),
    Operation(
        "create a file of 4 KiB, fsync", "", _created("{i}", "os.fsync(f)"), 4096, 32956, 2.0, 4751
    ),
    Operation(
        "temporary file, fsync, rename", "",
        _created("new", "os.fsync(f)", 'os.rename("new", str(i))'), 4096, 36880, 2.0, 4555,
    ),
    Operation(
        "create a file of 4 KiB, one sync at the end", "",
        _created("{i}", "pass", "pass", "os.sync()"), 4096, 602, 0.0, 602,
    ),
    Operation(
        "unlink, one sync at the end", _created("{i}", "pass", "pass", "os.sync()"),
        'for i in range(n):\n    os.unlink(str(i))\nos.sync()\n', 0, 598, 0.0, 598,
    ),
    Operation("SQLite, DELETE", _PREPARED, _sqlite("DELETE") + _INSERT, 24650, 33190, 4.0),
    Operation("SQLite, TRUNCATE", _PREPARED, _sqlite("TRUNCATE") + _INSERT, 24650, 45486, 6.0),
    Operation("SQLite, PERSIST", _PREPARED, _sqlite("PERSIST") + _INSERT, 28746, 12706, 6.0),
    Operation("SQLite, WAL that grows", _PREPARED, _sqlite("WAL") + _INSERT, 8434, 19759, 2.0),
    Operation(
        "SQLite, WAL used again", _REUSED, _sqlite("WAL") + _RESTART + _INSERT, 8440, 25, 1.0
    ),
    Operation(
        "SQLite, WAL, synchronous=NORMAL", _PREPARED, _sqlite("WAL", "NORMAL") + _INSERT,
        4198, 45, 0.01,
    ),
)  # fmt: skip

MISSES: Mapping[str, str] = {
    "append 4 KiB, fdatasync": (
        "the table's has one block more; a file of more extents than its inode holds has 24590"
    ),
    "overwrite a written block, fsync": (
        "the time of a write changes with the tick, and an operation takes longer than one here; "
        "on optane-900p, where it takes 13 us, it has 164"
    ),
}
"""Rows outside of `BAR`, each with the reason."""


@dataclass(frozen=True)
class Row:
    """An operation as measured, beside the table's figures."""

    name: str
    data_bytes: float
    table_data_bytes: float
    marked_bytes: float
    table_marked_bytes: float
    flushes: float
    table_flushes: float | None
    commits: float

    @property
    def off(self) -> float:
        """The deviation of all bytes together."""
        table = self.table_data_bytes + self.table_marked_bytes
        return (self.data_bytes + self.marked_bytes) / table - 1


def main(arguments: Sequence[str] | None = None) -> int:
    """See the head of the file."""
    parser = argparse.ArgumentParser(prog="python -m validation.operations", description=__doc__)
    parser.add_argument("--out", type=Path, help="write each row there, as JSON")
    parser.add_argument("--only", default="", help="rows with this text in their names")
    asked = parser.parse_args(arguments)
    kernels = blklab.list_kernels()
    if reason := kernels.refused or ("" if kernels.kernels else "no kernel is built"):
        print(f"skipped: {reason}")
        return 0
    asked_for = [pair for pair in _every() if asked.only in pair[1]]
    with ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda pair: _measured(*pair), asked_for))
    good = True
    for row in rows:
        reason = MISSES.get(row.name, "")
        within = abs(row.off) <= BAR
        good &= within != bool(reason)
        flushes = "" if row.table_flushes is None else f" ({row.table_flushes:g})"
        print(
            f"{row.name}: data {row.data_bytes:.0f} ({row.table_data_bytes:.0f}), marked "
            f"{row.marked_bytes:.0f} ({row.table_marked_bytes:.0f}), flushes "
            f"{row.flushes:.2f}{flushes}, commits {row.commits:.2f}: {row.off:+.1%}"
            f"{f'; {reason}' if reason else ''}"
        )
    if asked.out:
        document = {"bar": BAR, "misses": MISSES, "rows": [asdict(row) for row in rows]}
        write_whole(asked.out, json.dumps(document, indent=1) + "\n")
    print(f"{sum(abs(row.off) <= BAR for row in rows)} of {len(rows)} rows within {BAR:.0%}")
    return 0 if good else 1


def _every() -> Iterator[tuple[Operation, str, str]]:
    """Each operation, its name, and its file system."""
    for operation in OPERATIONS:
        yield operation, operation.name, _JOURNAL
        if operation.fast_bytes is not None:
            yield operation, f"{operation.name}, fast_commit", _FAST


def _measured(operation: Operation, name: str, file_system: str) -> Row:
    def python(code: str) -> str:
        return shlex.join(["python3", "-c", _HEAD + code])

    before = f"{python(operation.before)} :: " if operation.before else ""
    found = blklab.compare(
        disks=[_DISK],
        workloads=[f"command:{before}{python(operation.code)}"],
        schedulers=["none"],
        repeats=1,
        rig=RigSpec("kernel", cpu="free"),
        file_systems=[file_system],
        vary_disk=False,
    )
    [run] = found.results.runs
    costs = run.costs
    assert costs is not None
    is_fast = file_system == _FAST
    moved = costs.during
    return Row(
        name,
        moved.data.bytes / COUNT,
        operation.data_bytes,
        (moved.journal.bytes + moved.metadata.bytes) / COUNT,
        (operation.fast_bytes or 0) if is_fast else operation.marked_bytes,
        moved.flushes / COUNT,
        None if is_fast else operation.flushes,
        (costs.commits or 0) / COUNT,
    )


if __name__ == "__main__":
    sys.exit(main())
