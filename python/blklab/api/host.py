"""``blklab.measure_host``: this machine's CPU costs of I/O, as values of the simulator's host."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blklab.api.listener import SILENT, Listener
from blklab.calibration import fit
from blklab.calibration.fit import NONE, SCHEDULERS, Loads, Rates
from blklab.calibration.judge import BAR, Prediction, Swap, swaps
from blklab.calibration.load import DEEP, Load, Measured, median
from blklab.calibration.measure import bench
from blklab.domain import core
from blklab.domain.experiment import Disk
from blklab.errors import InputError
from blklab.host.machine import cpu_model, fio_version

ROUNDS = 4
_OTHERS_MAX = 0.05


@dataclass(frozen=True)
class MeasuredHost:
    """The costs of a machine's I/O, and how well the simulator predicts its rates with them."""

    values: Mapping[str, int]
    """By name, for the argument `host` of `blklab.simulate`."""
    about: Mapping[str, str | int | float]
    """The machine, the device and the conditions."""
    disk: Disk
    """The model of the device."""
    rates: Mapping[str, float]
    """The measured IOPS that the values come from."""
    predictions: tuple[Prediction, ...]
    """Other loads, measured in turns with them and simulated; empty without a check."""

    @property
    def not_modelled(self) -> str:
        """Why some predictions may be far off; empty if there is no such load."""
        if all(row.load.is_modelled for row in self.predictions):
            return ""
        return (
            f"not modelled: fewer than {DEEP} I/Os in flight for each job; Linux keeps a process "
            "and the threads that work for it on one CPU then"
        )

    @property
    def off(self) -> list[Prediction]:
        """Predictions beyond the bar of 15 %."""
        return [row for row in self.predictions if row.is_off]

    @property
    def swaps(self) -> list[Swap]:
        """Schedulers in another order than measured."""
        return swaps(self.predictions)

    @property
    def good(self) -> bool:
        """Every prediction is within the bar, in the measured order."""
        return not (self.off or self.swaps)

    @property
    def file(self) -> str:
        """The host file, in TOML."""
        head = (
            f"Costs of I/O, measured by blklab host measure on {self.about['cpu']}.\n"
            "Use it with --host @FILE. The model of the measured device:\n"
            f"--disk {self.disk.label}"
        )
        lines = [f"# {line}" for line in head.splitlines()]
        values = {name: core.host_text(name, value) for name, value in self.values.items()}
        lines += ["", "[host]", *(f"{name} = {value}" for name, value in values.items())]
        lines += [
            "",
            "[measured]",
            *(f"{name} = {_toml(value)}" for name, value in self.about.items()),
        ]
        lines += ["", "[measured.iops]", *(f"{_toml(k)} = {v:.0f}" for k, v in self.rates.items())]
        return "\n".join(lines) + "\n"

    def to_json(self) -> dict[str, Any]:
        """Plain data, as ``blklab host measure --json`` prints it."""
        return {
            "format": 1,
            "host": dict(self.values),
            "measured": dict(self.about),
            "disk": self.disk.label,
            "iops": dict(self.rates),
            "bar": BAR,
            "good": self.good,
            "predictions": [
                {
                    "scheduler": row.scheduler,
                    "load": row.load.text,
                    "measured_iops": list(row.measured),
                    "simulated_iops": row.simulated,
                    "error": row.error,
                    "modelled": row.load.is_modelled,
                }
                for row in self.predictions
            ],
            "swaps": [swap.text for swap in self.swaps],
        }


def measure_host(
    *,
    device: str | None = None,
    schedulers: Sequence[str] = SCHEDULERS,
    rounds: int = ROUNDS,
    check: bool = False,
    first: bool = False,
    listener: Listener = SILENT,
) -> MeasuredHost:
    """Measure the costs with fio on a new device of the kernel's own, which is removed afterwards.

    Args:
        device: ``null_blk`` or ``loop``; None is the first of them that this machine has.
        schedulers: those whose cost is measured.
        rounds: how often each load runs.
        check: measure other loads too, and compare them with the simulator.
        first: fio and the kernel's threads that work for it run before all other programs.
        listener: notes and progress.

    Raises:
        blklab.errors.InputError: this user may not make a device, or the machine has none.
        blklab.errors.RunError: the kernel refuses a step, or fio fails.
    """
    for name in schedulers:
        if name not in SCHEDULERS:
            raise InputError(
                f"no scheduler '{name}' is measured; there are: {', '.join(SCHEDULERS)}"
            )
    cpus = len(os.sched_getaffinity(0))
    loads = Loads.of(cpus)
    with bench(device, schedulers, listener.note, first=first) as ready:
        known = tuple(dict.fromkeys((NONE, *ready.schedulers)))
        wanted = loads.wanted(known)
        others = [(name, load) for load in checked_loads() for name in known] if check else []
        others += [(NONE, load) for load in _BUFFERED] if check else []
        total = (len(wanted) + len(others)) * rounds
        disk = fit.device_model(ready.device.tags)
        with listener.runs(total, f"fio on {ready.device.name} ({ready.device.kind})") as done:
            clock_ns = ready.clock_ns()
            # In turns: a shared machine may have another speed a minute later.
            rows, fresh = ready.measure((wanted, others), rounds, lambda: done(None))
        rates = Rates(rows)
        kernel = core.newest_kernel_before(platform.release())
        values = fit.costs(rates, loads, known, cpus, clock_ns, disk, kernel=kernel)
        kind, noise = ready.device.kind, median(ready.others)
    if noise > _OTHERS_MAX:
        listener.note(
            f"other programs used {noise:.0%} of the CPUs: the costs are too high; measure on an "
            "idle machine" + ("" if first else ", or with --first")
        )
    about: dict[str, str | int | float] = {
        "device": kind,
        "disk": disk.label,
        "kernel": platform.release(),
        "cpu": cpu_model() or platform.machine(),
        "fio": fio_version() or "",
        "rounds": rounds,
        "first": int(first),
        "others_percent": round(100 * noise, 1),
    }
    return MeasuredHost(
        values, about, disk, _iops(rates, wanted), _predictions(fresh, disk, values)
    )


_BUFFERED = (Load(1, block_bytes=65536, buffered=True), Load(2, buffered=True))


def checked_loads() -> list[Load]:
    """Loads other than those that the costs come from, and these again by number of jobs."""
    others = [Load(3), Load(2, block_bytes=8192, depth=64), Load(3, depth=16)]
    return [*(Load(jobs) for jobs in (1, 2, 4, 8)), *others]


def _iops(rates: Rates, wanted: Sequence[tuple[str, Load]]) -> dict[str, float]:
    return {f"{name}, {load.text}": rates.iops(name, load) for name, load in wanted}


def _predictions(
    fresh: Mapping[tuple[str, Load], Sequence[Measured]], disk: Disk, host: Mapping[str, int]
) -> tuple[Prediction, ...]:
    return tuple(
        Prediction(
            scheduler,
            load,
            tuple(one.iops for one in runs),
            fit.simulated(load, scheduler, disk, host),
        )
        for (scheduler, load), runs in fresh.items()
    )


def _toml(value: str | float) -> str:
    return json.dumps(value) if isinstance(value, str) else str(value)
