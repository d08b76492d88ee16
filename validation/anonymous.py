"""What ``blklab trace anonymise`` costs: real traces and their anonymous copies, replayed.

``python -m validation.anonymous [FOLDER] [--out FILE.json]``. The folder, or the environment
variable BLKLAB_TRACES, has traces of any format; see ``validation.traces``. Each is anonymised with
several secrets and replayed on a hard disk and an SSD under Linux's schedulers, as is the trace
itself. A line has, for a trace and a disk, the median and the largest difference of rates and of
99th percentiles over schedulers and secrets. Nothing fails: it is a measurement.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import blklab
from blklab.errors import BlklabError

_VARIABLE = "BLKLAB_TRACES"
_SAME_TRACE = ("cloudPhysicsIO.csv", "cloudPhysicsIO.oracleGeneral.bin", "cloudPhysicsIO.txt")
"""The same I/Os as cloudPhysicsIO.vscsi, with less of each."""
_NOT_TRACES = (".md",)
_IOS_MIN = 500
"""A 99th percentile of fewer I/Os is a few of them."""
_DISKS = ("wd10ezrx", "su800-128gb")
_SEEDS = (1, 2, 3)


@dataclass(frozen=True)
class Cost:
    """What replays of anonymous copies differ by from the trace's; ratios less 1, without signs."""

    trace: str
    disk: str
    ios: int
    rate_median: float
    rate_most: float
    p99_median: float | None
    """None without a latency."""
    p99_most: float | None
    seek_before_bytes: int
    """The median distance from one I/O to the next."""
    seek_after_bytes: int


def measured(file: Path, disk: str, place: Path) -> Cost:
    """The cost for one trace on one disk. BlklabError if it cannot be replayed there."""
    rates, latencies, seeks = [], [], []
    devices = blklab.read_trace(file).devices
    # Of several the one with the most I/Os.
    device = devices[0][0] if len(devices) > 1 else None
    before = 0
    count = 0
    for seed in _SEEDS:
        hidden = place / f"{file.name}-{seed}.rec"
        if not hidden.exists():
            blklab.anonymise_trace(file, hidden, seed=seed, device=device)
        reading, after = blklab.read_trace(file, device=device), blklab.read_trace(hidden)
        count, before = reading.count, reading.seeks_sectors.p50 * 512
        seeks.append(after.seeks_sectors.p50 * 512)
        for row in blklab.trace_fidelity(file, hidden, disk=disk, fit="scale", device=device):
            rates += [] if row.bytes_per_s is None else [abs(row.bytes_per_s - 1)]
            latencies += [] if row.latency is None else [abs(row.latency - 1)]
    return Cost(
        file.name,
        disk,
        count,
        statistics.median(rates),
        max(rates),
        statistics.median(latencies) if latencies else None,
        max(latencies, default=None),
        before,
        round(statistics.median(seeks)),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """See the head of the file."""
    parser = argparse.ArgumentParser(prog="python -m validation.anonymous", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help=f"default: ${_VARIABLE}")
    parser.add_argument("--out", type=Path, help="also write the figures there, as JSON")
    asked = parser.parse_args(arguments)
    folder = asked.folder or (Path(named) if (named := os.environ.get(_VARIABLE)) else None)
    if folder is None:
        print(f"skipped: no folder with traces; name it, or set {_VARIABLE}")
        return 0
    files = sorted(path for path in folder.iterdir() if path.suffix not in _NOT_TRACES)
    found = []
    with tempfile.TemporaryDirectory(prefix="blklab-anonymous-") as place:
        for file in files:
            if file.name in _SAME_TRACE:
                continue
            for disk in _DISKS:
                try:
                    cost = measured(file, disk, Path(place))
                except BlklabError as error:
                    print(f"{file.name} on {disk}: {error}", file=sys.stderr)
                    continue
                if cost.ios < _IOS_MIN:
                    print(f"{file.name}: {cost.ios} I/Os; left out: fewer than {_IOS_MIN}")
                    break
                found.append(cost)
                p99 = "-" if cost.p99_median is None else f"{cost.p99_median:.1%}"
                most = "-" if cost.p99_most is None else f"{cost.p99_most:.1%}"
                print(
                    f"{cost.trace} on {cost.disk}: {cost.ios:,} I/Os; "
                    f"rate {cost.rate_median:.1%}, most {cost.rate_most:.1%}; "
                    f"p99 {p99}, most {most}",
                    flush=True,
                )
    if not found:
        print(f"{folder}: no trace there", file=sys.stderr)
        return 2
    if asked.out is not None:
        rows = [asdict(cost) for cost in found]
        asked.out.write_text(json.dumps({"seeds": len(_SEEDS), "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
