"""The cost of ``blklab record``.

``python benches/recording.py [--rounds N] [--out FILE.json]``, as root. On a loop device over a
file in memory: each round runs fio alone (twice, for the difference between equal runs) and while
its I/O is recorded, in a random order; once at 100,000 I/Os a second, once as fast as it goes,
where the CPU is what limits fio. ``docs/data/recording.json`` is the last output of ``--out``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import blklab
import figures
from figures import Figure
from live_rig import loop_device

_ROUNDS = 15
_RUNTIME_S = 4
_RATE = 100_000
_WHAT = "random reads of 4 KiB, 32 in flight, from a loop device over memory"


class _Bench:
    """Runs on one device."""

    def __init__(self, node: str) -> None:
        self._node = node
        self.bytes_per_io: list[float] = []
        self.lost: list[float] = []

    def _command(self, rate: int, output: Path) -> list[str]:
        words = ["fio", "--eta=never", "--output-format=json", f"--output={output}", "--name=a"]
        words += [f"--filename={self._node}", "--rw=randread", "--bs=4k", "--direct=1"]
        words += ["--ioengine=libaio", "--iodepth=32", "--size=256m", "--time_based"]
        words += [f"--runtime={_RUNTIME_S}", "--randseed=1"]
        return [*words, f"--rate_iops={rate}"] if rate else words

    def plain(self, rate: int, directory: Path) -> float:
        """I/Os a second of fio alone."""
        output = directory / "plain.json"
        subprocess.run(self._command(rate, output), check=True)
        return _iops(output)

    def recorded(self, rate: int, directory: Path) -> float:
        """The same, recorded."""
        output, out = directory / "recorded.json", directory / "out.rec"
        made = blklab.record_machine(out, disk=self._node, command=self._command(rate, output))
        self.bytes_per_io.append(made.recording_bytes / made.ios)
        self.lost.append(made.lost)
        return _iops(output)


def _iops(output: Path) -> float:
    [job] = json.loads(output.read_text())["jobs"]
    return float(job["read"]["iops"])


def measured(rounds: int) -> list[Figure]:
    """All figures, a value for each round."""
    chance = random.Random(1)
    found = []
    with loop_device() as node:
        bench = _Bench(node)
        for rate, how in ((_RATE, f"at {_RATE:,} I/Os a second"), (0, "as fast as it goes")):
            seen: list[dict[str, float]] = []
            for number in range(rounds):
                with tempfile.TemporaryDirectory() as name:
                    runs = {"first": bench.plain, "plain": bench.plain, "recorded": bench.recorded}
                    rates = {}
                    for which in chance.sample(list(runs), len(runs)):
                        place = Path(name) / which
                        place.mkdir()
                        rates[which] = runs[which](rate, place)
                    seen.append(rates)
                print(f"{how}: round {number + 1} of {rounds}", file=sys.stderr)
            alone = tuple((one["first"] * one["plain"]) ** 0.5 for one in seen)
            equal = tuple(100 * (1 - one["plain"] / one["first"]) for one in seen)
            less = tuple(
                100 * (1 - one["recorded"] / beside)
                for one, beside in zip(seen, alone, strict=True)
            )
            goal = 2.0 if rate else None
            found += [
                Figure(f"fio alone {how}, {_WHAT}", "I/O/s", None, True, alone),
                Figure(f"fio alone beside itself, {how}", "% less", None, False, equal),
                Figure(f"fio recorded beside fio alone, {how}", "% less", goal, False, less),
            ]
    return [
        *found,
        Figure("size of the recording", "bytes an I/O", 12.0, False, tuple(bench.bytes_per_io)),
        Figure("lost events of a run", "events", 0.0, False, tuple(bench.lost)),
    ]


def main() -> int:
    """Measure, print, store; 1 if a goal is missed by more than `figures.LOSS`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parser.add_argument("--out", type=Path, help="also write the figures there, as JSON")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("benches/recording.py: needs root, for a loop device and tracefs")
    machine = figures.machine()
    found = measured(options.rounds)
    intervals = figures.print_with_intervals(found)
    if options.out:
        where = machine | {"load_after": round(os.getloadavg()[0], 1)}
        figures.keep(options.out, options.rounds, where, found, {"intervals": intervals})
    return figures.exit_code(found)


if __name__ == "__main__":
    sys.exit(main())
