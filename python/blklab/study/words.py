"""Judgements in words, the same on the terminal and in the report."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from blklab.base.units import number_text
from blklab.experiment.metrics import METRICS
from blklab.experiment.statistics import Interval
from blklab.study.effects import effects as tunables
from blklab.study.effects import lines as effect_lines
from blklab.study.judge import NOT_KNOWN, NOT_REPRODUCED, REPRODUCED, Judgement
from blklab.study.trust import Trust, trust

__all__ = [
    "Statement",
    "StatementPlace",
    "Trust",
    "effect_lines",
    "factor_text",
    "figure",
    "statements",
    "tally",
    "trust",
    "tunables",
]

_SAYS_WHAT = ("MB/s", "MiB/s", "KiB/s", "IOPS")
"""Units that need no metric's name."""
_TABLES = ("figures", "ratio", "difference")


@dataclass(frozen=True)
class StatementPlace:
    """The verdict of a statement on one disk under one workload."""

    where: str
    """Disk, workload, metric and unit, and the tolerance."""
    rows: tuple[Judgement, ...]

    @property
    def is_table(self) -> bool:
        """Whether published and measured figures are shown side by side."""
        return self.rows[0].kind in _TABLES

    @property
    def explained(self) -> str:
        """What the run with the figure that is furthest from the published one did; empty if all
        are near."""
        far = [
            (abs(math.log(row.factor)), row) for row in self.rows if row.explained and row.factor
        ]
        return max(far, key=lambda pair: pair[0])[1].explained if far else ""

    @property
    def most(self) -> float:
        """The largest published or measured figure, for bars; 0 if the place has none."""
        if self.rows[0].kind != "figures":
            return 0.0
        both = (value for row in self.rows for value in (row.published, row.measured))
        return max((value.estimate for value in both if value is not None), default=0.0)

    @property
    def better(self) -> str:
        """``lower`` or ``higher``: which figures are better; empty if that is not known."""
        metric = METRICS.get(self.rows[0].metric)
        return "" if metric is None else "higher" if metric.more_is_better else "lower"


@dataclass(frozen=True)
class Statement:
    """A published statement, and its verdict at each place where it was judged."""

    text: str
    source: str
    why: str
    """Reasons, if a place is not reproduced."""
    places: tuple[StatementPlace, ...]


def statements(judgements: Iterable[Judgement]) -> list[Statement]:
    """In the order of the study; each statement once, with its places."""
    made = []
    for (_, text, source), several in itertools.groupby(
        judgements, lambda row: (row.part, row.text, row.source)
    ):
        rows = list(several)
        why = " ".join(dict.fromkeys(row.why for row in rows if row.outcome == NOT_REPRODUCED))
        made.append(Statement(text, source, why, tuple(_places(rows))))
    return made


def _places(judgements: Iterable[Judgement]) -> Iterator[StatementPlace]:
    def place(row: Judgement) -> tuple[str, ...]:
        return (row.disk, row.workload, row.kind, row.unit)

    for _, several in itertools.groupby(judgements, place):
        rows = tuple(several)
        first = rows[0]
        near = "" if first.tolerance is None else f", within {first.tolerance * 100:g} %"
        yield StatementPlace(f"{first.disk}, {first.workload}, {_what(first)}{near}", rows)


def _what(row: Judgement) -> str:
    """Unit and job; the metric's name replaces the unit where that is clearer."""
    unit, comma, job = row.unit.partition(",")
    named = row.metric and row.kind not in _TABLES and unit not in _SAYS_WHAT
    return f"{row.metric if named else unit}{comma}{job}"


def factor_text(value: float | None) -> str:
    """``0.93``; ``-`` if it is not known."""
    return "-" if value is None else number_text(value)


def figure(value: Interval | None) -> str:
    """``833 (763 to 972)``; the range only if there is one, as far as it is known."""
    if value is None:
        return "-"
    middle, low, high = map(number_text, (value.estimate, value.low, value.high))
    if math.isinf(value.high):
        return f"{middle} ({f'{low} or more' if value.low > 0 else 'interval not known'})"
    return middle if low == high else f"{middle} ({low} to {high})"


def tally(judgements: Sequence[Judgement]) -> str:
    """The number of reproduced statements, in a sentence; each figure of a claim counts."""
    if not judgements:
        return "Nothing was published to compare with."
    count = {
        name: sum(row.outcome == name for row in judgements)
        for name in (REPRODUCED, NOT_REPRODUCED, NOT_KNOWN)
    }
    return (
        f"Of {len(judgements)} published figures and statements "
        + ", ".join(f"{number} {name}" for name, number in count.items())
        + "."
    )
