"""The costs of the simulator's host with which it has the measured rates.

A job alone gives the CPU time of one I/O in its process (submission and completion). More jobs, up
to four for each CPU, give all CPU time of an I/O; the driver's thread has the rest of it. One I/O
at a time shows how long a wake-up takes. Each scheduler's cost, like the driver's, is the one with
the smallest largest error in the rates of all numbers of jobs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab.calibration.load import Load, Measured
from blklab.domain import specs
from blklab.domain.experiment import Disk, Experiment, SchedulerSpec
from blklab.rigs.sim import SimRig

NONE = "none"
SCHEDULERS = (NONE, "mq-deadline", "kyber", "bfq")
_DEVICE = Path("/dev/measured")
"""A name for the simulator."""
_STEPS = 18
_PARTS = 12
_LARGEST_NS = 1_000_000
# A completion is never free.
_SUBMISSION_MAX = 0.8
# fio's readings of the clock for each direct I/O, see `clock_ns`.
_CLOCK_READS = 5


@dataclass(frozen=True)
class Rates:
    """Measured loads by scheduler, each some times."""

    rows: Mapping[tuple[str, Load], Sequence[Measured]]

    def fastest(self, scheduler: str, load: Load) -> Measured:
        """The fastest run: whatever else happens on the machine only slows one down."""
        return max(self.rows[scheduler, load], key=lambda one: one.iops)

    def iops(self, scheduler: str, load: Load) -> float:
        """The rate of the fastest run."""
        return self.fastest(scheduler, load).iops


@dataclass(frozen=True)
class Loads:
    """The loads that the costs come from."""

    deep: tuple[Load, ...]
    """One job, as many as CPUs, and more."""
    single: Load
    """One I/O at a time."""
    small: Load
    """Small reads from the page cache."""
    large: Load
    """Large ones."""

    @classmethod
    def of(cls, cpus: int) -> Loads:
        """For a machine with that many CPUs."""
        return cls(
            tuple(Load(jobs) for jobs in sorted({1, cpus, 2 * cpus, 4 * cpus})),
            Load(1, depth=1),
            Load(1, buffered=True),
            Load(1, block_bytes=131072, buffered=True),
        )

    def wanted(self, schedulers: Sequence[str]) -> list[tuple[str, Load]]:
        """What must be measured."""
        own = [(NONE, load) for load in (self.single, self.small, self.large)]
        return own + [(name, load) for name in schedulers for load in self.deep]


def device_model(tags: int) -> Disk:
    """A disk that is as fast as the device: a request takes no time in it."""
    return specs.disk(f"constant:transport=nvme,service_us=0.001,queue_depth={tags},rotational=off")


def simulated(load: Load, scheduler: str, disk: Disk, host: Mapping[str, int]) -> float:
    """The IOPS of the simulator."""
    job = load.job(_DEVICE, real=False)
    result = SimRig().run(Experiment(job, disk, SchedulerSpec(scheduler), 1, host=dict(host)))
    return sum(one.read.ios for one in result.jobs) * 1e9 / result.duration_ns


def costs(
    rates: Rates, loads: Loads, schedulers: Sequence[str], cpus: int, clock_ns: int, disk: Disk
) -> dict[str, int]:
    """The host's values, by name."""
    alone = rates.fastest(NONE, loads.deep[0])
    per_io = 1e9 / alone.iops
    clock = min(clock_ns, int(per_io / (2 * _CLOCK_READS)))
    per_io -= _CLOCK_READS * clock
    submit = min(alone.submission_ns, per_io * _SUBMISSION_MAX)
    host = {"cpus": cpus, "submit_ns": round(submit), "complete_ns": max(round(per_io - submit), 1)}
    host["clock_ns"] = clock
    host |= _page_cache(rates, loads)

    def found(name: str, scheduler: str, over: Sequence[Load]) -> int:
        def rate(value: int, load: Load) -> float:
            return simulated(load, scheduler, disk, {**host, name: value})

        return _best(rate, {load: rates.iops(scheduler, load) for load in over})

    host["wake_ns"] = 0
    host["driver_ns"] = found("driver_ns", NONE, loads.deep)
    host["wake_ns"] = found("wake_ns", NONE, [loads.single])
    for scheduler in schedulers:
        if scheduler != NONE:
            name = f"lock_ns.{scheduler}"
            host[name] = found(name, scheduler, loads.deep)
    return host


def _page_cache(rates: Rates, loads: Loads) -> dict[str, int]:
    """From two sizes of reads: what a call takes, and what each byte takes."""
    small_ns = 1e9 / rates.iops(NONE, loads.small)
    large_ns = 1e9 / rates.iops(NONE, loads.large)
    more_bytes = loads.large.block_bytes - loads.small.block_bytes
    of_byte_ns = max(large_ns - small_ns, 1.0) / more_bytes
    call_ns = max(small_ns - loads.small.block_bytes * of_byte_ns, 0)
    return {"syscall_ns": round(call_ns), "copy_mb_s": max(round(1000 / of_byte_ns), 1)}


def _slowest_above(rate: Callable[[int], float], wanted: float) -> int:
    """The largest cost with at least the `wanted` rate; 0 if there is none."""
    least, most = 0, 1
    while most < _LARGEST_NS and rate(most) > wanted:
        least, most = most, min(most * 4, _LARGEST_NS)
    for _ in range(_STEPS):
        if most - least <= max(1, least // 200):
            break
        middle = (least + most) // 2
        least, most = (middle, most) if rate(middle) > wanted else (least, middle)
    return least


def _best(rate: Callable[[int, Load], float], wanted: Mapping[Load, float]) -> int:
    """The cost with the smallest largest error in all `wanted` rates."""

    def worst(value: int) -> float:
        return max(abs(math.log(rate(value, load) / iops)) for load, iops in wanted.items())

    def end(load: Load) -> int:
        return _slowest_above(lambda value: rate(value, load), wanted[load])

    ends = [end(load) for load in wanted]
    low, high = min(ends), max(ends)
    return min((low + (high - low) * part // _PARTS for part in range(_PARTS + 1)), key=worst)
