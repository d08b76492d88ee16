"""The overhead of the live rig over fio, and of tracing each request.

``python benches/live_rig.py [--rounds N] [--out FILE.json]``, as root. On the fastest device that
every machine has: a loop device over a file in memory. Each round runs the same job with fio alone
(twice, for the difference between equal runs), under the rig, and under the rig with
``--trace-latency``; every other round in the opposite order. fio's counts are compared within a
round. ``docs/data/live-rig.json`` is the last output of ``--out``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import figures
from blklab.base.catalogue import Entry
from blklab.domain.experiment import Experiment, SchedulerSpec
from blklab.rigs.live import cache
from blklab.rigs.live.program import Ended, Program
from blklab.rigs.live.rig import LiveRig
from figures import Figure

_ROUNDS = 30
_MEMORY = Path("/dev/shm")
_SIZE_BYTES = 256 << 20
_JOB = (
    "[a]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=32\nsize=256m\n"
    "runtime=5\ntime_based\n"
)
_RUNTIME_S = 5.0
_WHAT = "random reads of 4 KiB at depth 32 from a loop device over memory"
_NICE = -20
"""The highest priority, which keeps out much of the machine's other activity."""


@contextlib.contextmanager
def loop_device() -> Iterator[str]:
    """The node of a loop device over a file in memory, written in full."""
    with tempfile.NamedTemporaryFile(dir=_MEMORY, prefix="blklab-bench-") as file:
        file.write(os.urandom(_SIZE_BYTES))
        file.flush()
        words = ["losetup", "--find", "--show", file.name]
        node = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
        try:
            yield node
        finally:
            subprocess.run(["losetup", "--detach", node], check=True)


@dataclass(frozen=True)
class Rate:
    """fio's counts of one run."""

    ios_per_s: float
    cpu_ns_per_io: float
    """CPU time of fio itself; other programs hardly affect it."""


def between(one: Rate, other: Rate) -> Rate:
    """The geometric means."""
    return Rate(
        math.sqrt(one.ios_per_s * other.ios_per_s),
        math.sqrt(one.cpu_ns_per_io * other.cpu_ns_per_io),
    )


class _Bench:
    """Runs on one device."""

    def __init__(self, node: str) -> None:
        self._node = node
        self.between_s: list[float] = []
        self.cpu_percent: dict[str, list[float]] = {"rig": [], "traced": []}
        self.own_start_s: list[float] = []

    def plain(self) -> Rate:
        """fio alone, after the same cache protocol."""
        with tempfile.TemporaryDirectory() as directory:
            job = Path(directory) / "job.fio"
            job.write_text(f"{_JOB}filename={self._node}\nrandseed=1\nrandrepeat=0\n")
            cache.make_cold([])
            start_s = time.monotonic()
            done = subprocess.run(
                ["fio", "--eta=never", "--output-format=json+", str(job)],
                check=True,
                capture_output=True,
                text=True,
            )
            self.own_start_s.append(time.monotonic() - start_s - _RUNTIME_S)
        [job] = json.loads(done.stdout)["jobs"]
        busy_ns = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] * 1e6
        return Rate(job["read"]["iops"], busy_ns / job["read"]["total_ios"])

    def of_rig(self, rig: LiveRig, cpu_percent: list[float]) -> Rate:
        """The same under the rig; `cpu_percent` receives our own use of a CPU."""
        one = Experiment(
            Entry("job", Path("job.fio"), _JOB), rig.find_disk(self._node), SchedulerSpec("none"), 1
        )
        in_cache_s = own_cpu_s = 0.0
        make_cold, run = cache.make_cold, Program.run

        def timed_cold(files: Sequence[Path]) -> None:
            nonlocal in_cache_s
            start_s = time.monotonic()
            make_cold(files)
            in_cache_s += time.monotonic() - start_s

        def timed_run(*arguments: Any) -> Ended:
            nonlocal own_cpu_s
            start_s = time.process_time()
            ended = run(*arguments)
            own_cpu_s += time.process_time() - start_s
            return ended

        with (
            rig.prepared([one], lambda _: None),
            mock.patch.object(cache, "make_cold", timed_cold),
            mock.patch.object(Program, "run", timed_run),
        ):
            start_s = time.monotonic()
            result = rig.run(one)
            wall_s = time.monotonic() - start_s
        cpu_percent.append(100 * own_cpu_s / (result.duration_ns / 1e9))
        self.between_s.append(wall_s - in_cache_s - result.duration_ns / 1e9)
        [job] = result.jobs
        busy_ns = job.user_ns + job.system_ns
        return Rate(job.read.ios * 1e9 / job.read.runtime_ns, busy_ns / job.read.ios)


