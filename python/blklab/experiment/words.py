"""Verdicts in words, the same on the terminal and in the report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from blklab.base.units import duration_text, number_text, size_text
from blklab.domain.costs import OperationCosts
from blklab.domain.latencies import PERCENTILES
from blklab.experiment.hinges import DISKS_LEAST, Hinge
from blklab.experiment.samples import needed
from blklab.experiment.statistics import MATTERS, Answer, Unranked, Verdict

DRAWN = "each repeat has a disk drawn from the ranges of its estimates"
"""For comparisons with drawn disks."""
COSTS = (
    "data",
    "journal",
    "metadata",
    "read",
    "writes",
    "flushes",
    "FUA",
    "commits",
    "written",
    "CPU",
)
"""Heads of `costs_texts`."""
NO_DIFFERENCE = "no significant difference"
# A larger undetected difference may well be relevant.
_COARSE = 1.10
_HUGE = 1000.0
_DOUBLE = 2.0
"""With few runs, larger ratios have no useful bound."""


def costs_head(rows: Iterable[OperationCosts | None]) -> str:
    """What the table of these costs is about."""
    is_whole = any(costs is not None and costs.is_whole for costs in rows)
    return (
        f"What {'a run' if is_whole else 'an operation'} costs the disk (written: bytes written by "
        "byte of write calls)"
    )


def costs_texts(costs: OperationCosts) -> list[str]:
    """The figures under `COSTS`; a dash if not known."""
    sizes = (costs.data_bytes, costs.journal_bytes, costs.metadata_bytes, costs.read_bytes)
    counts = (costs.writes, costs.flushes, costs.fua, costs.commits)
    return [
        *map(size_text, sizes),
        *map(number_text, counts),
        "-" if math.isnan(costs.amplification) else f"{number_text(costs.amplification)}x",
        duration_text(costs.cpu_ns),
    ]


def short(verdict: Answer) -> str:
    """For a table: a name, or words for none."""
    if isinstance(verdict, Unranked):
        return verdict.short
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


def sentence(verdict: Answer, objective: str) -> str:
    """One sentence: the winner, its lead, and the interval."""
    if isinstance(verdict, Unranked):
        return verdict.why
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
        same = factor(gap.low) == factor(gap.high)
        ends = interval_text(gap.estimate, gap.low, gap.high)
        sure = "the same in every run" if same else ends
        return f"{verdict.winner} is {factor(gap.estimate)} {quality} than {nearest} ({sure})"
    depending = [name for name in verdict.leads if verdict.depends_on_disk(name)]
    if depending and len(depending) == len(verdict.leads) - 1:
        most = max(depending, key=lambda name: verdict.elsewhere[name])
        return (
            f"it depends on the disk: {verdict.best} is {factor(verdict.behind[most].estimate)} "
            f"{quality} than {most} on average, but {most} is ahead on "
            f"{verdict.elsewhere[most]} of {verdict.disks} drawn disks"
        )
    if len(verdict.leads) <= len(verdict.behind):
        behind = [name for name in verdict.behind if name not in verdict.leads]
        answer = f"{NO_DIFFERENCE} between them" if _is_fine(verdict) else "not known which"
        return (
            f"{_listed(sorted(verdict.leads))}: {answer}"
            f" ({_seen(verdict)}); {_listed(behind)} {'is' if len(behind) == 1 else 'are'} behind"
        )
    return f"{NO_DIFFERENCE if _is_fine(verdict) else 'not known'} ({_seen(verdict)})"


def drawn_text(repeats: int) -> str:
    """The note on the repeats of a comparison with drawn disks."""
    few = repeats < DISKS_LEAST
    more = (
        f"; with {DISKS_LEAST} or more, each answer names the parameter it depends on"
        if few
        else ""
    )
    return f"{DRAWN.capitalize()} (--exact-disk: the file's values){more}."


def hinge_text(hinge: Hinge) -> str:
    """``mq-deadline is ahead of bfq unless ncq_ageing is below 0.01``."""
    ahead = f"{hinge.best} is ahead of {hinge.other}"
    if hinge.threshold is not None:
        side = "above" if hinge.best_is_ahead_below else "below"
        return f"{ahead} unless {hinge.parameter} is {side} {number_text(hinge.threshold)}"
    low, high = _times(hinge.low), _times(hinge.high)
    return (
        f"how {hinge.best} compares with {hinge.other} depends on {hinge.parameter}: "
        f"{low} where it is small, {high} where it is large"
    )


def _times(ratio: float) -> str:
    """By how much better, or worse."""
    return f"{factor(ratio)} better" if ratio >= 1.0 else f"{factor(1.0 / ratio)} worse"


def _is_fine(verdict: Verdict) -> bool:
    """Whether a relevant difference would have been detected."""
    return verdict.visible < _COARSE


def factor(ratio: float, *, as_times: bool | None = None) -> str:
    """A ratio: ``3.4 %`` up to a doubling, ``2.3 times`` beyond, or words if it is not bounded;
    `as_times` chooses the unit."""
    if math.isinf(ratio):
        return "any number of times"
    if ratio > _HUGE:
        return f"more than {_HUGE:.0f} times"
    times = ratio >= _DOUBLE if as_times is None else as_times
    return f"{ratio:.1f} times" if times else f"{(ratio - 1.0) * 100.0:.1f} %"


def interval_text(estimate: float, low: float, high: float) -> str:
    """An interval in the unit of its estimate: ``1.2 % to 5.6 %`` for ``3.4 %``."""
    return " to ".join(factor(end, as_times=estimate >= _DOUBLE) for end in (low, high))


def spread_text(spread: float) -> str:
    """Largest over smallest, less one: ``4.2 %``; ``-`` if the smallest is 0."""
    if math.isinf(spread):
        return "-"
    return f"{spread * 100:.1f} %" if spread <= _HUGE else f"> {_HUGE:.0f} x"


FEW = "~"
"""The mark before a percentile of too few samples."""


def percentile_text(value_ns: float, percent: float, samples: int) -> str:
    """``4.17 ms``, or ``~4.17 ms`` if a run has too few samples for the percentile."""
    known = math.isnan(value_ns) or samples >= needed(percent)
    return f"{'' if known else FEW}{duration_text(value_ns)}"


def percentiles_text(values_ns: Sequence[float], samples: int) -> list[str]:
    """The texts of all `PERCENTILES`."""
    pairs = zip(values_ns, PERCENTILES, strict=True)
    return [percentile_text(value_ns, percent, samples) for value_ns, percent in pairs]


def few_text() -> str:
    """The meaning of the mark, as a note below tables."""
    least = ", ".join(f"p{percent:g} {needed(percent)}" for percent in PERCENTILES)
    return f"{FEW} too few samples per run (at least: {least})"


def _seen(verdict: Verdict) -> str:
    size = factor(max(verdict.visible, MATTERS))
    if _is_fine(verdict):
        return f"minimum detectable: {size}"
    if verdict.visible <= verdict.resolution:
        return (
            f"minimum detectable: {size}, which is one I/O of a run; "
            "longer runs detect smaller differences"
        )
    return f"minimum detectable: {size}; more repeats detect smaller differences"


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
