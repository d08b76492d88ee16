"""Repeat until the answer is known, or until the time is spent.

After each repeat of everything, the comparison checks whether every disk and workload has its
answer. The intervals for this check and for the end hold at all numbers of repeats together
(`blklab.experiment.statistics`), so frequent checks produce no false winner.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from blklab.base.limits import BUDGET_RUNS_MAX
from blklab.base.units import duration_text
from blklab.domain import results_file
from blklab.domain.comparison import Planned, Setup, plan
from blklab.domain.measurement import Measurement
from blklab.domain.setup import SetupData, StoppingData
from blklab.errors import InputError
from blklab.execute import Executor, carry_out
from blklab.experiment.analyse import analyse
from blklab.experiment.statistics import Verdict, visible
from blklab.experiment.words import factor
from blklab.rigs import Rig

if TYPE_CHECKING:
    from blklab.domain.events import Keeper

_REPEATS_MAX = 1000
"""The maximum, whatever the budget."""
_LONGEST_S = 365 * 86400.0
_TYPICAL = 10
_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
# Typical differences between equal runs: quiet flash or a quiet hard disk, and busier ones.
_SPREADS = (0.02, 0.10)


@dataclass(frozen=True)
class Stopped:
    """The end of a comparison with a budget."""

    budget_s: float
    repeats: int
    why: str
    """For a person."""


def seconds(text: str) -> float:
    """``90s``, ``10m``, ``2h``, ``1d`` or a number of seconds. InputError for anything else."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS_S else (text, "s")
    try:
        value = float(number) * _UNITS_S[unit]
    except ValueError:
        value = 0.0
    if not 0 < value <= _LONGEST_S:
        raise InputError(
            f"--budget: expected a time such as 90s, 10m or 2h, at most 365d, found '{text}'"
        )
    return value


def blocks(setup: Setup) -> list[list[Planned]]:
    """All possible repeats, each with its runs in their order."""
    most = max(1, min(_REPEATS_MAX, BUDGET_RUNS_MAX // replace(setup, repeats=1).runs))
    runs = plan(replace(setup, repeats=most))
    return [list(block) for _, block in groupby(runs, key=lambda planned: planned.repeat)]


def execute_within(
    repeats: list[list[Planned]],
    rig: Rig,
    budget_s: float,
    objective: str,
    executor: Executor,
    done: Callable[[Any], None],
    keeper: Keeper,
    described: SetupData,
    clock: Callable[[], float] = time.monotonic,
) -> results_file.Results:
    """Run repeat after repeat, until every disk and workload has its answer by `objective`, or
    until the time left is shorter than the longest repeat. At least one; `keeper` stores each run,
    and `described` with the final number of repeats."""
    measured: list[Measurement] = []
    start_s, longest_s, count = clock(), 0.0, 0
    why = f"{len(repeats)} repeats are the maximum"
    for block in repeats:
        begun_s = clock()
        keeper.revise({**described, "repeats": count + 1}, (count + 1) * len(block))
        measured += carry_out(block, rig, executor, done, keeper, first=count * len(block))
        count += 1
        longest_s = max(longest_s, clock() - begun_s)
        if why_enough := _why_enough(measured, objective):
            why = why_enough
            break
        if clock() - start_s + longest_s > budget_s:
            why = "the budget is spent"
            break
    stopped = to_json(Stopped(budget_s, count, why))
    described = {**described, "repeats": count, "stopping": stopped}
    keeper.revise(described, len(measured))
    return results_file.Results(described, tuple(sorted(measured, key=_order(repeats[0]))))


def outlook(repeats: int | None, schedulers: int, *, anytime: bool) -> str:
    """The detectable differences, in words, for this many repeats; None if the number is not known
    yet."""
    count = repeats or _TYPICAL
    seen = [(visible(count, spread, schedulers, anytime=anytime), spread) for spread in _SPREADS]
    if any(math.isinf(ratio) for ratio, _ in seen):
        return f"{count} repeat{'s show' if count > 1 else ' shows'} no difference, however large"
    parts = [f"{factor(ratio)} if runs of the same differ by {part:.0%}" for ratio, part in seen]
    return f"{count} repeats show a difference of {', of '.join(parts)}"


def to_json(stopped: Stopped) -> StoppingData:
    """The form in the set-up of results; ``text`` is for display."""
    text = (
        f"{stopped.why} after {stopped.repeats} repeat{'s' * (stopped.repeats != 1)}; "
        f"the budget was {duration_text(stopped.budget_s * 1e9)}"
    )
    return {
        "budget_s": stopped.budget_s,
        "repeats": stopped.repeats,
        "why": stopped.why,
        "text": text,
    }


def _why_enough(measured: list[Measurement], objective: str) -> str:
    """The reason why more repeats would change no answer; empty if they could."""
    verdicts = [c.verdicts[objective] for c in analyse(measured, objective, anytime=True).cells]
    if not all(verdict.is_settled for verdict in verdicts):
        return ""
    ranked = all(isinstance(verdict, Verdict) for verdict in verdicts)
    return "the answer is known" if ranked else "more repeats would not change the answer"


def _order(block: list[Planned]) -> Callable[[Measurement], tuple[int, ...]]:
    """The usual order: by disk, workload, scheduler, then repeat."""
    places = {
        (one.disk.label, one.workload.name, one.scheduler.label): one.place[:3] for one in block
    }

    def key(measured: Measurement) -> tuple[int, ...]:
        return (*places[measured.disk, measured.workload, measured.scheduler], measured.repeat)

    return key
