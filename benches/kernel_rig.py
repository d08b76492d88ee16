"""The speed of the kernel rig, the overhead of a guest, and the examples of the documentation.

``python benches/kernel_rig.py [--rounds N] [--kernel NAME] [--out FILE.json]``. Needs a kernel
(``blklab kernel build``), fio, and for the examples e2fsprogs and blktrace. ``make bench`` runs
it; ``docs/data/kernel-rig.json`` is the last output of ``--out``, and the documentation takes its
figures and outputs from there.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import blklab
import figures
from blklab.domain import specs
from blklab.domain.result import Result
from blklab.rigs.kernel import cache, program, view
from figures import Measure

_ROUNDS = 3

_READS = "[a]\nrw=randread\nbs=4k\ndirect=1\nsize=1g\n"
_JOBS = {
    "disk": _READS + "time_based\nruntime=20\n",
    "fast": _READS + "ioengine=libaio\niodepth=32\nnumber_ios={ios}\n",
    "batched": _READS + "ioengine=io_uring\niodepth=32\niodepth_batch=16\n"
    "iodepth_batch_complete_min=16\niodepth_batch_complete_max=16\nnumber_ios={ios}\n",
    "one": _READS + "ioengine=libaio\nnumber_ios=20000\n",
}
_FAST_IOS = {"native": 200_000, "fio": 100_000}
_READS_OF_CLOCK = 1000
_CLOCK = (
    "import time; t = [time.monotonic_ns() for _ in range({n} + 1)]; print((t[-1] - t[0]) / {n})"
)

FILES = {
    "j.fio": "[j]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8\nsize=4g\n"
    "runtime=2\ntime_based\n"
}
"""The files of the examples' directory."""


@dataclass(frozen=True)
class Example:
    """Commands with output in the documentation, one after the other in one directory."""

    commands: tuple[str, ...]
    lines: int | None = None
    """The number of lines of a command's output to store, if not all."""


_TRACED = "blklab kernel run --disk su800-128gb --scheduler bfq --trace kept"
_QUEUE = "grep . wbt_lat_usec max_sectors_kb read_ahead_kb nr_requests rotational"

EXAMPLES = {
    "compare": Example(
        (
            "blklab compare --rig kernel --disk wd10ezrx --workload j.fio \\\n"
            "    --scheduler mq-deadline --scheduler bfq --repeats 2",
        ),
        lines=13,
    ),
    "refused": Example(("blklab fio j.fio --disk wd10ezrx --rig kernel --scheduler noop",)),
    "program": Example(
        (
            "blklab kernel run --disk wd10ezrx --scheduler mq-deadline --mkfs ext4 "
            "--trace events -- \\\n"
            "    sh -c 'seq 1 200000 > numbers && sync && wc -c numbers'",
            "grep -m1 rq_issue events/trace.txt",
        )
    ),
    "blktrace": Example(
        (
            f"{_TRACED} --trace-format blktrace -- \\\n"
            "    dd if={disk} of=/dev/null bs=64k count=9 iflag=direct status=none",
            "blkparse -q -i kept/sda | head -5",
            "blkparse -q -O -i kept/sda -d all > log && btt -i all | grep -m1 D2C",
        ),
        lines=5,
    ),
    "queue": Example(
        tuple(
            f"blklab kernel run --disk {disk} -- \\\n"
            f"    sh -c 'cd /sys/block/$(basename $BLKLAB_DISK)/queue && {_QUEUE}' 2>/dev/null"
            for disk in ("wd10ezrx", "optane-900p")
        )
    ),
}


