"""How runs on a cluster grow with its workers: ``python benches/cluster.py [--out FILE]``.

All processes are on this machine. Runs that compute share its CPUs, so what many workers do is
measured with stand-ins: a run that sleeps for a fixed time and returns the figures of a real one.
All else is as in `blklab compare --on`: tasks, messages, batches, and the store.

* *efficiency*: the shortest possible time (runs x time of a run / workers), of the measured one.
* *overhead*: CPU time of the calling process for each run.
* *plan*: the memory and the time of a plan that is walked through once.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from blklab.domain import specs
from blklab.domain.comparison import Setup, plan
from blklab.domain.events import Nowhere
from blklab.execute import carry_out, opened
from blklab.experiment.describe import describe
from blklab.rigs import rig as rig_of
from blklab.store import keep, place
from blklab.store.opening import open_store
from blklab.store.request import Request, fingerprints

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.dask_processes import Processes, processes

STAND_IN = """
import time
from blklab.rigs import sim
def run(self, experiment, real=sim.SimRig.run, first={{}}):
    begun_s = time.monotonic()
    if "result" not in first:
        first["result"] = real(self, experiment)
    time.sleep(max(0.0, {seconds} - (time.monotonic() - begun_s)))
    return first["result"]
sim.SimRig.run = run
"""
JOB = "[a]\nrw=randread\ndirect=1\nsize=64k\n"
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")


@dataclass(frozen=True)
class Row:
    """A measurement."""

    workers: int
    runs: int
    run_ms: float
    wall_s: float
    efficiency: float
    overhead_ms: float
    cluster_ms: float
    """CPU time of scheduler and workers for each run."""
    load: float
    """Processes that wanted a CPU meanwhile, this bench's own included (load average of a
    minute)."""


def main() -> None:
    """Prints a row for each number of workers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--ms", type=float, default=20.0, help="time of a run")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 8])
    parser.add_argument("--planned", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = []
    for workers in given.workers:
        runs = max(400, given.runs * workers // max(given.workers))
        rows.append(measured(workers, runs // 4 * 4, given.ms / 1e3))
        one = rows[-1]
        print(
            f"{one.workers} workers, {one.runs} runs of {one.run_ms:.0f} ms: {one.wall_s:.1f} s, "
            f"efficiency {one.efficiency:.2f}, overhead {one.overhead_ms:.2f} ms a run, "
            f"{one.cluster_ms:.2f} ms in scheduler and workers, "
            f"load {one.load:.0f} on {os.cpu_count()} CPUs",
            flush=True,
        )
    planned = planning(given.planned)
    print(f"{planned['runs']} runs planned: {planned['seconds']:.0f} s, {planned['mib']:.0f} MiB")
    if given.out:
        document = {"cpus": os.cpu_count(), "rows": [asdict(row) for row in rows], "plan": planned}
        given.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def measured(workers: int, runs: int, seconds: float) -> Row:
    """These runs on so many workers, stored as by `blklab compare`."""
    with tempfile.TemporaryDirectory(prefix="blklab-bench-") as directory:
        here = Path(directory)
        (here / "job.fio").write_text(JOB)
        with _cluster(here, workers, seconds) as made, opened(made.url, 1, print) as where:
            setup = _setup(here / "job.fio", runs)
            rig = rig_of("sim")
            store = open_store(place.find(str(here / "store.db")), durable=False, tell=print)
            asked = Request(setup, "sim", {}, "both", "", fingerprints(setup))
            keeper = keep.begin(store, describe(setup, rig), asked, runs)
            # The workers have their first result.
            carry_out(plan(_setup(here / "job.fio", 8 * workers)), rig, where.executor(rig),
                      lambda _: None, Nowhere(""))  # fmt: skip
            begun_s, cpu_s, cluster_s = time.monotonic(), time.process_time(), _cpu_s(made)
            found = carry_out(plan(setup), rig, where.executor(rig), lambda _: None, keeper)
            wall_s, cpu_s = time.monotonic() - begun_s, time.process_time() - cpu_s
            cluster_s = _cpu_s(made) - cluster_s
            assert len(found) == runs and not keeper.lost
            store.close()
    best_s = runs * seconds / workers
    return Row(
        workers,
        runs,
        seconds * 1e3,
        wall_s,
        best_s / wall_s,
        cpu_s / runs * 1e3,
        cluster_s / runs * 1e3,
        os.getloadavg()[0],
    )


def planning(runs: int) -> dict[str, float]:
    """A process that plans so many runs, one after the other."""
    code = (
        "import sys;"
        "sys.path.insert(0, 'benches'); import cluster; print(cluster.walked(int(sys.argv[1])))"
    )
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code, str(runs)], capture_output=True, text=True, check=True,
        cwd=root,
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout)
    return found


def walked(runs: int) -> str:
    """Plans, and returns how much memory that took beyond a plan of few runs."""
    with tempfile.TemporaryDirectory(prefix="blklab-bench-") as directory:
        job = Path(directory) / "job.fio"
        job.write_text(JOB)
        sum(1 for _ in plan(_setup(job, 400)))
        before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begun_s = time.monotonic()
        count = sum(1 for _ in plan(_setup(job, runs)))
        seconds = time.monotonic() - begun_s
    mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib) / 1024
    return json.dumps({"runs": count, "seconds": seconds, "mib": mib})


def _setup(job: Path, runs: int) -> Setup:
    return Setup(
        (specs.disk("950pro-256gb"),),
        (specs.workload(job),),
        tuple(map(specs.scheduler, SCHEDULERS)),
        runs // len(SCHEDULERS),
        1,
        vary_disk=True,
    )


def _cpu_s(made: Processes) -> float:
    """CPU time of scheduler and workers, so far."""
    ticks = 0
    for process in (made.scheduler, *made.workers.values()):
        assert process is not None
        stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8")
        ticks += sum(map(int, stat.rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def _cluster(directory: Path, workers: int, seconds: float) -> Iterator[Processes]:
    """A Dask scheduler and its workers; a run on them only sleeps."""
    with processes(directory) as made:
        for number in range(workers):
            made.start_worker(f"w{number}", STAND_IN.format(seconds=seconds))
        yield made


if __name__ == "__main__":
    main()
