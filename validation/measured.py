"""Sweeps of real drives over depth and jobs, from the reference folder, and their shapes.

A file ``ssd-*.csv`` has a row for each pair of fio's `iodepth` and `numjobs`, 4 KiB at random over
the whole drive, reads and writes: `drive, rw, iodepth, numjobs, iops, lat_mean_us, p50, p99, p99.9`
and others.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

IN_FLIGHT = (1, 2, 4, 8, 16, 32)
"""The largest depth of a SATA drive; above it, the kernel's queue is measured too."""


@dataclass(frozen=True)
class Point:
    """fio's results for one pair of depth and jobs."""

    drive: str
    rw: str
    depth: int
    jobs: int
    iops: float
    mean_us: float
    p50_us: float
    p99_us: float
    p999_us: float

    @property
    def in_flight(self) -> int:
        """Depth and jobs together."""
        return self.depth * self.jobs

    @property
    def p99(self) -> float:
        """Over the mean."""
        return self.p99_us / self.mean_us

    @property
    def p999(self) -> float:
        """Over the mean."""
        return self.p999_us / self.mean_us


@dataclass(frozen=True)
class Real:
    """A drive's figures with this many in flight, as far as possible without the host's part."""

    iops: float
    p99: float
    """Over the mean, as `p999`."""
    p999: float


@dataclass(frozen=True)
class Sweep:
    """All points of a drive in one direction; a drive that was measured twice is two drives."""

    drive: str
    rw: str
    points: tuple[Point, ...]

    def with_in_flight(self, number: int) -> list[Point]:
        """For all splits into depth and jobs."""
        return [point for point in self.points if point.in_flight == number]

    def least_host(self, number: int) -> Real:
        """With this many in flight: the best of each figure over the splits into depth and jobs,
        because the host's CPU time adds to the drive's."""
        points = self.with_in_flight(number)
        return Real(
            iops=max(each.iops for each in points),
            p99=min(each.p99 for each in points),
            p999=min(each.p999 for each in points),
        )

    @property
    def alone(self) -> Point:
        """One request in flight."""
        [point] = self.with_in_flight(1)
        return point

    @property
    def alone_us(self) -> float:
        """Time of a request among a few; a single one would include a CPU's wake-up from sleep."""
        return (
            min(number / each.iops for number in (1, 2) for each in self.with_in_flight(number))
            * 1e6
        )

    @property
    def most(self) -> float:
        """IOPS with at most the depth of a SATA drive in flight."""
        return max(each.iops for each in self.points if each.in_flight <= IN_FLIGHT[-1])


def sweeps(folder: Path) -> list[Sweep]:
    """The sweeps of all files ``ssd-*.csv`` with percentiles."""
    found: dict[tuple[str, str], list[Point]] = {}
    for path in sorted(folder.glob("ssd-*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["p99"] and row["p99.9"]:
                    point = _point(row)
                    found.setdefault((point.drive, point.rw), []).append(point)
    return [Sweep(drive, rw, tuple(points)) for (drive, rw), points in found.items()]


def span(points: Iterable[Point], what: Callable[[Point], float]) -> tuple[float, float]:
    """Least and largest."""
    values = [what(point) for point in points]
    return min(values), max(values)


def _point(row: dict[str, str]) -> Point:
    return Point(
        drive=row["drive"],
        rw=row["rw"],
        depth=int(row["iodepth"]),
        jobs=int(row["numjobs"]),
        iops=float(row["iops"]),
        mean_us=float(row["lat_mean_us"]),
        p50_us=float(row["p50"]),
        p99_us=float(row["p99"]),
        p999_us=float(row["p99.9"]),
    )