class _Bench:
    """Runs on one kernel."""

    def __init__(self, kernel: cache.Kernel) -> None:
        self._kernel = kernel

    def _run(self, job: str, disk: str, scheduler: str, driver: str | None) -> Result:
        """On the simulator without a driver; CPU work takes no time, as that of fio never does."""
        where: dict[str, Any] = {"host": specs.host(["submit_ns=0,complete_ns=0,syscall_ns=0"])}
        if driver is not None:
            where = {"rig": "kernel", "kernel": self._kernel.key, "driver": driver}
            if driver == "native":
                where["host"] = specs.GUEST
        return blklab.simulate(job, disk=disk, scheduler=scheduler, **where)

    def _program(self, *command: str) -> tuple[program.Ran, str]:
        """A program on a fast disk, and its output."""
        out, errors = io.BytesIO(), io.BytesIO()
        task = program.Program(
            command=command,
            disk=specs.disk("optane-900p"),
            # Python may be installed anywhere.
            shared=view.shared([], [Path(sys.base_prefix)]).paths,
        )
        ran = program.run(self._kernel, task, out, errors)
        if ran.exit_code != 0:
            raise RuntimeError(f"{command[0]}: {errors.getvalue().decode()}")
        return ran, out.getvalue().decode()

    def start_s(self) -> float:
        """A guest without a program."""
        return self._program("true")[0].wall_s

    def clock_ns(self) -> float:
        """The cost of reading the clock in guest time."""
        script = _CLOCK.format(n=_READS_OF_CLOCK)
        return float(self._program(str(Path(sys.executable).resolve()), "-c", script)[1])

    def lateness_ns(self) -> float:
        """The median lateness of completions."""
        words = ("if={disk}", "of=/dev/null", "bs=4k", "count=1000", "iflag=direct")
        ran, _ = self._program("dd", *words)
        return float(ran.outcome["disk"]["lateness"]["p50_ns"])

    def times(self, driver: str) -> float:
        """The speed-up of a hard disk's run over real time."""
        start = time.perf_counter()
        result = self._run(_JOBS["disk"], "wd10ezrx", "mq-deadline", driver)
        return result.duration_ns / 1e9 / (time.perf_counter() - start)

    def ios_per_s(self, job: str, driver: str) -> float:
        """I/Os of a fast disk per second of this machine."""
        ios = _FAST_IOS[driver]
        start = time.perf_counter()
        result = self._run(_JOBS[job].format(ios=ios), "optane-900p", "none", driver)
        wall_s = time.perf_counter() - start
        if result.jobs[0].read.ios < ios:
            raise RuntimeError(f"{result.jobs[0].read.ios} I/Os instead of {ios}")
        return ios / wall_s

    def latency_us(self, driver: str | None) -> float:
        """Mean latency of a disk at depth 1."""
        return (
            self._run(_JOBS["one"], "su800-128gb", "none", driver).jobs[0].read.clat.mean_ns / 1e3
        )

    def measures(self, rounds: int) -> list[Measure]:
        """Everything, with its goal."""
        hdd, fast = "on `wd10ezrx`, of its own time", "on `optane-900p`, depth 32"
        one = "mean latency on `su800-128gb` at depth 1"

        def rate(job: str, driver: str, goal: float, how: str) -> Measure:
            name = "fio" if driver == "fio" else "native driver"
            what = f"{name} {fast}, {how}"
            return Measure(what, "I/O/s", goal, True, lambda: self.ios_per_s(job, driver), rounds)

        return [
            Measure("a guest in which nothing runs", "s", 1, False, self.start_s, rounds),
            Measure(f"native driver {hdd}", "times", 50, True, lambda: self.times("native"),
                    rounds),
            Measure(f"fio {hdd}", "times", 10, True, lambda: self.times("fio"), rounds),
            rate("fast", "native", 40_000, "one by one (`libaio`)"),
            rate("batched", "native", 40_000, "16 at a time (`io_uring`)"),
            rate("fast", "fio", 12_000, "one by one (`libaio`)"),
            rate("batched", "fio", 12_000, "16 at a time (`io_uring`)"),
            Measure(f"{one}, simulator, host without costs", "us", None, False,
                    lambda: self.latency_us(None), 1),
            Measure(f"{one}, native driver", "us", None, False,
                    lambda: self.latency_us("native"), 1),
            Measure(f"{one}, fio", "us", None, False, lambda: self.latency_us("fio"), 1),
            Measure("lateness of the disk at depth 1, median", "ns", None, False,
                    self.lateness_ns, 1),
            Measure("reading the clock, of the guest's time", "ns", None, False, self.clock_ns, 1),
        ]  # fmt: skip


def shown(kernel: cache.Kernel) -> dict[str, list[dict[str, str]]]:
    """Every example's commands with their outputs. RuntimeError if a tool is missing."""
    found = {}
    path = f"{Path(figures.BLKLAB).parent}:/usr/sbin:{os.environ['PATH']}"
    for name, example in EXAMPLES.items():
        with tempfile.TemporaryDirectory() as directory:
            # Root's guests run as the user `nobody`, which must be able to read it.
            Path(directory).chmod(0o755)
            for file, text in FILES.items():
                (Path(directory) / file).write_text(text, encoding="utf-8")
            outputs = []
            for command in example.commands:
                done = subprocess.run(
                    ["bash", "-c", command.replace("--disk", f"--kernel={kernel.key} --disk")],
                    cwd=directory,
                    env={**os.environ, "PATH": path, "COLUMNS": "100"},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    check=False,
                )
                if "not found" in done.stdout:
                    raise RuntimeError(f"{command}: {done.stdout}")
                kept = [line.rstrip() for line in done.stdout.splitlines()[: example.lines]]
                outputs.append({"command": command, "output": "\n".join(kept)})
            found[name] = outputs
    return found


def main() -> int:
    """Measure, print, store; 1 if a goal is missed by more than `figures.LOSS`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parser.add_argument("--kernel", help="by name; default: the last without changes")
    parser.add_argument("--out", type=Path, help="also write figures and examples there, as JSON")
    options = parser.parse_args()
    kernel = cache.chosen(options.kernel)
    machine = figures.machine()
    found = figures.measured(_Bench(kernel).measures(options.rounds), options.rounds)
    figures.told(found)
    if options.out:
        more = {"kernel": kernel.version, "files": FILES, "examples": shown(kernel)}
        figures.keep(options.out, options.rounds, machine, found, more)
    return figures.exit_code(found)


if __name__ == "__main__":
    sys.exit(main())
