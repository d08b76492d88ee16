"""The solid-state disk model against measured drives.

``python -m validation.flash [FOLDER]``; without an argument the environment variable
BLKLAB_MEASURED names the folder, and without either this is skipped. In the folder may be

* ``ssd-*.csv``: sweeps over depth and jobs, 4 KiB at random, of SATA drives;
* ``optane-*.csv``: the same of an Intel P4800X, which has the controller of the 900P;
* ``iocost-models.csv``: figures of io.cost, with the 95th percentile of reads.

The shipped disks are other drives, so they are compared in dimensionless figures that are common to
similar drives. A twin of each measured SATA drive, made from four of its figures, must predict the
others. Bars and their reasons are beside each check; if one is not met, the exit code is 1. The
files are not part of this repository: not every source names a licence.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from blklab.api.iocost import Bench, IoCostRun
from blklab.api.iocost_disk import TOLERANCE, disk_from_io_cost
from blklab.base.catalogue import Entry
from blklab.domain.experiment import Disk
from validation import measured, runs
from validation.measured import IN_FLIGHT, Point, Sweep
from validation.report import Report
from validation.twin import twin

_VARIABLE = "BLKLAB_MEASURED"
BEYOND = 0.15
"""Two or three drives do not cover their kind: a shipped model may be outside of their range by
this factor; two sweeps of one drive differ by a few per cent."""
ONE_DRIVE = 2.0
"""A behaviour of a single drive, such as the length of stalls, may differ by this factor in
another."""
GAIN = 0.25
"""A twin's error. Where its queue begins to fill, a drive gains up to a fifth less."""
PACED_GAIN = 0.35
"""The same for writes that do not stall: only one drive has them, on a host that bounds them
too."""
P99_LESS, P99_MORE = 0.40, 0.25
P999_LESS, P999_MORE = 0.55, 0.45
"""A twin's tail. Two sweeps of one drive differ by some 5 and 20 %; a drive's tail includes the
host's interrupts, the model's does not."""
ABSOLUTE_LESS, ABSOLUTE_MORE = 0.15, 0.27
"""This P4800X, read through a file system, does 507,000 reads/s; AnandTech measured 584,800, 1.15
times as many; and it is not the 900P."""
LATENCY = 2.5
"""Runs of one drive differ by up to 1.6 times, and nothing is known of its queues."""
WRITES_LESS, WRITES_MORE = 0.87, 0.25
"""With 2,048 writes in flight the mean alone is 4 ms to 0.3 s. The drives' 95th percentile is 1.6
to 6.7 times that, since their rate rises and falls over seconds; the model's writes are even, so it
is known to be below."""
_SATA, _CONSUMER, _SERVER = "su800-128gb", ("su800-128gb", "950pro-256gb"), ("pm983-960gb",)


def main(arguments: Sequence[str] | None = None) -> int:
    """See the head of the file."""
    parser = argparse.ArgumentParser(prog="python -m validation.flash", description=__doc__)
    parser.add_argument(
        "--only", choices=("shapes", "twins", "optane", "iocost"), help="one part of the checks"
    )
    parser.add_argument("folder", nargs="?", type=Path, help=f"default: ${_VARIABLE}")
    asked = parser.parse_args(arguments)
    folder = asked.folder or (Path(named) if (named := os.environ.get(_VARIABLE)) else None)
    if folder is None:
        print(f"skipped: no folder with measured SSDs; name it, or set {_VARIABLE}")
        return 0
    sweeps = measured.sweeps(folder)
    optane = sorted(folder.glob("optane-*.csv"))
    models = folder / "iocost-models.csv"
    if not (sweeps or optane or models.exists()):
        print(f"{folder}: no ssd-*.csv, optane-*.csv or iocost-models.csv there", file=sys.stderr)
        return 2
    report = Report()
    parts: dict[str, Callable[[], object]] = {}
    if sweeps:
        parts |= {
            "shapes": lambda: _shapes(report, sweeps),
            "twins": lambda: _twins(report, sweeps),
        }
    if optane:
        parts["optane"] = lambda: _optane(report, optane)
    if models.exists():
        parts["iocost"] = lambda: _iocost(report, models)
    for name, part in parts.items():
        if asked.only in (None, name):
            part()
    print(f"\n{report.rows} checks, {'all met' if report.every else 'NOT all met'}")
    return 0 if report.every else 1


