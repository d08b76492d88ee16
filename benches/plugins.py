"""The cost of a plug-in: its runs beside those of the same scheduler in the simulator.

``python benches/plugins.py [--rounds N] [--out FILE.json]``. The plug-ins of the tests decide as
`noop` and `deadline` do; the disk is fast and the job keeps 32 I/Os in flight, so that the
scheduler is a large part of a run. Each round runs both, one after the other, and compares the CPU
time. Compiling them needs Rust's library for wasm32-unknown-unknown.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import blklab
import figures
from figures import Figure

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.plugins import missing, of_tests

_ROUNDS = 9
_DISK = "optane-900p"
_JOB = """[readers]
rw=randread
direct=1
ioengine=libaio
iodepth=32
numjobs=4
size=1g
runtime=300ms
time_based
"""
_GOALS = {"noop": 3.0, "deadline": 10.0}


def _cpu_s(scheduler: str, seed: int) -> float:
    before = time.process_time()
    blklab.simulate(_JOB, disk=_DISK, scheduler=scheduler, seed=seed)
    return time.process_time() - before


def measured(rounds: int) -> list[Figure]:
    """The ratios; the first round is not counted."""
    found = []
    for name, goal in _GOALS.items():
        plugin = blklab.load_plugin(of_tests(name)).text
        pairs = [(_cpu_s(plugin, seed), _cpu_s(name, seed)) for seed in range(rounds + 1)]
        ratios = tuple(outside / inside for outside, inside in pairs[1:])
        found.append(Figure(f"runs under {name} as a plug-in", "times", goal, False, ratios))
    return found


def main() -> int:
    """Measure, print, store; 1 if a goal is missed by more than `figures.LOSS`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parser.add_argument("--out", type=Path, help="also write the figures there, as JSON")
    options = parser.parse_args()
    if why := missing():
        print(f"plug-ins not measured: {why}")
        return 0
    machine = figures.machine()
    found = measured(options.rounds)
    intervals = figures.print_with_intervals(found)
    if options.out:
        figures.keep(options.out, options.rounds, machine, found, {"intervals": intervals})
    return figures.exit_code(found)


if __name__ == "__main__":
    sys.exit(main())
