"""Replays of recorded programs against the programs themselves.

``python -m validation.programs [--set NAME] [--out FILE] [--only NAME] [--keep DIRECTORY]``. Each
program runs in a guest of the kernel rig, on ext4 on a disk model, under each scheduler on each
disk, and is recorded. Each of these recordings is replayed on the simulator in the place of all
others: another run of the same program there is the truth. Compared are the time of the whole load,
the 99th percentile of its reads, or of its writes if it hardly reads, and the scheduler with the
shortest time on each disk, where the schedulers differ by `WINNER_DIFFERENCE`. The exit code is 1
if replays as inferred, the way that `blklab whatif` names first, are worse than `BAR`.

Each program also runs once more in each place, on a disk that is slower by a ten thousandth of a
read and whose platter begins elsewhere. A replay that is as near to a program as that is as near
as it can be.

The rules of the replay were made with the sets `first` and `second` before the eyes; other programs
and disks, the sets `held out` and `fourth`, show what they are worth elsewhere. All disks have a
volatile cache: the kernel drops flushes of one without, so that its recordings lack them.

What a program needs is on the disk before, made once, and the disk's model begins anew: a recording
does not tell what was in the disk's cache and where its data are in flash. Queues have the
writeback throttling of Linux on both rigs.

Skipped with the reason where no kernel is built or a guest cannot be started.
"""

from __future__ import annotations

import argparse
import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.ipc

import blklab
from blklab.agreement.chance import disturbed
from blklab.base.files import write_whole
from blklab.domain import specs
from blklab.domain.recordings import WAYS, Way
from blklab.errors import BlklabError

BAR = {"span": (0.05, 0.9), "p99": (0.1, 0.9)}
"""Each figure's error that must hold in that share of the replays."""
WINNER = 0.95
"""The share of right winners."""
WINNER_DIFFERENCE = 0.05
_ALIKE = "capacity_sectors=234441648,max_hw_sectors_kib=1280"
"""Every recording fits every disk, and every disk takes I/Os as large as `_QUEUE` allows."""
_QUEUE = ":max_sectors_kb=1280,read_ahead_kb=128"
"""As in Linux to 6.16; later ones choose by the disk, and so the size of I/Os."""
AGAIN = "again"
"""In place of a way: the program once more."""
_AGAIN_SEED = 2
"""The seed of the platter's position then."""
_PREPARED_IN = ("wd10ezrx", "none")
_MOUNT = Path("/mnt")
_OPTIONS = "noinit_itable,no_prefetch_block_bitmaps"
"""As `blklab kernel run` mounts: nothing is read or written beside the program."""
_READS_MIN = 100
_PAUSE_S = 4
"""Before the part that counts, so that it can be found in a recording."""

_MANY = """
import os, random
rng = random.Random(7)
os.mkdir("tree")
for number in range({count}):
    if number % 40 == 0:
        os.makedirs(f"tree/{{number // 40}}")
    with open(f"tree/{{number // 40}}/{{number}}", "wb") as file:
        file.write(bytes(rng.choice((2, 4, 9, 30, 90)) * 1024))
os.sync()
"""
_READ_ALL = """
import glob, random
files = sorted(glob.glob("tree/*/*"))
random.Random(3).shuffle(files)
for name in files[:{count}]:
    open(name, "rb").read()
"""
_SQLITE = """
import sqlite3
base = sqlite3.connect("base.db")
base.execute("create table t(number integer primary key, text)")
for number in range({count}):
    with base:
        base.execute("insert into t(text) values (?)", ("x" * (number % 300),))
"""
_LOG = """
import os
log = os.open("log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
for number in range({count}):
    os.write(log, b"x" * (200 + number * 37 % 6000))
    os.fdatasync(log)
"""
_FILES = """
import os
os.mkdir("mail")
for number in range({count}):
    with open(f"mail/{{number}}", "wb") as file:
        file.write(bytes(1024 * (1 + number * 7 % 40)))
        os.fsync(file.fileno())
"""
_UPDATES = """
import os, random
rng = random.Random(11)
table = os.open("big", os.O_RDWR)
for number in range({count}):
    at = rng.randrange(4096) * 16384
    page = os.pread(table, 16384, at)
    os.pwrite(table, page[::-1], at)
    if number % 8 == 7:
        os.fdatasync(table)
"""
_SORT = """
import os
with open("big", "rb") as file:
    parts = [file.read(1 << 20) for _ in range({count})]
with open("sorted", "wb") as file:
    for part in sorted(parts, key=hash):
        file.write(part)
    file.flush()
    os.fsync(file.fileno())
"""
_SAVE = """
import os
place = os.open(".", os.O_RDONLY)
for number in range({count}):
    with open("new", "wb") as file:
        file.write(bytes(1024 * (3 + number * 11 % 60)))
        file.flush()
        os.fsync(file.fileno())
    os.rename("new", f"document{{number % 7}}")
    os.fsync(place)
"""
_LOOK_UP = """
import os, random
rng = random.Random(5)
table = os.open("big", os.O_RDONLY)
os.posix_fadvise(table, 0, 0, os.POSIX_FADV_RANDOM)
for _ in range({count}):
    os.pread(table, 4096, rng.randrange(16384) * 4096)
"""
_BIG = "dd if=/dev/zero of=big bs=1M count={count} status=none"
_COPY = "cp big copy; sync copy"


