"""How far a simulation beside the kernel may be trusted: schedulers that run both ways."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from blklab.base.units import number_text
from blklab.domain.measurement import Measurement
from blklab.experiment.analyse import waited_for
from blklab.experiment.metrics import METRICS, Metric, Scope, figures
from blklab.study.model import Outcome, Part

NEAR = 0.05
"""The simulation is trusted within this part of the kernel's figures."""


@dataclass(frozen=True)
class Both:
    """A scheduler's figure on the kernel rig and simulated, in `Trust.unit`."""

    scheduler: str
    kernel: float
    simulated: float

    @property
    def off(self) -> float:
        """How far the simulated figure is off, relative to the kernel's."""
        return self.simulated / self.kernel - 1.0


@dataclass(frozen=True)
class Trust:
    """A workload on a disk, under the schedulers that ran both ways."""

    disk: str
    workload: str
    unit: str
    rows: tuple[Both, ...]
    turned: tuple[str, ...]
    """Pairs that the kernel puts further apart than `NEAR`, in the other order."""
    cpu_s: tuple[float, float, float] | None = None
    """The CPU time of a program in the kernel's runs, the least and the most, and in its recording;
    None if it takes less than `NEAR` of the time."""

    @property
    def is_near(self) -> bool:
        """Whether all figures are within `NEAR`."""
        return all(abs(row.off) <= NEAR for row in self.rows)

    @property
    def text(self) -> str:
        """The verdict, in words."""
        far = max(self.rows, key=lambda row: abs(row.off))
        most = f"at most {abs(far.off) * 100:.1f} % off ({far.scheduler})"
        order = f"another order of {', '.join(self.turned)}" if self.turned else "the same order"
        said = f"within {NEAR * 100:g} %" if self.is_near else f"not within {NEAR * 100:g} %"
        return f"{said}: {most}, {order}{self._cpu}"

    @property
    def _cpu(self) -> str:
        if self.cpu_s is None:
            return ""
        least, most, recorded = map(number_text, self.cpu_s)
        return f"; CPU work takes {least} to {most} s in the kernel, and {recorded} s as recorded"


def trust(part: Part, outcome: Outcome) -> list[Trust]:
    """One for each disk and workload; none if nothing was simulated beside the kernel."""
    if outcome.results is None or outcome.simulated is None:
        return []
    metrics = list(dict.fromkeys(claim.metric for claim in part.claims if claim.kind == "figures"))
    found = []
    for disk, workload in _places(outcome.results.runs):
        sides = [
            _by_scheduler(run for run in runs if (run.disk, run.workload) == (disk, workload))
            for runs in (outcome.results.runs, outcome.simulated.runs)
        ]
        metric = METRICS[metrics[0]] if metrics else METRICS["mb_s"]
        if rows := _both(metric, *sides):
            turned = tuple(_turned(rows))
            found.append(Trust(disk, workload, metric.unit, rows, turned, _cpu_s(*sides)))
    return found


def _places(runs: Sequence[Measurement]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((run.disk, run.workload) for run in runs))


def _by_scheduler(runs: Iterable[Measurement]) -> dict[str, list[Measurement]]:
    found: dict[str, list[Measurement]] = {}
    for run in runs:
        found.setdefault(run.scheduler, []).append(run)
    return found


def _both(
    metric: Metric,
    kernel: Mapping[str, list[Measurement]],
    simulated: Mapping[str, list[Measurement]],
) -> tuple[Both, ...]:
    rows = []
    for name in kernel:
        if name not in simulated:
            continue
        means = []
        for runs in (kernel[name], simulated[name]):
            values = figures(metric, runs, Scope(waited_for({name: runs})))
            means.append(math.nan if values is None else fmean(values))
        if not any(map(math.isnan, means)):
            rows.append(Both(name, *means))
    return tuple(rows)


def _cpu_s(
    kernel: Mapping[str, list[Measurement]], simulated: Mapping[str, list[Measurement]]
) -> tuple[float, float, float] | None:
    sides = [
        [run for several in side.values() for run in several if run.costs and run.costs.cpu]
        for side in (kernel, simulated)
    ]
    if not all(sides):
        return None
    there, recorded = (list(map(_cpu_ns, side)) for side in sides)
    if max(there) <= NEAR * min(run.duration_ns for run in sides[0]):
        return None
    return min(there) / 1e9, max(there) / 1e9, fmean(recorded) / 1e9


def _cpu_ns(run: Measurement) -> int:
    cpu = run.costs and run.costs.cpu
    return cpu.user_ns + cpu.kernel_ns if cpu else 0


def _turned(rows: Sequence[Both]) -> list[str]:
    return [
        f"{one.scheduler} and {other.scheduler}"
        for one, other in itertools.combinations(rows, 2)
        if abs(math.log(one.kernel / other.kernel)) > math.log1p(NEAR)
        and (one.kernel - other.kernel) * (one.simulated - other.simulated) <= 0
    ]
