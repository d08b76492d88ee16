"""``blklab.io_cost``: the figures of io.cost, measured on a disk model.

The figures are measured as `tools/cgroup/iocost_coef_gen.py` of Linux measures them: without a
scheduler, in a file of 16 GiB, `rbps` and `wbps` in requests of 128 MiB one at a time, the others
in 4 KiB. The default depth and number of jobs are those of resctl-bench, 256 and 8, because
systemd's ``90-iocost.hwdb`` comes from its results; the kernel's tool uses 64 and 1.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.api.simulate import simulate
from blklab.base.catalogue import Entry
from blklab.domain import core, specs
from blklab.domain.experiment import Disk
from blklab.domain.histogram import Histogram
from blklab.domain.iocost import BLOCK_BYTES, IoCost
from blklab.domain.result import Direction
from blklab.errors import InputError

DEPTH, JOBS = 256, 8
"""Queue depth of each job, and number of jobs, for the rates in 4 KiB: as in resctl-bench."""
_FILE_BYTES = 16 << 30
_LARGE_BYTES = 128 << 20
_NINE_TENTHS = 0.9
_TURNS_MIN = 40
"""Operations of a run per operation in flight: enough that those cut off at its end matter
little."""
_SECONDS_MAX = 600.0
_PERCENT = 95
"""The percentile of the latencies in `io.cost.qos`."""


@dataclass(frozen=True)
class IoCostQos:
    """Latencies near the limit: the 95th percentile at nine tenths of the random rate."""

    rlat_p95_us: float
    """For reads, in us."""
    wlat_p95_us: float
    """For writes, in us."""

    def qos_line(self, device: str | None = None) -> str:
        """A line for `io.cost.qos`: the disk is saturated when a twentieth takes twice as long."""
        rlat, wlat = (max(1, round(2 * each)) for each in (self.rlat_p95_us, self.wlat_p95_us))
        figures = (
            f"rpct={_PERCENT}.00 rlat={rlat} wpct={_PERCENT}.00 wlat={wlat} min=50.00 max=150.00"
        )
        return f"{device + ' ' if device else ''}enable=1 ctrl=user {figures}"


@dataclass(frozen=True)
class IoCostRun:
    """One of the measurements, in fio's options."""

    rw: str
    bytes: int
    depth: int
    jobs: int
    rate_iops: int | None = None
    """The limit of each job, if it has one."""

    def job(self, size_bytes: int, seconds: float) -> str:
        """Its job file."""
        lines = [
            "[coef]", "ioengine=libaio", "direct=1", "filename=coef", f"size={size_bytes}",
            f"rw={self.rw}", f"bs={self.bytes}", f"iodepth={self.depth}", f"numjobs={self.jobs}",
            "group_reporting", "time_based", "norandommap", f"runtime={round(seconds * 1e6)}us",
            f"ramp_time={round(seconds * 2e5)}us",
        ]  # fmt: skip
        if self.rate_iops is not None:
            lines.append(f"rate_iops={self.rate_iops}")
        return "\n".join(lines) + "\n"


def io_cost(
    disk: str | os.PathLike[str] | Disk,
    *,
    depth: int = DEPTH,
    jobs: int = JOBS,
    seconds: float = 2.0,
    seed: int = 1,
    host: Mapping[str, int] | None = None,
) -> IoCost:
    """Measure the figures of io.cost on a disk model.

    Args:
        disk: as for `blklab.simulate`, on the simulator.
        depth: operations in flight in each job, for the rates in 4 KiB.
        jobs: number of jobs, for the rates in 4 KiB.
        seconds: virtual time of each of the six runs; the kernel's tool takes 120. Caches that
            a short run does not fill make `wbps` and the write rates too high.
        seed: of the simulator.
        host: costs and sizes of the modelled host, by name.

    Raises:
        blklab.errors.InputError: a name or value is wrong; one line says which.
    """
    bench = Bench(_model(disk), seconds, seed, host)
    large = {"bytes": _LARGE_BYTES, "depth": 1, "jobs": 1}
    small = {"bytes": BLOCK_BYTES, "depth": depth, "jobs": jobs}
    return IoCost(
        rbps=round(bench.per_second(IoCostRun("read", **large)) * _LARGE_BYTES),
        rseqiops=round(bench.per_second(IoCostRun("read", **small))),
        rrandiops=round(bench.per_second(IoCostRun("randread", **small))),
        wbps=round(bench.per_second(IoCostRun("write", **large)) * _LARGE_BYTES),
        wseqiops=round(bench.per_second(IoCostRun("write", **small))),
        wrandiops=round(bench.per_second(IoCostRun("randwrite", **small))),
    )


