"""The simulator's speed compared with an earlier commit and with fio's own loop, in one run.

``python benches/against.py [--base COMMIT] [--rounds N] [--out FILE.json]``. The base, by default
the previous commit, is built in ``target/against`` with the flags of this tree, without a profile,
because each build would need its own. In each round every case runs once with each of the two,
which take turns to go first, and fio runs once: so other activity on the machine affects all alike.
Only ratios count.

The main job, ``blklab compare``, is compared with the base's as well, with one repeat: its time by
run, since a base may have other workloads.

A case has lost if the median ratio is below 1 - `LOSS` and the interval of the median lies below
1; then the exit code is 1. Here fio does no I/O either (``ioengine=null``): its time is the
bookkeeping of an I/O in a well-maintained load generator in C, on this machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.experiment.statistics import Interval, median_interval

ROOT = Path(__file__).parents[1]
WORK = ROOT / "target/against"
LOSS = 0.03
"""The slowdown against the base that counts as a loss."""
_ROUNDS = 9
_ROUNDS_MIN = 6
_IOS = 1_500_000

CASES = (
    ("none", "950pro-256gb", 1, 0.5),
    ("none", "optane-900p", 1, 0.5),
    ("mq-deadline", "su800-128gb", 1, 0.3),
    ("kyber", "su800-128gb", 1, 0.3),
    ("bfq", "su800-128gb", 8, 0.15),
    ("mq-deadline", "wd10ezrx", 1, 0.15),
    ("cfq", "wd10ezrx", 8, 0.1),
    ("bfq", "wd10ezrx", 8, 0.1),
)
"""Scheduler, disk, number of processes that share 32 I/Os in flight, and the least share of fio's
rate."""

_JOB = """
[randread]
ioengine=libaio
direct=1
rw=randread
bs=4k
numjobs={processes}
iodepth={depth}
size=1G
norandommap
number_ios={ios}
"""
_RUN = """
import sys, time
import blklab
place, job, disk, scheduler = sys.argv[1:]
assert blklab.__file__.startswith(place), blklab.__file__
blklab.simulate("[a]\\nrw=read\\nsize=1M\\n", disk=disk, scheduler=scheduler)
start = time.perf_counter()
result = blklab.simulate(job, disk=disk, scheduler=scheduler)
print(sum(job.read.ios for job in result.jobs) / (time.perf_counter() - start))
"""


@dataclass(frozen=True)
class Ratio:
    """The ratio of two rates that were measured round by round."""

    what: str
    values: tuple[float, ...]
    least: float
    """The lower bound of the median."""
    limit: float
    """The bound for the whole interval of a certain loss."""

    @property
    def interval(self) -> Interval:
        """The median's."""
        return median_interval(self.values)[0]

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.values)

    @property
    def lost(self) -> bool:
        """Whether it is certainly too slow."""
        return self.median < self.least and self.interval.high < self.limit


def verdict(ratios: Sequence[Ratio]) -> int:
    """Print all of them; 1 if one has lost."""
    for one in ratios:
        low, high = one.interval.low, one.interval.high
        print(
            f"{'LOST' if one.lost else 'kept':4} {one.median:6.3f} ({low:.3f} to {high:.3f}; at "
            f"least {one.least:g}): {one.what}"
        )
    return any(one.lost for one in ratios)


