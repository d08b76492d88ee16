"""Whether one of two schedulers is better, in words, with its ratio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from blklab.experiment.statistics import Answer, Interval, Verdict, turned

Change = Literal["better", "worse", "no difference", "not known"]


def change(answer: Answer, after: str) -> tuple[Change, Interval | None]:
    """What `after` is, compared with the other one of two schedulers, and how many times better;
    None without a verdict."""
    if not isinstance(answer, Verdict):
        return "not known", None
    [gap] = answer.behind.values()
    ratio = gap if answer.best == after else turned(gap)
    if answer.winner is not None:
        return ("better" if answer.winner == after else "worse"), ratio
    return ("no difference" if answer.is_settled else "not known"), ratio


def together(
    changes: Sequence[tuple[Change, Interval | None]],
) -> tuple[Change, Interval | None]:
    """One answer for several ways to measure the same load, at least one; the last one has the
    estimate. It is better only if it is so in every way, and worse if it is so in any; the interval
    reaches from the lowest end to the highest."""
    words = [word for word, _ in changes]
    known = [ratio for _, ratio in changes if ratio is not None]
    found: Change = "worse" if "worse" in words else words[0]
    if found != "worse" and len(set(words)) > 1:
        found = "not known"
    if len(known) < len(changes):
        return found, None
    low, high = min(one.low for one in known), max(one.high for one in known)
    return found, Interval(known[-1].estimate, low, high)