Place = tuple[str, str]
"""A disk and a scheduler."""


@dataclass(frozen=True)
class Program:
    """A program, and what it needs before."""

    name: str
    before: tuple[str, ...]
    """Commands of a shell, or lines of Python."""
    runs: tuple[str, ...]
    """The same, side by side: the load."""


@dataclass(frozen=True)
class Set:
    """Programs, each in all of these places."""

    programs: tuple[Program, ...]
    places: tuple[Place, ...]


SETS = {
    "first": Set(
        (
            Program("sqlite", (), (_SQLITE.format(count=150),)),
            Program("create a tree", (), (_MANY.format(count=600),)),
            Program("read a tree", (_MANY.format(count=600),), (_READ_ALL.format(count=300),)),
            Program("copy", (_BIG.format(count=96),), (_COPY,)),
            Program(
                "read a tree beside a copy",
                (_MANY.format(count=600), _BIG.format(count=96)),
                (_READ_ALL.format(count=200), _COPY),
            ),
            Program(
                "sqlite beside a copy",
                (_BIG.format(count=96),),
                (_SQLITE.format(count=60), _COPY),
            ),
        ),
        (
            ("wd10ezrx", "none"),
            ("wd10ezrx", "mq-deadline"),
            ("wd10ezrx", "bfq"),
            ("su800-128gb", "none"),
            ("su800-128gb", "mq-deadline"),
            ("su800-128gb", "bfq"),
        ),
    ),
    "second": Set(
        (
            Program(
                "unpack an archive",
                (_MANY.format(count=500), "tar cf tree.tar tree", "rm -r tree"),
                ("tar xf tree.tar; sync",),
            ),
            Program(
                "pack a tree", (_MANY.format(count=900),), ("tar cf tree.tar tree; sync tree.tar",)
            ),
            Program(
                "log beside a scan",
                (_BIG.format(count=200),),
                (_LOG.format(count=120), "cat big > /dev/null"),
            ),
            Program(
                "log beside a large file",
                (),
                (_LOG.format(count=120), _BIG.format(count=150) + "; sync big"),
            ),
        ),
        (
            ("desktop-5900rpm", "none"),
            ("desktop-5900rpm", "mq-deadline"),
            ("desktop-5900rpm", "bfq"),
            ("950pro-256gb", "none"),
            ("950pro-256gb", "kyber"),
            ("su800-128gb", "mq-deadline"),
        ),
    ),
    "held out": Set(
        (
            Program("files with fsync", (), (_FILES.format(count=80),)),
            Program("updates in place", (_BIG.format(count=64),), (_UPDATES.format(count=240),)),
            Program("sort a file", (_BIG.format(count=48),), (_SORT.format(count=48),)),
            Program(
                "updates beside a tree that is read",
                (_MANY.format(count=500), _BIG.format(count=64)),
                (_UPDATES.format(count=120), _READ_ALL.format(count=250)),
            ),
        ),
        (
            ("spinpoint-f1", "none"),
            ("spinpoint-f1", "mq-deadline"),
            ("spinpoint-f1", "bfq"),
            ("mx200-250gb", "mq-deadline"),
            ("mx200-250gb", "bfq"),
            ("950pro-256gb", "none"),
        ),
    ),
    "fourth": Set(
        (
            Program("save documents", (), (_SAVE.format(count=60),)),
            Program(
                "two copies",
                (_BIG.format(count=64), "cp big other"),
                (_COPY, "cp other second; sync second"),
            ),
            Program(
                "search a tree beside another that is made",
                (_MANY.format(count=500), "mv tree old"),
                ("grep -r nothing old || true", _MANY.format(count=300)),
            ),
            Program(
                "look up beside a log",
                (_BIG.format(count=64),),
                (_LOOK_UP.format(count=400), _LOG.format(count=80)),
            ),
        ),
        (
            ("wd10ezrx", "none"),
            ("wd10ezrx", "bfq"),
            ("desktop-5900rpm", "mq-deadline"),
            ("mx200-250gb", "mq-deadline"),
            ("mx200-250gb", "bfq"),
            ("950pro-256gb", "kyber"),
        ),
    ),
}
"""By name."""