_COMPARED = (
    ("fio alone beside itself", "plain", "first", None),
    ("the rig beside fio alone", "rig", "alone", 1.0),
    ("--trace-latency beside the rig without", "traced", "rig", None),
)
"""Label, run, reference run, and the allowed loss in per cent."""


def measured(rounds: int) -> list[Figure]:
    """All figures, a value for each round."""
    rigs = {"rig": LiveRig(), "traced": LiveRig(trace_latency="yes")}
    chance = random.Random(1)
    seen: list[dict[str, Rate]] = []
    with loop_device() as node:
        bench = _Bench(node)
        runs: dict[str, Callable[[], Rate]] = {
            "first": bench.plain,
            "plain": bench.plain,
            "rig": lambda: bench.of_rig(rigs["rig"], bench.cpu_percent["rig"]),
            "traced": lambda: bench.of_rig(rigs["traced"], bench.cpu_percent["traced"]),
        }
        order = list(runs)
        for number in range(rounds):
            order = order[::-1] if number % 2 else chance.sample(list(runs), len(runs))
            rates = {name: runs[name]() for name in order}
            seen.append(rates | {"alone": between(rates["first"], rates["plain"])})
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
    found = []
    for what, name, beside, goal in _COMPARED:
        less = [100 * (1 - one[name].ios_per_s / one[beside].ios_per_s) for one in seen]
        more = [100 * (one[name].cpu_ns_per_io / one[beside].cpu_ns_per_io - 1) for one in seen]
        found.append(Figure(f"{what}: I/Os a second", "% less", goal, False, tuple(less)))
        found.append(Figure(f"{what}: CPU of an I/O", "% more", goal, False, tuple(more)))
    used = bench.cpu_percent
    between_runs = "between two runs, beyond emptying the cache, fio's own start and end included"
    rate = [one["plain"].ios_per_s for one in seen]
    return [
        Figure(f"fio alone, {_WHAT}", "I/O/s", None, True, tuple(rate)),
        *found,
        Figure("the rig itself while fio runs", "% of a CPU", 1.0, False, tuple(used["rig"])),
        Figure("the same with --trace-latency", "% of a CPU", None, False, tuple(used["traced"])),
        Figure(between_runs, "s", 1.0, False, tuple(bench.between_s)),
        Figure("start and end of fio alone", "s", None, False, tuple(bench.own_start_s)),
    ]


def main() -> int:
    """Measure, print, store; 1 if a goal is certainly missed by more than `figures.LOSS`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parser.add_argument("--out", type=Path, help="also write the figures there, as JSON")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("benches/live_rig.py: needs root, for a loop device and to set its scheduler")
    machine = figures.machine() | {"nice": os.nice(_NICE)}
    found = measured(options.rounds)
    intervals = figures.print_with_intervals(found)
    if options.out:
        where = machine | {"load_after": round(os.getloadavg()[0], 1)}
        figures.keep(options.out, options.rounds, where, found, {"intervals": intervals})
    # If the interval of a figure contains the goal, the answer is not known.
    sure = [
        one
        for one in found
        if one.goal is None
        or not (intervals[one.what]["low"] <= one.goal <= intervals[one.what]["high"])
    ]
    return figures.exit_code(sure)


if __name__ == "__main__":
    sys.exit(main())
