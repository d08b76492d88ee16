"""The cost of ``blklab watch``, and an example of it.

``python benches/watch.py [--rounds N] [--out FILE.json]``, as root. On a loop device over a file
in memory. Each round watches small reads for a minute with the default interval, and a new load
once by the workload of its kind and once by a sample of its requests. The example has two loads,
one after the other, at short intervals. ``docs/data/watch.json`` is the last output of ``--out``.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

import blklab
import figures
from figures import BLKLAB, Figure
from live_rig import loop_device

_ROUNDS = 5
_FOR_S = 60.0
_GOAL_PERCENT = 0.1
_MODEL = "desktop-5900rpm"
_READS = ["--rw=randread", "--bs=4k", "--rate_iops=1000"]
_STREAMS = ["--rw=read", "--bs=256k", "--ioengine=libaio", "--iodepth=24"]
_READERS = [
    *("--rw=randread", "--bs=16k", "--rate_iops=400", "--name=writer", "--rw=write", "--bs=1m"),
    *("--ioengine=libaio", "--iodepth=8", "--rate_iops=200"),
]
_EXAMPLE = [
    *("--model", _MODEL, "--objective", "throughput", "--apply", "--interval", "1s"),
    *("--at-most-every", "10s", "--for", "36s", "--no-sample"),
]


@contextlib.contextmanager
def _load(node: str, words: Sequence[str]) -> Iterator[None]:
    """The job of fio meanwhile."""
    common = [
        f"--filename={node}",
        "--direct=1",
        "--thread",
        "--time_based",
        "--runtime=600",
        "--size=200m",
    ]
    process = subprocess.Popen(
        ["fio", *common, "--output=/dev/null", "--name=first", *words], stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _steady_percent(node: str) -> float:
    """CPU time of the process from the first interval to the last, in percent of the time."""
    seen: list[tuple[float, float]] = []

    def told(event: blklab.WatchEvent) -> None:
        if event.what == "observed":
            seen.append((time.process_time(), time.monotonic()))

    # The evidence is the other figures'.
    limits = blklab.WatchLimits(steady=1000, sample=False)
    blklab.watch([node], limits=limits, for_s=_FOR_S, on_event=told)
    (first_cpu_s, first_s), (last_cpu_s, last_s) = seen[0], seen[-1]
    return 100 * (last_cpu_s - first_cpu_s) / (last_s - first_s)


def _evidence_s(node: str, *, sample: bool) -> float:
    """CPU time for the evidence about one new load."""
    limits = blklab.WatchLimits(interval_s=1.0, steady=2, sample=sample)

    def told(event: blklab.WatchEvent) -> None:
        if event.what == "advice":
            raise KeyboardInterrupt

    with tempfile.TemporaryDirectory() as place:
        store = str(Path(place) / "results.db")
        found = blklab.watch([node], model=_MODEL, limits=limits, store=store, on_event=told)
    return found.evidence_cpu_s


def measured(rounds: int) -> list[Figure]:
    """All figures, a value for each round."""
    steady, kinds, samples = [], [], []
    with loop_device() as node, _load(node, _READS):
        # Modules are loaded once.
        _evidence_s(node, sample=False)
        for number in range(rounds):
            steady.append(_steady_percent(node))
            kinds.append(_evidence_s(node, sample=False))
            samples.append(_evidence_s(node, sample=True))
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return [
        Figure("watching one disk, every 10 s", "% of a CPU", _GOAL_PERCENT, False, tuple(steady)),
        Figure("a new load, its kind's workload simulated", "s of CPU", None, False, tuple(kinds)),
        Figure("a new load, sampled and replayed", "s of CPU", None, False, tuple(samples)),
    ]


def example() -> list[str]:
    """The lines of a watch of two loads; the disk is called sda."""
    with loop_device() as node, tempfile.TemporaryDirectory() as place:
        name = Path(node).name
        environment = os.environ | {"BLKLAB_STORE": str(Path(place) / "results.db")}
        command = [BLKLAB, "watch", "--disk", name, *_EXAMPLE]
        watch = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        with _load(node, _STREAMS):
            time.sleep(18)
        with _load(node, _READERS):
            output, _ = watch.communicate()
    assert watch.returncode == 0, output
    return re.sub(rf"\b{name}\b", "sda", output).splitlines()


def main() -> int:
    """Measure, print, store; 1 if a goal is missed by more than `figures.LOSS`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parser.add_argument("--out", type=Path, help="also write the figures there, as JSON")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("benches/watch.py: needs root, for a loop device and tracefs")
    machine = figures.machine()
    with mock.patch.dict(os.environ, {"BLKLAB_JOURNAL": tempfile.mkdtemp(prefix="blklab-bench-")}):
        found = measured(options.rounds)
        lines = example()
    intervals = figures.print_with_intervals(found)
    print("\n".join(lines))
    if options.out:
        where = machine | {"load_after": round(os.getloadavg()[0], 1)}
        command = " ".join(["blklab watch --disk sda", *_EXAMPLE])
        more = {"intervals": intervals, "command": command, "lines": lines}
        figures.keep(options.out, options.rounds, where, found, more)
    return figures.exit_code(found)


if __name__ == "__main__":
    sys.exit(main())