def _shapes(report: Report, sweeps: Sequence[Sweep]) -> None:
    """Shipped disks, in figures that are common to similar drives."""
    reads = [each for each in sweeps if each.rw == "randread"]
    report.title(f"{_SATA}, random reads beside {_names(reads)}: found, range of the drives")
    disk = runs.named(_SATA)
    alone = runs.point(disk, "randread", 1, 1, 4, 0.2)
    for number in IN_FLIGHT:
        real = [point for each in reads for point in each.with_in_flight(number)]
        gains = [
            point.iops / each.alone.iops for each in reads for point in each.with_in_flight(number)
        ]
        for depth, jobs in {(number, 1), (1, number)}:
            found = runs.point(disk, "randread", depth, jobs, 2, 0.2)
            at = f"depth {depth:2}, {jobs:2} jobs"
            if number > 1:
                _within(report, f"{at}: gain", found.iops / alone.iops, (min(gains), max(gains)))
            _within(report, f"{at}: p99 / mean", found.p99, measured.span(real, _p99))
            _within(report, f"{at}: p99.9 / mean", found.p999, measured.span(real, _p999))
            report.near(
                f"{at}: IOPS x mean / in flight",
                found.iops * found.mean_us / number / 1e6,
                1,
                0.05,
                0.05,
            )
    writes = [each for each in sweeps if each.rw == "randwrite"]
    stalling = [each for each in writes if each.least_host(2).p99 >= 5]  # noqa: PLR2004
    steady = [each for each in writes if each not in stalling]
    for names, kind in ((_CONSUMER, stalling), (_SERVER, steady)):
        for name in names if kind else ():
            _steady_writes(report, name, kind)


def _steady_writes(report: Report, name: str, kind: Sequence[Sweep]) -> None:
    report.title(f"{name}, random writes, steady state, beside {_names(kind)}")
    disk = runs.shrunk(runs.named(name), 64)
    for number in IN_FLIGHT[1:]:
        found = runs.point(disk, "randwrite", number, 1, 5, 60)
        real = [point for each in kind for point in each.with_in_flight(number)]
        for what, figure in (("p99 / mean", _p99), ("p99.9 / mean", _p999)):
            low, high = measured.span(real, figure)
            report.check(
                f"depth {number:2}: {what}", figure(found), low / ONE_DRIVE, high * ONE_DRIVE
            )


def _twins(report: Report, sweeps: Sequence[Sweep]) -> None:
    """Measured drives from four of their figures."""
    by_name = {(each.drive, each.rw): each for each in sweeps}
    for drive in dict.fromkeys(each.drive for each in sweeps):
        reads, writes = by_name.get((drive, "randread")), by_name.get((drive, "randwrite"))
        if reads is None or writes is None:
            continue
        made = twin(reads, writes)
        report.title(
            f"twin of {drive}{', paced' if made.paced else ''}: found, measured and tolerance"
        )
        base_us = 1e6 / runs.point(made.disk, "randread", 1, 1, 4, 0.2).iops
        for number in IN_FLIGHT:
            real, at = reads.least_host(number), f"reads, {number:2} in flight"
            found = runs.point(made.disk, "randread", number, 1, 2, 0.2)
            gain = real.iops * reads.alone_us / 1e6
            if number > 1:
                report.near(f"{at}: gain", found.iops * base_us / 1e6, gain, GAIN, GAIN)
            report.near(f"{at}: p99 / mean", found.p99, real.p99, P99_LESS, P99_MORE)
            report.near(f"{at}: p99.9 / mean", found.p999, real.p999, P999_LESS, P999_MORE)
        gains = PACED_GAIN if made.paced else GAIN
        most = writes.least_host(IN_FLIGHT[-1]).iops
        for number in IN_FLIGHT[1:]:
            real, at = writes.least_host(number), f"writes, {number:2} in flight"
            found = runs.point(made.steady, "randwrite", number, 1, 5, 1 if made.paced else 60)
            report.near(f"{at}: IOPS / with 32", found.iops / most, real.iops / most, gains, gains)
            report.near(f"{at}: p99 / mean", found.p99, real.p99, P99_LESS, P99_MORE)
            report.near(f"{at}: p99.9 / mean", found.p999, real.p999, P999_LESS, P999_MORE)


