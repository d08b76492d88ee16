"""The hard disk model's queue against measured drives.

``python -m validation.queueing [FOLDER]``; without an argument the environment variable
BLKLAB_MEASURED names the folder, and without either this is skipped. In the folder may be

* ``hdd-samsung-f1-1tb.csv``: a sweep over depth, 4 KiB at random, of a Samsung SpinPoint F1, which
  takes and reports commands in batches. Its twin is made from the time of one read alone, the
  size of the batches and the longest wait at 32 in flight; it must predict the rest of the sweep;
* ``ncq-ageing.csv``: how long reads wait beside a stream in a Seagate ST14000NM0048. Its twin is
  made from the length and the share of the long waits, and lingers; it must have none between the
  long and the short ones, and short ones as long as the drive's. With one read of the stream in
  flight the same must come out, and no long wait if the drive does not linger.

If a check is not met, the exit code is 1.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import blklab
from blklab.base.catalogue import Entry
from blklab.domain.experiment import Disk
from blklab.domain.histogram import Histogram
from validation import runs
from validation.report import Report

_VARIABLE = "BLKLAB_MEASURED"
_SWEEP, _AGEING = "hdd-samsung-f1-1tb.csv", "ncq-ageing.csv"
DEPTHS = (2, 4, 8, 16, 32)
GAIN = 0.10
"""Two sweeps of the F1 in the file, over depth and over jobs, differ by 2 %; a twin knows only the
mean of its seeks, not their curve."""
MEDIAN, P99, LONGEST = 0.25, 0.25, 0.40
"""Over the mean. Times of the F1 come in groups, and a median between two of them may fall into
either; the longest read at 16 in flight took 0.6 to 0.9 s in runs of the F1 itself."""
SHARE = 0.02
"""The share of all reads between the two groups of waits."""
SHORT = 2.0
"""The drive's short waits are counted by powers of two, and the areas of the two readers are not
known; with the stream between two reads they would be more than twice as long."""
LONG_SHARE = 0.04
"""Some twenty long waits in a minute: one more or less is half a per cent of the reads."""
LINGER_MS = 10
"""Longer than a host's pause between two reads."""
_MINUTE = 60.0
_SHORT_MS, _LONG_MS = 128.0, 512.0


@dataclass(frozen=True)
class Waits:
    """Times of reads, in ms; in a sweep also their number per second."""

    iops: float
    mean: float
    p50: float
    p99: float
    longest: float


def main(arguments: Sequence[str] | None = None) -> int:
    """See the head of the file."""
    parser = argparse.ArgumentParser(prog="python -m validation.queueing", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help=f"default: ${_VARIABLE}")
    asked = parser.parse_args(arguments)
    folder = asked.folder or (Path(named) if (named := os.environ.get(_VARIABLE)) else None)
    if folder is None:
        print(f"skipped: no folder with measured hard disks; name it, or set {_VARIABLE}")
        return 0
    parts = [
        (part, path)
        for part, name in ((_batches, _SWEEP), (_ageing, _AGEING))
        if (path := folder / name).exists()
    ]
    if not parts:
        print(f"{folder}: no {_SWEEP} or {_AGEING} there", file=sys.stderr)
        return 2
    report = Report()
    for part, path in parts:
        part(report, path)
    print(f"\n{report.rows} checks, {'all met' if report.every else 'NOT all met'}")
    return 0 if report.every else 1


def batch_size(counts: Sequence[int]) -> int:
    """The largest number of reads that divides the number of reads in each half second."""
    return math.gcd(*counts)


