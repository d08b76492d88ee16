"""The costs of the simulator's host with which it has the measured rates.

A job alone gives the CPU time of one I/O in its process (submission and completion). More jobs, up
to four for each CPU, give all CPU time of an I/O; the driver's thread has the rest of it, for each
I/O and for each switch to the thread: the more jobs, the fewer switches. One I/O at a time shows
how long a wake-up takes. The driver's two costs are those with which the squares of the errors of
all rates are least, each scheduler's that with the smallest largest error. The simulated kernel is
the newest that is no newer than the machine's: versions differ in which thread dispatches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from blklab.calibration.load import Load, Measured
from blklab.domain import specs
from blklab.domain.experiment import Disk, Experiment, SchedulerSpec
from blklab.rigs.sim import SimRig

NONE = "none"
SCHEDULERS = (NONE, "mq-deadline", "kyber", "bfq")
_DEVICE = Path("/dev/measured")
"""A name for the simulator."""
_GRID = 5
_LEAST_FACTOR = 1.06
_COARSE, _FINE = 10, 50
_LARGEST_NS = 1 << 20
# A completion is never free.
_SUBMISSION_MAX = 0.8
# fio's readings of the clock for each direct I/O, see `clock_ns`.
_CLOCK_READS = 5
_BUFFERED_BYTES = (4096, 16384, 131072)


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
    buffered: tuple[Load, ...]
    """Reads from the page cache, of several sizes."""

    @classmethod
    def of(cls, cpus: int) -> Loads:
        """For a machine with that many CPUs."""
        return cls(
            tuple(Load(jobs) for jobs in sorted({1, cpus, 2 * cpus, 4 * cpus})),
            Load(1, depth=1),
            tuple(Load(1, block_bytes=size, buffered=True) for size in _BUFFERED_BYTES),
        )

    def wanted(self, schedulers: Sequence[str]) -> list[tuple[str, Load]]:
        """What must be measured."""
        own = [(NONE, load) for load in (self.single, *self.buffered)]
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
    rates: Rates,
    loads: Loads,
    schedulers: Sequence[str],
    cpus: int,
    clock_ns: int,
    disk: Disk,
    *,
    kernel: int,
) -> dict[str, int]:
    """The values of the host with that simulated kernel, by name."""
    alone = rates.fastest(NONE, loads.deep[0])
    per_io = 1e9 / alone.iops
    clock = min(clock_ns, int(per_io / (2 * _CLOCK_READS)))
    per_io -= _CLOCK_READS * clock
    submit = min(alone.submission_ns, per_io * _SUBMISSION_MAX)
    host = {"kernel": kernel, "cpus": cpus, "submit_ns": round(submit)}
    host |= {"complete_ns": max(round(per_io - submit), 1), "clock_ns": clock}
    host |= _page_cache(rates, loads)

    host["wake_ns"] = 0

    def errors(scheduler: str, over: Sequence[Load], values: Mapping[str, int]) -> list[float]:
        rate = partial(simulated, scheduler=scheduler, disk=disk, host={**host, **values})
        return [math.log(rate(load) / rates.iops(scheduler, load)) for load in over]

    def level(
        name: str, scheduler: str, over: Sequence[Load], values: Mapping[str, int], steps: int
    ) -> int:
        """The value of `name` with which the largest error is least: one rate is as much too high
        as another one is too low."""

        def excess(value: int) -> float:
            found = errors(scheduler, over, {**values, name: value})
            return max(found) + min(found)

        return _zero(excess, steps)

    def locks(thread: Mapping[str, int], steps: int) -> dict[str, int]:
        names = {name: f"lock_ns.{name}" for name in schedulers if name != NONE}
        return {lock: level(lock, name, loads.deep, thread, steps) for name, lock in names.items()}

    def squares(thread: Mapping[str, int], names: Sequence[str]) -> float:
        values = {**thread, **(locks(thread, _COARSE) if len(names) > 1 else {})}
        return sum(error**2 for name in names for error in errors(name, loads.deep, values))

    thread = _thread(
        per_io, lambda thread: squares(thread, [NONE]), lambda thread: squares(thread, schedulers)
    )
    host |= thread
    wake_ns = level("wake_ns", NONE, [loads.single], {}, _FINE)
    return host | locks({}, _FINE) | {"wake_ns": wake_ns}


def _thread(
    per_io: float,
    alone: Callable[[dict[str, int]], float],
    all_of: Callable[[dict[str, int]], float],
) -> dict[str, int]:
    """The driver's two costs with which the squares of all errors are least: from the best point of
    a grid for the rates without a scheduler, by factors that become smaller."""
    all_of = _kept(all_of)
    steps = [part / (2 * _GRID) for part in range(1, 2 * _GRID, 2)]
    grid = [_whole(per_io * io, 2 * per_io * switch) for io in steps for switch in steps]
    best, factor = min(grid, key=alone), 1.5
    while factor > _LEAST_FACTOR:
        factors = (1 / factor, 1, factor)
        around = [
            _whole(best["driver_ns"] * io, best["switch_ns"] * switch)
            for io in factors
            for switch in factors
        ]
        found = min(around, key=all_of)
        if found == best:
            factor **= 0.5
        best = found
    return best


def _whole(io: float, switch: float) -> dict[str, int]:
    return {"driver_ns": max(round(io), 1), "switch_ns": max(round(switch), 1)}


def _kept(function: Callable[[dict[str, int]], float]) -> Callable[[dict[str, int]], float]:
    """The same function, called once for each value."""
    known: dict[tuple[int, ...], float] = {}

    def asked(values: dict[str, int]) -> float:
        key = tuple(values.values())
        if key not in known:
            known[key] = function(values)
        return known[key]

    return asked


def _page_cache(rates: Rates, loads: Loads) -> dict[str, int]:
    """What a call takes, and what each byte takes, with which the squares of errors are least."""
    times_ns = {load: 1e9 / rates.iops(NONE, load) for load in loads.buffered}
    rows = [[1 / time, load.block_bytes / time] for load, time in times_ns.items()]
    call_ns, of_byte_ns = np.linalg.lstsq(np.array(rows), np.ones(len(rows)), rcond=None)[0]
    return {
        "syscall_ns": max(round(call_ns), 0),
        "copy_mb_s": max(round(1000 / max(of_byte_ns, 1e-3)), 1),
    }


def _zero(excess: Callable[[int], float], steps: int) -> int:
    """The cost at which a falling function is 0, in steps of such a part of it; the end of the
    range if it is not 0 anywhere."""
    least, most = 0, 1024
    if excess(least) <= 0:
        return least
    while most < _LARGEST_NS and excess(most) > 0:
        least, most = most, most * 2
    while most - least > max(2, least // steps):
        middle = (least + most) // 2
        least, most = (middle, most) if excess(middle) > 0 else (least, middle)
    return (least + most) // 2