def _optane(report: Report, paths: Sequence[Path]) -> None:
    """In absolute figures."""
    report.title(f"optane-900p beside {_stems(paths)}: thousand reads/s")
    disk = runs.named("optane-900p")
    rows: list[dict[str, str]] = []
    for path in paths:
        with path.open(encoding="utf-8", newline="") as file:
            rows += [row for row in csv.DictReader(file) if row["rw"] == "randread"]
    for row in rows:
        depth, jobs, kib = (
            int(row["iodepth"]),
            int(row["numjobs"]),
            int(row["bs"].removesuffix("k")),
        )
        if jobs not in (1, 2, 4, 8) or (depth > 1 and jobs == 1):
            # One job at depth 128 shows what its CPU can.
            continue
        found = runs.point(disk, "randread", depth, jobs, 0.2, 0.02, kib << 10)
        at = f"{kib} KiB, depth {depth:3}, {jobs} jobs"
        report.near(at, found.iops / 1e3, float(row["iops"]) / 1e3, ABSOLUTE_LESS, ABSOLUTE_MORE)


def _iocost(report: Report, path: Path) -> None:
    """Disks made from figures, one for each drive: all six figures again, and one that was not an
    input."""
    text = path.read_text(encoding="utf-8")
    with path.open(encoding="utf-8", newline="") as file:
        rows = {row["model"]: row for row in reversed(list(csv.DictReader(file)))}
    report.title(
        "disks from io.cost: the worst of the six figures, %; p95 of random I/O over measured"
    )
    for model, row in rows.items():
        made = disk_from_io_cost(text, model=model)
        name, worst = max(made.errors.items(), key=lambda each: abs(each[1]))
        report.check(f"{model}: {name}, %", 100 * worst, -100 * TOLERANCE, 100 * TOLERANCE)
        # Nine tenths of the rate for each of eight jobs, as the tool asks fio for it: no limit.
        run = IoCostRun("randread", 4096, 256, 8, int(made.figures.rrandiops * 0.9))
        disk = Disk(Entry(model, Path("from-iocost.toml"), made.text))
        p95_us = Bench(disk, 1.0).percentile_us(run, 95)
        ratio = p95_us / float(row["rlat_p95_us"])
        report.check(f"{model}: p95 of reads", ratio, 1 / LATENCY, LATENCY)
        run = IoCostRun("randwrite", 4096, 256, 8, int(made.figures.wrandiops * 0.9))
        ratio = Bench(disk, 1.0).percentile_us(run, 95) / float(row["wlat_p95_us"])
        report.check(f"{model}: p95 of writes", ratio, 1 - WRITES_LESS, 1 + WRITES_MORE)


def _within(report: Report, what: str, found: float, span: tuple[float, float]) -> None:
    report.check(what, found, span[0] * (1 - BEYOND), span[1] * (1 + BEYOND))


def _p99(point: Point) -> float:
    return point.p99


def _p999(point: Point) -> float:
    return point.p999


def _stems(paths: Sequence[Path]) -> str:
    return ", ".join(path.stem for path in paths)


def _names(sweeps: Sequence[Sweep]) -> str:
    return ", ".join(each.drive for each in sweeps)


if __name__ == "__main__":
    sys.exit(main())
