"""All published figures of a study and the measured ones, in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blklab.base.units import number_text
from blklab.experiment.metrics import METRICS
from blklab.experiment.statistics import Interval
from blklab.study.judge import RANKING, Judgement
from blklab.study.model import Study
from blklab.study.words import factor_text

_SCHEDULERS_LEAST = 3
"""A claim about fewer is no chart."""


@dataclass(frozen=True)
class Cell:
    """A scheduler's figures, as texts."""

    published: str
    measured: str
    factor: str
    outcome: str


@dataclass(frozen=True)
class Row:
    """A chart: a claim on a disk."""

    part: str
    what: str
    unit: str
    better: str
    cells: Mapping[str, Cell]
    """By scheduler."""
    order: str
    """What came of the order of its schedulers, in words."""


@dataclass(frozen=True)
class Overview:
    """The table; without rows if the study compares no figures of several schedulers."""

    schedulers: tuple[str, ...]
    rows: tuple[Row, ...]


def overview(study: Study, judgements: Sequence[Judgement]) -> Overview:
    """In the order of the study."""
    charts: dict[tuple[str, ...], list[Judgement]] = {}
    for one in judgements:
        if one.kind in ("figures", RANKING):
            place = (one.part, one.text, one.disk, one.workload, one.metric)
            charts.setdefault(place, []).append(one)
    rows = [
        _row(several)
        for several in charts.values()
        if sum(one.kind == "figures" for one in several) >= _SCHEDULERS_LEAST
    ]
    named = dict.fromkeys(name for part in study.parts for name in part.schedulers)
    there = {name for row in rows for name in row.cells}
    return Overview(tuple(name for name in named if name in there), tuple(rows))


def _row(several: Sequence[Judgement]) -> Row:
    first = several[0]
    metric = METRICS.get(first.metric)
    better = "" if metric is None else "higher" if metric.more_is_better else "lower"
    cells = {
        one.subject: Cell(
            _text(one.published),
            _text(one.measured) + "*" * bool(one.ran_on),
            factor_text(one.factor),
            one.outcome,
        )
        for one in several
        if one.kind == "figures"
    }
    order = "; ".join(one.found for one in several if one.kind == RANKING)
    return Row(first.part, f"{first.text}, {first.disk}", first.unit, better, cells, order)


def _text(value: Interval | None) -> str:
    return "-" if value is None else number_text(value.estimate)
