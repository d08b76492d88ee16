"""Speed and size of blklab as a whole, each figure from separate processes.

``python benches/whole_process.py [--rounds N] [--out FILE.json]``. Figures that take a second or
less are measured once in each round, one after the other, so that other activity on the machine
affects all alike; the median over the rounds counts. ``make bench`` runs this after the core's own
benchmarks; ``docs/data/bench.json`` is the last output of ``--out``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

import figures
from figures import BLKLAB, Measure

_ROUNDS = 9
_COMPARES = 3
"""The main job takes many seconds: fewer rounds of it."""

_DEPTH = 32

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
io_size={bytes}
"""

_RATE = """
import sys, time
import blklab.rigs.sim
import blklab.api.simulate
from blklab import _core
job, disk, scheduler = sys.argv[1:]
core_s, simulate = 0.0, _core.simulate
def timed(*arguments):
    global core_s
    start = time.perf_counter()
    run = simulate(*arguments)
    core_s = time.perf_counter() - start
    return run
blklab.rigs.sim._core.simulate = timed
start = time.perf_counter()
result = blklab.simulate(job, disk=disk, scheduler=scheduler)
whole_s = time.perf_counter() - start
import resource
peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(sum(job.read.ios for job in result.jobs), core_s, whole_s, peak_kib)
"""

_SPREAD = """
import sys, time
from blklab.domain.events import Nowhere
from blklab.execute import Local, carry_out
from blklab.domain.comparison import plan
from blklab.domain import specs
from blklab.domain.comparison import Setup
from blklab.rigs import rig
disks, loads, schedulers = ["su800-128gb"], ["randread-qd32"], ["none", "mq-deadline", "kyber"]
setup = Setup(tuple(map(specs.disk, disks)), tuple(map(specs.workload, loads)),
              tuple(map(specs.scheduler, schedulers)), 24, 1)
sim = rig("sim")
start = time.perf_counter()
carry_out(plan(setup), sim, Local(int(sys.argv[1]), sim), lambda _: None, Nowhere(""))
print(time.perf_counter() - start)
"""


@dataclass(frozen=True)
class _Run:
    ios: int
    core_s: float
    whole_s: float
    peak_kib: int


def _run(ios: int, disk: str, scheduler: str, processes: int = 1) -> _Run:
    """32 I/Os in flight, of one process or of several together."""
    each = -(-ios // processes) * 4096
    job = _JOB.format(processes=processes, depth=_DEPTH // processes, bytes=each)
    arguments = [job, disk, scheduler]
    done, core_s, whole_s, peak_kib = _python(_RATE, *arguments).split()
    if int(done) < ios:
        raise RuntimeError(f"{disk}, {scheduler}: {done} I/Os instead of {ios}")
    return _Run(int(done), float(core_s), float(whole_s), int(peak_kib))


def _python(script: str, *arguments: str) -> str:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def _wall_s(*command: str) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def _rate(disk: str, scheduler: str, goal_m: float, rounds: int, processes: int = 1) -> Measure:
    def once() -> float:
        run = _run(3_000_000, disk, scheduler, processes)
        return run.ios / run.whole_s / 1e6

    of = f" of {processes} processes" if processes > 1 else ""
    what = f"4 KiB random reads, depth {_DEPTH}{of}, `{scheduler}` on `{disk}`, one core"
    return Measure(what, "M I/O/s", goal_m, True, once, rounds)


def _memory_mib() -> float:
    return _run(100_000_000, "optane-900p", "none").peak_kib / 1024


def _python_adds_ms() -> float:
    run = _run(1_000, "optane-900p", "none")
    return (run.whole_s - run.core_s) * 1e3


def _efficiency() -> float:
    return float(_python(_SPREAD, "1")) / (2 * float(_python(_SPREAD, "2")))


def _compare_s() -> float:
    with tempfile.TemporaryDirectory() as directory:
        return _wall_s(BLKLAB, "compare", "--out", directory)


def measures(rounds: int) -> list[Measure]:
    """All measurements here, with their goals."""
    compares = min(rounds, _COMPARES)
    found = [
        _rate("950pro-256gb", "none", 5, rounds),
        _rate("optane-900p", "none", 5, rounds),
        _rate("su800-128gb", "mq-deadline", 3, rounds),
        _rate("su800-128gb", "kyber", 3, rounds),
        _rate("wd10ezrx", "mq-deadline", 1.5, rounds),
        _rate("wd10ezrx", "cfq", 1, rounds, processes=8),
        _rate("wd10ezrx", "bfq", 1, rounds, processes=8),
        _rate("su800-128gb", "bfq", 1.5, rounds, processes=8),
        Measure("peak memory of a process that simulates 100 million I/Os", "MiB", 100, False,
                _memory_mib, 1),
        Measure("what Python adds to a run", "ms", 50, False, _python_adds_ms, rounds),
        Measure("`blklab --help`", "ms", 150, False,
                lambda: _wall_s(BLKLAB, "--help") * 1e3, rounds),
    ]  # fmt: skip
    if len(os.sched_getaffinity(0)) > 1:
        found += [
            Measure("efficiency of the runs of a comparison on two cores", "of 1", 0.9, True,
                    _efficiency, rounds),
            Measure("`blklab compare`, the main job", "s", 20, False, _compare_s, compares),
        ]  # fmt: skip
    else:
        print("only one CPU: nothing measured on two", file=sys.stderr)
    return found


if __name__ == "__main__":
    sys.exit(figures.main(__doc__, _ROUNDS, measures))
