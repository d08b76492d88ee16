"""The costs of the simulator's host with which it has the measured rates.

A job that never waits gives the CPU time of one I/O in its process (submission and completion).
More jobs than CPUs give all CPU time of an I/O; the driver's thread has the rest of it. One I/O at
a time shows how long a wake-up takes. A scheduler's cost is the one that fits both rates best.
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
        """Of the fastest run."""
        return self.fastest(scheduler, load).iops


@dataclass(frozen=True)
class Loads:
    """The loads that the costs come from."""

    alone: Load
    """One job that never waits."""
    many: Load
    """More jobs than CPUs."""
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
            Load(1),
            Load(2 * cpus),
            Load(1, depth=1),
            Load(1, buffered=True),
            Load(1, block_bytes=131072, buffered=True),
        )

    def wanted(self, schedulers: Sequence[str]) -> list[tuple[str, Load]]:
        """What must be measured."""
        own = [(NONE, load) for load in (self.single, self.small, self.large)]
        return own + [(name, load) for name in schedulers for load in (self.alone, self.many)]


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
    # The job is never without completions, so it uses its CPU all the time.
    alone = rates.fastest(NONE, loads.alone)
    per_io = alone.busy * 1e9 / alone.iops
    clock = min(clock_ns, int(per_io / (2 * _CLOCK_READS)))
    per_io -= _CLOCK_READS * clock
    submit = min(alone.submission_ns, per_io * _SUBMISSION_MAX)
    host = {"cpus": cpus, "submit_ns": round(submit), "complete_ns": max(round(per_io - submit), 1)}
    host["clock_ns"] = clock
    host |= _page_cache(rates, loads)

    def fitted(name: str, load: Load) -> int:
        found = rates.iops(NONE, load)
        return _slowest_above(
            lambda value: simulated(load, NONE, disk, host | {name: value}), found
        )

    host["wake_ns"] = 0
    host["driver_ns"] = fitted("driver_ns", loads.many)
    host["wake_ns"] = fitted("wake_ns", loads.single)
    for name in schedulers:
        if name != NONE:
            host[f"lock_ns.{name}"] = _lock(rates, loads, name, disk, host)
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


def _lock(rates: Rates, loads: Loads, name: str, disk: Disk, host: Mapping[str, int]) -> int:
    def worst(value: int) -> float:
        changed = {**host, f"lock_ns.{name}": value}
        return max(
            abs(math.log(simulated(load, name, disk, changed) / rates.iops(name, load)))
            for load in (loads.alone, loads.many)
        )

    def fitted(load: Load) -> int:
        def rate(value: int) -> float:
            return simulated(load, name, disk, {**host, f"lock_ns.{name}": value})

        return _slowest_above(rate, rates.iops(name, load))

    low, high = sorted((fitted(loads.alone), fitted(loads.many)))
    return min((low + (high - low) * part // 8 for part in range(9)), key=worst)