@dataclass(frozen=True)
class Truth:
    """What a program did in one place."""

    span_ns: int
    """From its first I/O to the end of its last."""
    p99_ns: int
    op: str
    """The operation of `p99_ns`."""


@dataclass(frozen=True)
class Row:
    """A replay in the place of the truth, or the program once more; errors are shares of the
    truth."""

    program: str
    recorded: str
    replayed: str
    way: str
    span_ns: int
    true_span_ns: int
    span_off: float
    p99_off: float


def main(arguments: Sequence[str] | None = None) -> int:
    """See the head of the file."""
    parser = argparse.ArgumentParser(prog="python -m validation.programs", description=__doc__)
    parser.add_argument("--out", type=Path, help="write each row there, as JSON")
    parser.add_argument("--set", choices=SETS, default="first", help="programs and disks")
    parser.add_argument("--only", help="one program, by its name")
    parser.add_argument(
        "--keep",
        type=Path,
        help="keep the recordings there; those of an earlier call are not repeated",
    )
    asked = parser.parse_args(arguments)
    programs, places = SETS[asked.set].programs, SETS[asked.set].places
    chosen = [one for one in programs if asked.only in (None, one.name)]
    if reason := _why_not():
        print(f"skipped: {reason}")
        return 0
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="blklab-programs-") as temporary:
        place = asked.keep or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        for program in chosen:
            rows += list(_of_program(program, places, place))
            print(f"{program.name}: {2 * len(places)} runs", flush=True)
    shares = {way: _shares([row for row in rows if row.way == way]) for way in (*WAYS, AGAIN)}
    _print(rows, shares)
    if asked.out:
        document = {
            "set": asked.set,
            "bar": BAR,
            "shares": shares,
            "winners": {way: winners([row for row in rows if row.way == way]) for way in WAYS},
            "rows": [asdict(row) for row in rows],
        }
        write_whole(asked.out, json.dumps(document, indent=1) + "\n")
    good = all(shares["inferred"][figure] >= share for figure, (_, share) in BAR.items())
    right, of = winners([row for row in rows if row.way == "inferred"])
    return 0 if good and right >= WINNER * of else 1


def _why_not() -> str:
    kernels = blklab.list_kernels()
    if not kernels.kernels:
        return "no kernel is built: blklab kernel build"
    return kernels.refused


def _of_program(program: Program, places: Sequence[Place], directory: Path) -> Iterator[Row]:
    """The program once more in each place, and every replay of its recordings in other places
    than they come from."""
    files = [directory / f"{program.name} {' '.join(place)}.rec" for place in places]
    with ThreadPoolExecutor(2) as pool:
        _prepared(program, directory)
        run = functools.partial(_run, program, directory)
        truths = list(pool.map(run, places, files))
        others = [file.with_suffix(".again.rec") for file in files]
        again = pool.map(functools.partial(run, is_again=True), places, others)
        for place, truth, other in zip(places, truths, again, strict=True):
            where = " ".join(place)
            yield _row(program, where, where, AGAIN, truth, other)
        jobs = [
            pool.submit(_replay, program, one, file, other, truth, way)
            for one, file in zip(places, files, strict=True)
            for other, truth in zip(places, truths, strict=True)
            for way in WAYS
            if one != other
        ]
        for job in jobs:
            yield job.result()


def _line(code: str) -> str:
    quoted = code.strip().replace("'", "'\"'\"'")
    return f"python3 -c '{quoted}'" if code.startswith("\n") else code


def _prepared(program: Program, directory: Path) -> Path:
    """The data of a disk on which everything is that the program needs, in a file system."""
    data = directory / f"{program.name}.disk"
    if not data.exists():
        script = "\n".join(["set -e", *map(_line, program.before), "cd /", f"umount {_MOUNT}"])
        _in_guest(program, script, _PREPARED_IN, data, file_system="ext4", mount=_MOUNT)
    return data


def _run(
    program: Program, directory: Path, place: Place, out: Path, *, is_again: bool = False
) -> Truth:
    if out.exists():
        return _truth(out)
    at_once = [f"({_line(code)}) &" for code in program.runs]
    begin = [f"mount -t ext4 -o {_OPTIONS} {{disk}} {_MOUNT}", f"cd {_MOUNT}"]
    script = "\n".join(["set -e", *begin, f"sleep {_PAUSE_S}", *at_once, "wait"])
    whole, data = out.with_suffix(".whole"), out.with_suffix(".disk")
    # Its holes stay holes, and the mark of blklab's own files stays on it.
    copied = ("cp", "--sparse=always", "--preserve=xattr", _prepared(program, directory), data)
    subprocess.run(copied, check=True)
    try:
        _in_guest(program, script, place, data, record=whole, is_again=is_again)
    finally:
        data.unlink()
    gaps = _columns(whole, "gap_ns")["gap_ns"]
    begin_ns = int(np.cumsum(gaps)[np.flatnonzero(gaps > (_PAUSE_S - 1) * 10**9)[-1]])
    blklab.cut_trace(whole, out, from_ns=begin_ns)
    return _truth(out)


