"""Two sets of comparisons side by side, with the ratios of their figures.

A set is one comparison, or several with their runs taken together. Disks are the same if they have
the same name, else if they are of the same model: so the two results of a disk on two machines are
compared. Runs with the same seeds are compared seed by seed, as within a comparison; runs with
different seeds are compared as two independent samples.

Each disk, workload and scheduler is a separate question: its intervals hold at 95 %, and about five
of a hundred intervals exclude a tie by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from blklab.domain import core
from blklab.domain.latencies import OPERATION_TEXT, RANKED_BY
from blklab.domain.measurement import PERCENTILES, Measurement
from blklab.domain.result import Figure
from blklab.domain.setup import NamedDiskData
from blklab.experiment.analyse import rate_resolution, waited_for
from blklab.experiment.samples import too_few
from blklab.experiment.statistics import (
    Interval,
    independent_ratio,
    is_shown,
    median_interval,
    ratio,
    turned,
)
from blklab.store.read import Comparison

_P99 = PERCENTILES.index(RANKED_BY)


@dataclass(frozen=True)
class Gap:
    """One figure on both sides."""

    first: float
    """Median over the runs, as `second`."""
    second: float
    ratio: Interval | None
    """The second figure divided by the first; None if they are not compared."""
    resolution: float = 1.0
    """The ratio caused by one I/O more or less."""
    why: str = ""
    """The reason if it is not compared."""

    @property
    def matters(self) -> bool:
        """Whether the interval excludes a tie, by a relevant amount."""
        if self.ratio is None:
            return False
        return any(is_shown(gap, self.resolution) for gap in (self.ratio, turned(self.ratio)))


@dataclass(frozen=True)
class Pair:
    """One scheduler on one disk under one workload, on both sides."""

    disk: str
    """Its name in the first set."""
    workload: str
    scheduler: str
    operation: str
    """The operation of `p99`; empty if none is known on both sides."""
    runs: tuple[int, int]
    paired: bool
    """Whether runs were compared seed by seed."""
    bytes_per_s: Gap | None
    """None if a run has no throughput."""
    p99_ns: Gap | None
    figure: Gap | None = None
    """For a program other than fio: the figure that ranks it."""
    figure_unit: str | None = None


@dataclass(frozen=True)
class Difference:
    """The common part of both sets, side by side."""

    pairs: tuple[Pair, ...]
    only_first: tuple[str, ...]
    """Disk, workload and scheduler missing in the other set, in words."""
    only_second: tuple[str, ...]
    notes: tuple[str, ...]
    """Hidden differences between the two."""


def difference(first: Sequence[Comparison], second: Sequence[Comparison]) -> Difference:
    """Every disk, workload and scheduler on both sides, in the order of the first."""
    names = _matched(first, second)
    ours = _cells(first, {})
    theirs = _cells(second, names)
    pairs = [_pair(key, ours[key], theirs[key]) for key in ours if key in theirs]
    return Difference(
        tuple(pairs),
        tuple(_told(key) for key in ours if key not in theirs),
        tuple(_told(key) for key in theirs if key not in ours),
        tuple(_notes(first, second, names)),
    )


_Key = tuple[str, str, str]


def _told(key: _Key) -> str:
    disk, workload, scheduler = key
    return f"{scheduler} on {disk} under {workload}"


def _matched(first: Sequence[Comparison], second: Sequence[Comparison]) -> dict[str, str]:
    """Names in the first set of the second set's disks."""
    ours, theirs = _disks(first), _disks(second)
    by_model: dict[Any, str] = {}
    for label, disk in ours.items():
        by_model.setdefault(_model(disk), label)
    return {
        label: by_model.get(_model(disk), label)
        for label, disk in theirs.items()
        if label not in ours
    }


def _disks(several: Sequence[Comparison]) -> dict[str, NamedDiskData]:
    return {disk["label"]: disk for one in several for disk in one.setup["disks"]}


def _model(disk: NamedDiskData) -> Any:
    """The model's full name and its changed keys."""
    changes = tuple(sorted(tuple(change) for change in disk.get("overrides", ())))
    return disk.get("name") or disk["label"], changes


