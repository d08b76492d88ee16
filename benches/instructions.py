"""Instructions per simulated I/O, compared with an earlier commit.

``python benches/instructions.py [--base COMMIT] [--only SCHEDULER] [--keep DIR] [--out FILE]``.
Both trees are built as by ``against.py``; its ratios of times scatter by more than 3 % on a shared
machine. Valgrind counts instructions instead, which are the same at each call. They do not include
cache misses and mispredicted branches, so a time may still differ.

The loads are direct random reads on a fast and on a slow disk, and four processes that read, write
and sync through the page cache of a third. Each case runs twice, with `IOS` I/Os; the difference is
the cost of an I/O without start-up and the descriptions of disk and result. All cases of a tree are
forks of one process, which has imported all modules.

A case has lost if it takes more than `LOSS` more instructions than the base; then the exit code is
1. ``--keep`` keeps callgrind's file of each case's longer run, for ``callgrind_annotate``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from against import LOSS, built, commit_of
from blklab.domain.core import schedulers

FAST, SLOW, CACHED = "optane-900p", "wd10ezrx", "su800-128gb"
IOS = (20_000, 50_000)
NO_VALGRIND = "instructions not counted: valgrind is missing: apt-get install valgrind"

_DIRECT = """
[randread]
ioengine=libaio
direct=1
rw=randread
bs=4k
numjobs=4
iodepth=8
size=1G
norandommap
number_ios={each}
"""
_BUFFERED = """
[global]
ioengine=psync
size=4G
number_ios={each}
end_fsync=1
[in-order]
rw=write
bs=64k
[scattered]
rw=randwrite
bs=4k
[reads]
rw=read
bs=64k
[synced]
rw=rw
bs=16k
fsync=32
"""
_JOBS = {FAST: _DIRECT, SLOW: _DIRECT, CACHED: _BUFFERED}
"""Four processes each."""
_RUN = """
import json, os, sys
import blklab
place, jobs, cases = sys.argv[1:]
jobs = json.loads(jobs)
assert blklab.__file__.startswith(place), blklab.__file__
small = "[a]\\nrw=read\\nsize=64k\\n"
blklab.simulate(small, disk="optane-900p", scheduler="none")
for name, scheduler, disk, ios in json.loads(cases):
    child = os.fork()
    if not child:
        job = jobs[disk].replace("{each}", str(ios // 4))
        blklab.simulate(job, disk=disk, scheduler=scheduler)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{scheduler} on {disk} failed")
    print(child, name, flush=True)
"""

_NAMES = """
from blklab.domain.core import schedulers
print(*(row["name"] if isinstance(row, dict) else row.name for row in schedulers()))
"""
"""Names in the core of any commit; earlier ones have dictionaries."""

_ENVIRONMENT = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
"""Random effects and waiting threads would count, too."""

Case = tuple[str, str]
"""Scheduler, disk."""


@dataclass(frozen=True)
class Cost:
    """The counts of one case."""

    case: Case
    before: float
    """Instructions for each I/O of the base."""
    here: float

    @property
    def ratio(self) -> float:
        """Above 1: more than the base."""
        return self.here / self.before

    @property
    def lost(self) -> bool:
        """Whether there are too many."""
        return self.ratio > 1 + LOSS


def cases(only: str | None = None, known: Collection[str] | None = None) -> list[Case]:
    """Each scheduler on the fast and on the slow disk, and through the page cache of a third; only
    those that the base knows, too."""
    names = [row.name for row in schedulers() if known is None or row.name in known]
    return [(name, disk) for name in names if only in (None, name) for disk in _JOBS]


def known_in(tree: Path) -> list[str]:
    """The schedulers of the blklab in that directory."""
    done = subprocess.run(
        [sys.executable, "-c", _NAMES],
        env=os.environ | {"PYTHONPATH": str(tree)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout.split()


def total(file: Path) -> int:
    """Callgrind's count, from its file."""
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("totals: "):
            return int(line.split()[1])
    raise ValueError(f"{file}: no totals")


def counted(
    tree: Path, several: Sequence[Case], ios: tuple[int, int] = IOS, keep: Path | None = None
) -> list[float]:
    """Instructions for each I/O of each case, of the blklab in that directory. A case may be there
    twice."""
    few, many = ios
    rows = [
        (f"{place}-{count}", scheduler, disk, count)
        for place, (scheduler, disk) in enumerate(several)
        for count in ios
    ]
    with tempfile.TemporaryDirectory(prefix="blklab-instructions-") as scratch:
        done = subprocess.run(
            ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={scratch}/%p",
             sys.executable, "-c", _RUN, str(tree), json.dumps(_JOBS), json.dumps(rows)],
            env=os.environ | _ENVIRONMENT | {"PYTHONPATH": str(tree)},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        files = {
            name: Path(scratch) / pid for pid, name in map(str.split, done.stdout.splitlines())
        }
        totals = {name: total(file) for name, file in files.items()}
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            for place, (scheduler, disk) in enumerate(several):
                shutil.copy(files[f"{place}-{many}"], keep / f"{scheduler}-{disk}")
    return [
        (totals[f"{place}-{many}"] - totals[f"{place}-{few}"]) / (many - few)
        for place in range(len(several))
    ]


def verdict(costs: Sequence[Cost]) -> int:
    """Print all of them; 1 if one has lost."""
    for one in costs:
        scheduler, disk = one.case
        print(
            f"{'LOST' if one.lost else 'kept':4} {one.ratio:6.3f} (at most {1 + LOSS:g}): "
            f"{scheduler} on {disk}, {one.here:,.0f} instructions an I/O, {one.before:,.0f} before"
        )
    return any(one.lost for one in costs)


def main() -> int:
    """See the head of the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", default="HEAD~1", help="a commit; HEAD of what is not committed")
    parser.add_argument("--only", metavar="SCHEDULER", help="only cases of this scheduler")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep callgrind's files there")
    parser.add_argument("--out", type=Path, help="also write the counts there, as JSON")
    options = parser.parse_args()
    several = cases(options.only)
    if not several:
        sys.exit(f"benches/instructions.py: --only {options.only}: no such scheduler")
    if not shutil.which("valgrind"):
        print(NO_VALGRIND)
        return 0
    base = built(commit_of(options.base))
    known = known_in(base)
    if missing := {name for name, _ in several if name not in known}:
        print(f"not in {options.base}, so not compared: {', '.join(sorted(missing))}")
        several = cases(options.only, known)
    before, here = (
        counted(tree, several, keep=options.keep and options.keep / name)
        for tree, name in ((base, "before"), (built(None), "here"))
    )
    costs = [Cost(*row) for row in zip(several, before, here, strict=True)]
    if options.out:
        rows = [{"case": one.case, "before": one.before, "here": one.here} for one in costs]
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return verdict(costs)


if __name__ == "__main__":
    sys.exit(main())