def io_cost_qos(
    disk: str | os.PathLike[str] | Disk,
    figures: IoCost,
    *,
    depth: int = DEPTH,
    jobs: int = JOBS,
    seconds: float = 2.0,
    seed: int = 1,
    host: Mapping[str, int] | None = None,
) -> IoCostQos:
    """Latencies of random 4 KiB operations at nine tenths of the rates in `figures`, the disk's own
    figures; the arguments are those of `io_cost`."""
    bench = Bench(_model(disk), seconds, seed, host)

    def p95_us(rw: str, rate: int) -> float:
        each = max(1, round(rate * _NINE_TENTHS / jobs))
        return bench.percentile_us(IoCostRun(rw, BLOCK_BYTES, depth, jobs, each), _PERCENT)

    return IoCostQos(p95_us("randread", figures.rrandiops), p95_us("randwrite", figures.wrandiops))


_SCHEDULER = "none:max_sectors_kb=1280"
"""Kernels that published figures were measured on: those before Linux 6.17 had smaller requests."""


class Bench:
    """One measurement after another, each on a new instance of the disk."""

    def __init__(
        self, disk: Disk, seconds: float, seed: int = 1, host: Mapping[str, int] | None = None
    ) -> None:
        if not 1e-3 <= seconds <= 1e4:  # noqa: PLR2004
            raise InputError(f"seconds: {seconds} is out of range (0.001 to 10000)")
        capacity = core.disk_model(disk).limits.capacity_bytes
        self._size = min(_FILE_BYTES, capacity // _LARGE_BYTES * _LARGE_BYTES)
        if self._size == 0:
            raise InputError(f"{disk.label}: smaller than a request of 128 MiB")
        self._disk, self._seconds, self._seed, self._host = disk, seconds, seed, dict(host or {})

    def per_second(self, run: IoCostRun) -> float:
        """Operations per second; a run with too few operations is repeated with a longer time."""
        seconds = self._seconds
        while True:
            parts = [each for each in self._directions(run, seconds) if each.ios]
            done = sum(each.ios for each in parts)
            if done >= _TURNS_MIN * run.depth * run.jobs or seconds >= _SECONDS_MAX:
                break
            seconds *= 2
        longest = max((each.runtime_ns for each in parts), default=0)
        return done / longest * 1e9 if longest else 0.0

    def percentile_us(self, run: IoCostRun, percent: float) -> float:
        """A percentile of the completion latency."""
        parts = self._directions(run, self._seconds)
        return Histogram.merged(each.clat_hist for each in parts).percentile(percent) / 1e3

    def _directions(self, run: IoCostRun, seconds: float) -> Sequence[Direction]:
        text = run.job(self._size, seconds)
        entry = Entry("io.cost", Path("io.cost"), text)
        result = simulate(
            entry, disk=self._disk, scheduler=_SCHEDULER, seed=self._seed, host=self._host
        )
        which = "read" if "read" in run.rw else "write"
        return [job.direction(which) for job in result.jobs]


def _model(disk: str | os.PathLike[str] | Disk) -> Disk:
    return disk if isinstance(disk, Disk) else specs.disk(disk)
