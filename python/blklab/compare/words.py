"""Verdicts in words, the same on the terminal and in the report."""

from __future__ import annotations

import math
from collections.abc import Sequence

from blklab.statistics import MATTERS, Verdict

_NO_DIFFERENCE = "no difference that matters"
# From here on, what could not be seen may well be worth seeing.
_COARSE = 1.10
_HUGE = 1000.0
"""So few runs do not tell by how much more."""


def short(verdict: Verdict | None) -> str:
    """For a table: a name, or that there is none."""
    if verdict is None:
        return "not measured"
    if verdict.winner:
        return verdict.winner
    if not verdict.behind or len(verdict.leads) > len(verdict.behind):
        if verdict.behind and verdict.visible >= _COARSE:
            return "not known"
        return "no difference" if verdict.behind else verdict.best
    behind = sorted(name for name in verdict.behind if name not in verdict.leads)
    leads = " or ".join(sorted(verdict.leads))
    others = f"any but {_listed(behind)}"
    return min(leads, others, key=len)


def sentence(verdict: Verdict | None, objective: str) -> str:
    """One sentence: who, by how much, and how sure."""
    if verdict is None:
        return "not measured: no run, or no I/O whose latency could be compared"
    if not verdict.behind:
        return f"{verdict.best}: nothing to compare it with"
    if math.isinf(verdict.visible):
        return (
            "not known: so few runs cannot show a difference; use more --repeats or a longer "
            "--budget"
        )
    quality = {"throughput": "faster", "latency": "quicker to answer"}.get(objective, "better")
    if verdict.winner:
        gaps = verdict.behind
        nearest = min(gaps, key=lambda name: gaps[name].estimate)
        gap = gaps[nearest]
        low, high = factor(gap.low), factor(gap.high)
        sure = "the same in every run" if low == high else f"{low} to {high}"
        return f"{verdict.winner} is {factor(gap.estimate)} {quality} than {nearest} ({sure})"
    if len(verdict.leads) <= len(verdict.behind):
        behind = [name for name in verdict.behind if name not in verdict.leads]
        answer = f"{_NO_DIFFERENCE} between them" if _is_fine(verdict) else "not known which"
        return (
            f"{_listed(sorted(verdict.leads))}: {answer}"
            f" ({_seen(verdict)}); {_listed(behind)} {'is' if len(behind) == 1 else 'are'} behind"
        )
    return f"{_NO_DIFFERENCE if _is_fine(verdict) else 'not known'} ({_seen(verdict)})"


def _is_fine(verdict: Verdict) -> bool:
    """Whether a difference that is worth seeing would have been seen."""
    return verdict.visible < _COARSE


def factor(ratio: float) -> str:
    """A ratio: ``3.4 %`` up to a doubling, ``2.3 times`` beyond, if that says anything."""
    if math.isinf(ratio):
        return "any number of times"
    if ratio > _HUGE:
        return f"more than {_HUGE:.0f} times"
    change = (ratio - 1.0) * 100.0
    return f"{change:.1f} %" if ratio < 2 else f"{ratio:.1f} times"  # noqa: PLR2004


def _seen(verdict: Verdict) -> str:
    size = factor(max(verdict.visible, MATTERS))
    if _is_fine(verdict):
        return f"one of {size} would have shown"
    return f"only a difference of {size} would have shown; more repeats see smaller ones"


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