def commit_of(base: str) -> str:
    """The full hash of a commit; ends the program if it does not exist."""
    named = subprocess.run(
        ["git", "rev-parse", "--verify", f"{base}^{{commit}}"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    if named.returncode:
        sys.exit(f"{sys.argv[0]}: no commit '{base}' here: is this a full clone?")
    return named.stdout.strip()


def built(commit: str | None) -> Path:
    """A directory for PYTHONPATH with blklab of that commit (of this tree for None) and its
    core."""
    name = "here" if commit is None else commit
    place, target = WORK / name, WORK / "target"
    sources = ROOT
    if commit is not None:
        sources = WORK / f"{name}.source"
        if not sources.exists():
            sources.mkdir(parents=True)
            packed = subprocess.run(
                ["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE
            )
            subprocess.run(["tar", "x"], cwd=sources, input=packed.stdout, check=True)
    # The two packages have the same name: in one place they would replace each other.
    target /= name
    subprocess.run(
        ["cargo", "build", "--quiet", "--release", "-p", "blklab-py", "--target-dir", target],
        cwd=sources,
        check=True,
    )
    shutil.rmtree(place, ignore_errors=True)
    leave = shutil.ignore_patterns("*.so", "__pycache__", "bin")
    shutil.copytree(sources / "python/blklab", place / "blklab", ignore=leave)
    shutil.copy(target / "release/lib_core.so", place / "blklab/_core.abi3.so")
    return place


def rate(place: Path, scheduler: str, disk: str, processes: int) -> float:
    """Simulated I/Os per second of this machine."""
    job = _JOB.format(processes=processes, depth=32 // processes, ios=_IOS // processes)
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(place), job, disk, scheduler],
        env=os.environ | {"PYTHONPATH": str(place)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return float(done.stdout)


def fio_rate() -> float:
    """The rate of fio itself, without I/O."""
    words = "--name=a --ioengine=null --rw=randread --bs=4k --iodepth=32 --size=1G --norandommap"
    done = subprocess.run(
        ["fio", *words.split(), f"--number_ios={4 * _IOS}", "--output-format=json"],
        check=True,
        stdout=subprocess.PIPE,
    )
    return float(json.loads(done.stdout)["jobs"][0]["read"]["iops"])


def runs_a_second(place: Path) -> float:
    """The main job's runs per second, with one repeat."""
    with tempfile.TemporaryDirectory() as directory:
        store = Path(directory) / "store.db"
        begun = time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "blklab", "compare", "--repeats", "1", "--out", directory],
            env=os.environ | {"PYTHONPATH": str(place), "BLKLAB_STORE": str(store)},
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        took = time.monotonic() - begun
        with contextlib.closing(sqlite3.connect(store)) as kept:
            (runs,) = kept.execute("select count(*) from run").fetchone()
    return float(runs) / took


def measured(base: str, rounds: int, cases: Sequence[tuple[str, str, int, float]]) -> list[Ratio]:
    """Each case compared with the base, and with fio if it is installed."""
    before, here = built(base), built(None)
    fio = shutil.which("fio") is not None
    if not fio:
        print("not compared with fio: it is not installed", file=sys.stderr)
    beside_base: list[list[float]] = [[] for _ in cases]
    beside_fio: list[list[float]] = [[] for _ in cases]
    of_main_job: list[float] = []
    for number in range(rounds):
        own = fio_rate() if fio else 1.0
        order = [here, before] if number % 2 else [before, here]
        speeds = {place: runs_a_second(place) for place in order}
        of_main_job.append(speeds[here] / speeds[before])
        for (scheduler, disk, processes, _), base_ratios, fio_ratios in zip(
            cases, beside_base, beside_fio, strict=True
        ):
            order = [here, before] if number % 2 else [before, here]
            rates = {place: rate(place, scheduler, disk, processes) for place in order}
            base_ratios.append(rates[here] / rates[before])
            fio_ratios.append(rates[here] / own)
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    names = [
        f"{scheduler} on {disk}" + (f", {processes} processes" if processes > 1 else "")
        for scheduler, disk, processes, _ in cases
    ]
    found = [
        Ratio(f"{name}, beside {base[:10]}", tuple(values), 1 - LOSS, 1.0)
        for name, values in zip(names, beside_base, strict=True)
    ]
    found.append(Ratio(f"the main job, beside {base[:10]}", tuple(of_main_job), 1 - LOSS, 1.0))
    if fio:
        found += [
            Ratio(f"{name}, beside fio's null engine", tuple(values), least, least)
            for name, values, (*_, least) in zip(names, beside_fio, cases, strict=True)
        ]
    return found


def main() -> int:
    """See the head of the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", default="HEAD~1", help="a commit; HEAD of what is not committed")
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parser.add_argument("--only", help="only cases of this scheduler")
    parser.add_argument("--out", type=Path, help="also write the ratios there, as JSON")
    options = parser.parse_args()
    if options.rounds < _ROUNDS_MIN:
        sys.exit(f"benches/against.py: --rounds {options.rounds}: at least {_ROUNDS_MIN}; of fewer "
                 "values a median has no 95 % interval")  # fmt: skip
    cases = [case for case in CASES if options.only in (None, case[0])]
    found = measured(commit_of(options.base), options.rounds, cases)
    if options.out:
        rows = [{"what": one.what, "least": one.least, "values": one.values} for one in found]
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return verdict(found)


if __name__ == "__main__":
    sys.exit(main())