def _cells(
    several: Sequence[Comparison], names: Mapping[str, str]
) -> dict[_Key, list[Measurement]]:
    """Runs by seed; duplicates, such as a repeated simulation, count once."""
    found: dict[_Key, list[Measurement]] = {}
    for one in several:
        for run in one.results().runs:
            key = (names.get(run.disk, run.disk), run.workload, run.scheduler)
            runs = found.setdefault(key, [])
            if not any(_same(run, other) for other in runs):
                runs.append(run)
    for runs in found.values():
        runs.sort(key=lambda run: run.seed)
    return found


def _same(one: Measurement, other: Measurement) -> bool:
    return (one.seed, one.duration_ns, one.bytes_per_s, one.latencies) == (
        other.seed,
        other.duration_ns,
        other.bytes_per_s,
        other.latencies,
    )


def _pair(key: _Key, ours: Sequence[Measurement], theirs: Sequence[Measurement]) -> Pair:
    operation = waited_for({"first": ours, "second": theirs})
    paired = [run.seed for run in ours] == [run.seed for run in theirs]

    def p99(runs: Sequence[Measurement]) -> list[float]:
        return [float(max(run.latencies[operation].percentiles_ns[_P99], 1)) for run in runs]

    def few() -> str:
        return too_few(
            RANKED_BY,
            min(run.latencies[operation].ios for run in (*ours, *theirs)),
            OPERATION_TEXT[operation],
        )

    finest = max(map(rate_resolution, (*ours, *theirs)))
    figures = [[run.figure for run in side if run.figure] for side in (ours, theirs)]
    units = {figure.unit for side in figures for figure in side}
    alike = len(units) == 1 and [len(side) for side in figures] == [len(ours), len(theirs)]
    mine, other = ([figure.value for figure in side] for side in figures)
    rates = ([run.bytes_per_s for run in ours], [run.bytes_per_s for run in theirs])
    return Pair(
        *key,
        operation,
        (len(ours), len(theirs)),
        paired,
        _gap(*rates, paired, finest) if all(rate > 0 for side in rates for rate in side) else None,
        _gap(p99(ours), p99(theirs), paired, why=few()) if operation else None,
        _gap(mine, other, paired, finest) if alike and _are_positive(figures) else None,
        units.pop() if alike else None,
    )


def _are_positive(figures: Sequence[Sequence[Figure]]) -> bool:
    return all(figure.value > 0 for side in figures for figure in side)


def _gap(
    ours: Sequence[float],
    theirs: Sequence[float],
    paired: bool,
    resolution: float = 1.0,
    *,
    why: str = "",
) -> Gap:
    compare = ratio if paired else independent_ratio
    return Gap(
        median_interval(ours)[0].estimate,
        median_interval(theirs)[0].estimate,
        None if why else compare(theirs, ours),
        resolution,
        why,
    )


def _notes(
    first: Sequence[Comparison], second: Sequence[Comparison], names: Mapping[str, str]
) -> Iterator[str]:
    for theirs, ours in names.items():
        if theirs != ours:
            yield f"{ours} of the first and {theirs} of the second are of the same model"
    ours_said, theirs_said = _job_files(first), _job_files(second)
    for name, texts in ours_said.items():
        if name in theirs_said and len(texts | theirs_said[name]) > 1:
            yield f"the job files of {name} are not the same"
    for what, of in (("rigs", _rig), ("hosts", _host), ("versions of blklab", _version)):
        mine, other = ({told for one in side for told in of(one)} for side in (first, second))
        if mine != other:
            yield f"{what}: {_listed(mine - other)}; {_listed(other - mine)}"
    for one in (*first, *second):
        if one.listed.kept < one.listed.planned:
            yield f"{one.listed.id} has {one.listed.kept} of {one.listed.planned} runs"


def _job_files(several: Sequence[Comparison]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for one in several:
        for load in one.setup["workloads"]:
            found.setdefault(load["name"], set()).add(load["text"])
    return found


def _rig(one: Comparison) -> list[str]:
    text = str((one.setup.get("rig_setup") or {}).get("text") or "")
    return [f"{one.listed.rig} ({text})" if text else one.listed.rig]


def _host(one: Comparison) -> list[str]:
    return [f"{name}={core.host_text(name, value)}" for name, value in one.setup["host"].items()]


def _version(one: Comparison) -> list[str]:
    return [str(one.setup["versions"]["blklab"])]


def _listed(names: Set[str]) -> str:
    return ", ".join(sorted(names)) or "none of these"