def _batches(report: Report, path: Path) -> None:
    """A twin of a drive that reports reads in batches."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = {
            int(row["iodepth"]): row
            for row in csv.DictReader(file)
            if row["rw"] == "randread" and row["numjobs"] == "1"
        }
    real = {depth: _measured(row) for depth, row in rows.items() if depth in (1, *DEPTHS)}
    # fio's counts per second are twice those of its samples, half a second each.
    counts = [
        round(float(rows[depth][name]) / 2)
        for depth in DEPTHS[-2:]
        for name in ("iops_min", "iops_max")
    ]
    batch = batch_size(counts)
    report.title(f"{path.stem}: twin with batches of {batch}")
    report.check("reads that are reported together", batch, 2, DEPTHS[-1])
    # The longest read has waited for its deadline and for the batch in progress.
    deepest = real[DEPTHS[-1]]
    disk = _twin(real[1].mean, batch, round(deepest.longest - batch / deepest.iops * 1e3))
    alone = _sweep(disk, 1)
    for depth in DEPTHS:
        found, drive, at = _sweep(disk, depth), real[depth], f"{depth} in flight"
        report.near(f"{at}: gain", found.iops / alone.iops, drive.iops / real[1].iops, GAIN, GAIN)
        for what, ours, theirs, bar in (
            ("p50", found.p50, drive.p50, MEDIAN),
            ("p99", found.p99, drive.p99, P99),
            ("longest", found.longest, drive.longest, LONGEST),
        ):
            shares = ours / found.mean, theirs / drive.mean
            report.near(f"{at}: {what} over mean", *shares, bar, bar)


def _measured(row: dict[str, str]) -> Waits:
    names = ("lat_mean_us", "p50", "p99", "lat_max_us")
    return Waits(float(row["iops"]), *(float(row[name]) / 1e3 for name in names))


def _twin(alone_ms: float, batch: int, deadline_ms: int) -> Disk:
    """A drive of 1 TB and 7200 rpm with this time of a read alone; all else as a shipped disk."""
    seek_ms = 9.0
    keys: dict[str, object] = {"ncq_batch": batch, "ncq_deadline_ms": deadline_ms}
    for _ in range(3):
        mechanics = {
            "rpm": 7200,
            "heads": 6,
            "seek_track_to_track_ms": 0.8,
            "seek_average_ms": round(seek_ms, 3),
            "seek_full_stroke_ms": round(2 * seek_ms, 3),
        }
        disk = runs.changed("wd10ezrx", mechanics | keys)
        seek_ms += alone_ms - _sweep(disk, 1).mean
    return disk


def _sweep(disk: Disk, depth: int) -> Waits:
    size = "[reads]\nioengine=libaio\ndirect=1\nfilename=sweep\nsize=900g\nrw=randread\nbs=4k\n"
    clock = f"iodepth={depth}\ntime_based\nnorandommap\nruntime=60\nramp_time=5\n"
    [reads] = _times(disk, size + clock)
    value_ms, count = reads.value_ns / 1e6, reads.count
    mean = float((value_ms * count).sum() / reads.total)
    p50, p99 = (reads.percentile(percent) / 1e6 for percent in (50, 99))
    return Waits(reads.total / _MINUTE, mean, p50, p99, float(value_ms[-1]))


def _ageing(report: Report, path: Path) -> None:
    """A drive that lets reads beside a stream wait for a deadline, and then serves some at once."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if "ST14000NM0048" in row["drive"]]
    # A column's reads took more than half of its upper end.
    counts = [(0.75 * float(row["upper_ms"]), int(row["count"])) for row in rows]
    total = sum(count for _, count in counts)
    short = [(ms, count) for ms, count in counts if ms < _SHORT_MS]
    long = sum(count for ms, count in counts if ms > _LONG_MS)
    between = sum(count for ms, count in counts if _SHORT_MS < ms < _LONG_MS) / total
    # The long ones share what the others leave of the minute.
    deadline_ms = (_MINUTE * 1e3 - sum(ms * count for ms, count in short)) / long
    after = round((total - long) / long)
    keys = {
        "rpm": 7200,
        "ncq_deadline_ms": round(deadline_ms),
        "ncq_deadline_batch": after,
    }
    typical = Histogram(*np.array([(round(ms * 1e6), n) for ms, n in short]).T).percentile(50) / 1e6
    disk = runs.changed("desktop-5900rpm", keys | {"ncq_linger_ms": LINGER_MS})
    for in_flight in (2, 1):
        report.title(
            f"ST14000NM0048, a stream with {in_flight} in flight: twin with a deadline of "
            f"{deadline_ms / 1e3:.1f} s, {after} reads after it, lingering for {LINGER_MS} ms"
        )
        waits = _beside_a_stream(disk, in_flight)
        ms = waits.value_ns / 1e6
        near, far = ms <= _SHORT_MS, ms > _LONG_MS
        middle = float(waits.count[~near & ~far].sum() / waits.total)
        report.check("share between the groups", middle, between - SHARE, between + SHARE)
        median = Histogram(waits.value_ns[near], waits.count[near]).percentile(50) / 1e6
        report.check("median of the short waits, ms", median, typical / SHORT, typical * SHORT)
        share = float(waits.count[far].sum() / waits.total)
        report.check(
            "share of long waits", share, long / total - LONG_SHARE, long / total + LONG_SHARE
        )
    report.title("the same drive, one read of the stream in flight, without lingering")
    longest = float(_beside_a_stream(runs.changed("desktop-5900rpm", keys), 1).value_ns[-1] / 1e6)
    report.check("longest wait, ms", longest, 0, _SHORT_MS)


def _beside_a_stream(disk: Disk, in_flight: int) -> Histogram:
    """Times of reads of 16 KiB, one at a time, beside a sequential reader of 512 KiB."""
    both = "[global]\nioengine=libaio\ndirect=1\ntime_based\nruntime=60\n"
    stream = f"[stream]\nrw=read\nbs=512k\niodepth={in_flight}\nsize=100g\n"
    reads = "[reads]\nrw=randread\nbs=16k\niodepth=1\noffset=500g\nsize=1000g\n"
    return _times(disk, both + stream + reads)[-1]


def _times(disk: Disk, jobs: str) -> list[Histogram]:
    result = blklab.simulate(Entry("queueing", Path("queueing"), jobs), disk=disk)
    return [job.direction("read").clat_hist for job in result.jobs]


if __name__ == "__main__":
    sys.exit(main())
