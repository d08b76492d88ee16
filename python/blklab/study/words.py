"""Judgements for people, the same on the terminal and in the report."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from blklab.statistics import Interval
from blklab.study.judge import NOT_KNOWN, NOT_REPRODUCED, REPRODUCED, Judgement
from blklab.units import number_text

_SAYS_WHAT = ("MB/s", "MiB/s", "IOPS")
"""Units that say by themselves what is meant."""
_TABLES = ("figures", "ratio")


@dataclass(frozen=True)
class Group:
    """What one claim came to on one disk under one load."""

    text: str
    where: str
    """Disk, load, metric and unit, and how far the measured may be off."""
    source: str
    why: str
    """Reasons for what is not reproduced, if anything is not."""
    rows: tuple[Judgement, ...]

    @property
    def is_table(self) -> bool:
        """Whether figures stand beside figures."""
        return self.rows[0].kind in _TABLES


def groups(judgements: Sequence[Judgement]) -> list[Group]:
    """In the order of the study."""

    def claim(row: Judgement) -> tuple[str, ...]:
        return (row.part, row.text, row.disk, row.workload, row.kind, row.unit)

    made = []
    for _, several in itertools.groupby(judgements, claim):
        rows = tuple(several)
        first = rows[0]
        near = "" if first.tolerance is None else f", within {first.tolerance * 100:g} %"
        where = f"{first.disk}, {first.workload}, {_what(first)}{near}"
        why = " ".join(dict.fromkeys(row.why for row in rows if row.outcome == NOT_REPRODUCED))
        made.append(Group(first.text, where, first.source, why, rows))
    return made


def _what(row: Judgement) -> str:
    """Unit and job, with the metric's name in the unit's place where that says more."""
    unit, comma, job = row.unit.partition(",")
    named = row.metric and row.kind not in _TABLES and unit not in _SAYS_WHAT
    return f"{row.metric if named else unit}{comma}{job}"


def figure(value: Interval | None) -> str:
    """``833 (763 to 972)``; the range only if there is one."""
    if value is None:
        return "-"
    middle, low, high = map(number_text, (value.estimate, value.low, value.high))
    return middle if low == high else f"{middle} ({low} to {high})"


def tally(judgements: Sequence[Judgement]) -> str:
    """How many came out, in a sentence; of each claim's figures one by one."""
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
