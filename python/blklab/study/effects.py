"""Which tunables matter for which loads, and which never: the answer of a part with `tune`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from blklab.domain import specs
from blklab.domain.measurement import Measurement
from blklab.domain.space import ends_of
from blklab.experiment import statistics
from blklab.experiment.analyse import waited_for
from blklab.experiment.metrics import METRICS, Metric, Scope, figures
from blklab.experiment.statistics import Interval
from blklab.experiment.words import factor
from blklab.study.model import Outcome, Part

_JUDGED = ("mb_s", "p99_us")
"""Throughput, and the latency of what is waited for."""
_WORDS = {"mb_s": "throughput", "p99_us": "p99"}


@dataclass(frozen=True)
class Effect:
    """A tunable at one end of its range under one load on one disk, where it is shown to matter."""

    tunable: str
    value: int
    disk: str
    workload: str
    figure: str
    """``throughput`` or ``p99``."""
    gain: Interval
    """How many times better than with all tunables as they are."""

    @property
    def text(self) -> str:
        """``p99 2.1 times worse with fifo_batch=0``."""
        is_better = self.gain.estimate > 1.0
        size = factor(self.gain.estimate if is_better else 1.0 / self.gain.estimate)
        way = "better" if is_better else "worse"
        return f"{self.figure} {size} {way} with {self.tunable}={self.value}"


@dataclass(frozen=True)
class Effects:
    """The tunables of one scheduler."""

    scheduler: str
    matter: tuple[Effect, ...]
    """By tunable, then disk and load; the tunables with the largest effect first. Of each place and
    figure the end with the larger effect."""
    never: tuple[str, ...]
    """Tunables that changed no figure of any run, to the last digit."""
    not_shown: tuple[str, ...]
    """Tunables that changed figures, but no more than chance or 2 %."""
    places: int
    """Disks times loads."""

    @property
    def by_tunable(self) -> dict[str, list[Effect]]:
        """The effects that matter, in their order."""
        found: dict[str, list[Effect]] = {}
        for one in self.matter:
            found.setdefault(one.tunable, []).append(one)
        return found


def effects(part: Part, outcome: Outcome) -> list[Effects]:
    """One for each scheduler of `part.tune` that ran."""
    if outcome.results is None or outcome.rig != "sim":
        return []
    by_place: dict[tuple[str, str], dict[str, list[Measurement]]] = {}
    for run in outcome.results.runs:
        place = by_place.setdefault((run.disk, run.workload), {})
        place.setdefault(run.scheduler, []).append(run)
    return [_effects(name, by_place) for name in part.tune]


def _effects(
    name: str, by_place: Mapping[tuple[str, str], Mapping[str, list[Measurement]]]
) -> Effects:
    base = specs.scheduler(name)
    ends = ends_of(base)
    judged = len(ends) * len(by_place) * len(_JUDGED)
    level = statistics.joint_level(judged)
    largest: dict[tuple[str, str, str, str], Effect] = {}
    changed: set[str] = set()
    for (disk, workload), runs in by_place.items():
        scope = Scope(waited_for(runs))
        for tunable, value, spec in ends:
            for metric in map(METRICS.__getitem__, _JUDGED):
                pair = [figures(metric, runs[one.label], scope) for one in (spec, base)]
                if pair[0] is None or pair[1] is None or pair[0] == pair[1]:
                    continue
                changed.add(tunable)
                effect = Effect(
                    *(tunable, value, disk, workload, _WORDS[metric.name]),
                    _gain(metric, pair[0], pair[1], level),
                )
                key = (tunable, disk, workload, metric.name)
                if _matters(effect.gain) and _size(effect) > _size(largest.get(key)):
                    largest[key] = effect
    most: dict[str, float] = {}
    for one in largest.values():
        most[one.tunable] = max(most.get(one.tunable, 1.0), _size(one))
    every = list(dict.fromkeys(tunable for tunable, _, _ in ends))
    return Effects(
        name,
        tuple(
            sorted(largest.values(), key=lambda one: (-most[one.tunable], one.tunable, -_size(one)))
        ),
        tuple(one for one in every if one not in changed),
        tuple(one for one in every if one in changed and one not in most),
        len(by_place),
    )


def _gain(metric: Metric, moved: Sequence[float], base: Sequence[float], level: float) -> Interval:
    pair = (moved, base) if metric.more_is_better else (base, moved)
    return statistics.ratio(*pair, level)


def _matters(gain: Interval) -> bool:
    return any(map(statistics.is_shown, (gain, statistics.turned(gain))))


def _size(effect: Effect | None) -> float:
    return 1.0 if effect is None else max(effect.gain.estimate, 1.0 / effect.gain.estimate)


def lines(found: Effects) -> list[str]:
    """The answer in sentences, the same on the terminal and in the report."""
    told = [
        f"{tunable}, in {len(_places(several))} of {found.places} cases. "
        f"Most: {several[0].text} ({several[0].disk}, {several[0].workload})."
        for tunable, several in found.by_tunable.items()
    ]
    if found.not_shown:
        told.append(f"Not shown to matter: {', '.join(found.not_shown)}.")
    if found.never:
        told.append(f"Never, every figure is the same: {', '.join(found.never)}.")
    return told


def _places(several: Iterable[Effect]) -> set[tuple[str, str]]:
    return {(one.disk, one.workload) for one in several}