def _in_guest(
    program: Program,
    script: str,
    place: Place,
    data: Path,
    *,
    is_again: bool = False,
    **more: Any,
) -> None:
    disk, scheduler = place
    model = f"{disk}:{_ALIKE}"
    ran = blklab.run_in_kernel(
        ["sh", "-c", script],
        disk=disturbed(specs.disk(model)).label if is_again else model,
        scheduler=scheduler + _QUEUE,
        data=str(data),
        seed=_AGAIN_SEED if is_again else 1,
        **more,
    )
    if ran.exit_code:
        raise BlklabError(f"{program.name} on {disk}: exit code {ran.exit_code}")


def _columns(file: Path, *names: str) -> dict[str, Any]:
    table = pyarrow.ipc.open_stream(file).read_all()
    return {name: np.nan_to_num(table[name].to_numpy()) for name in names} | {
        "op": np.array(table["op"].to_pylist())
    }


def _truth(file: Path) -> Truth:
    found = _columns(file, "gap_ns", "q2i_ns", "i2d_ns", "d2c_ns")
    queued = np.cumsum(found["gap_ns"])
    took = found["q2i_ns"] + found["i2d_ns"] + found["d2c_ns"]
    op = "read" if np.count_nonzero(found["op"] == "read") >= _READS_MIN else "write"
    p99 = np.percentile(took[found["op"] == op], 99, method="inverted_cdf")
    return Truth(int((queued + took).max() - queued[0]), int(p99), op)


def _replay(
    program: Program, recorded: Place, file: Path, place: Place, truth: Truth, way: Way
) -> Row:
    disk, scheduler = place
    replayed = blklab.replay_trace(
        file, disk=f"{disk}:{_ALIKE}", scheduler=scheduler + _QUEUE, way=way
    )
    p99_ns = replayed.result.histogram(truth.op).percentiles([99])[0]
    found = Truth(replayed.result.duration_ns, int(p99_ns), truth.op)
    return _row(program, " ".join(recorded), " ".join(place), way, truth, found)


def _row(
    program: Program, recorded: str, replayed: str, way: str, truth: Truth, found: Truth
) -> Row:
    return Row(
        program.name,
        recorded,
        replayed,
        way,
        found.span_ns,
        truth.span_ns,
        found.span_ns / truth.span_ns - 1,
        found.p99_ns / truth.p99_ns - 1,
    )


def _shares(rows: Sequence[Row]) -> dict[str, float]:
    """The share of rows whose error is within the bar."""
    off = {"span": [row.span_off for row in rows], "p99": [row.p99_off for row in rows]}
    return {
        figure: float(np.mean(np.abs(off[figure]) <= most)) for figure, (most, _) in BAR.items()
    }


def winners(rows: Sequence[Row]) -> tuple[int, int]:
    """How often the scheduler with the shortest replay is the program's best, to within
    `WINNER_DIFFERENCE`, of the recordings and disks where schedulers differ by more, and how many
    those are."""
    right = of = 0
    groups = {(row.program, row.recorded, row.replayed.split()[0], row.way) for row in rows}
    for program, recorded, disk, way in sorted(groups):
        own = [
            row
            for row in rows
            if (row.program, row.recorded, row.way) == (program, recorded, way)
            and row.replayed.split()[0] == disk
        ]
        best = min(row.true_span_ns for row in own)
        if max(row.true_span_ns for row in own) <= best * (1 + WINNER_DIFFERENCE):
            continue
        of += 1
        chosen = min(own, key=lambda row: row.span_ns)
        right += chosen.true_span_ns <= best * (1 + WINNER_DIFFERENCE)
    return right, of


def _print(rows: Sequence[Row], shares: Mapping[str, Mapping[str, float]]) -> None:
    names = dict.fromkeys(row.program for row in rows)
    print(f"\n{'median error of':28}{'':10}{'time':>9}{'p99':>9}")
    for name in names:
        for way in shares:
            own = [row for row in rows if (row.program, row.way) == (name, way)]
            span, p99 = (
                100 * float(np.median(np.abs([getattr(row, key) for row in own])))
                for key in ("span_off", "p99_off")
            )
            print(f"{name:28}{way:10}{span:>8.1f}%{p99:>8.1f}%")
    for way, found in shares.items():
        parts = (
            f"{found[figure]:.0%} of {figure} within {most:.0%}"
            for figure, (most, _) in BAR.items()
        )
        right, of = winners([row for row in rows if row.way == way])
        of_winners = "" if way == AGAIN else f"; {right} of {of} winners right"
        print(f"{way}: {', '.join(parts)}{of_winners}")


if __name__ == "__main__":
    sys.exit(main())
