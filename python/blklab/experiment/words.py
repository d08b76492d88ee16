"""Verdicts in words, the same on the terminal and in the report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from blklab.base.units import duration_text, number_text, size_text
from blklab.domain.costs import OperationCosts
from blklab.domain.latencies import PERCENTILES
from blklab.domain.over_time import PileUp
from blklab.experiment.drift import Drift
from blklab.experiment.hinges import DISKS_LEAST, Hinge
from blklab.experiment.samples import needed
from blklab.experiment.stability import Stability
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
OVER_TIME = ("throughput, % an hour", "p99, % an hour", "pile-ups", "longest")
"""Heads of `over_time_texts`."""
NO_DIFFERENCE = "no significant difference"
# A larger undetected difference may well be relevant.
_COARSE = 1.10
_HUGE = 1000.0
_UNKNOWN = "-"
_PILE_UPS_LISTED = 3
_CLOCK_FROM_NS = 600 * 10**9
"""Times of longer runs are hours, minutes and seconds."""
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


def short(verdict: Answer, hinges: Sequence[Hinge] = ()) -> str:
    """For a table: a name, or words for none; `hinges` are the parameters that it depends on."""
    if isinstance(verdict, Unranked):
        return verdict.short
    if verdict.winner:
        return verdict.winner
    if not verdict.behind or len(verdict.leads) > len(verdict.behind):
        if verdict.behind and verdict.visible >= _COARSE:
            return f"depends on {hinges[0].parameter}" if hinges else "not known"
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


def over_time_texts(of: Stability) -> list[str]:
    """The figures under `OVER_TIME`; a dash where a figure is not known."""
    slopes = [_slope(of.drift(name)) for name in ("throughput", "p99")]
    if not of.pile_ups:
        return [*slopes, _UNKNOWN, _UNKNOWN]
    counts = [one.count for one in of.pile_ups]
    low, high = min(counts), max(counts)
    longest = duration_text(of.longest_ns) if of.longest_ns else _UNKNOWN
    return [*slopes, str(low) if low == high else f"{low} to {high}", longest]


def over_time_sentence(of: Stability) -> str:
    """The verdict: what drifts, and when requests piled up."""
    shown = [one for one in of.drifts if one.is_shown]
    unclear = [one.figure for one in of.drifts if not one.is_known]
    if shown:
        drift = "; ".join(map(_drift, shown))
    elif not of.drifts:
        drift = "drift not known: too few I/Os in an interval"
    elif unclear:
        most = max(max(-one.over_run.low, one.over_run.high) for one in of.drifts)
        drift = (
            f"no drift shown, but over the run {_listed(unclear)} may change by up to {most:.0f} % "
            "(longer or more runs narrow this)"
        )
    else:
        most = max(max(-one.over_run.low, one.over_run.high) for one in of.drifts)
        drift = f"no drift: over the run, no figure changes by more than {max(most, 0.1):.1f} %"
    return f"{drift}; {_pile_ups(of)}"


def _when(start_ns: int, run_ns: int) -> str:
    """The time of the run, ``7:05:02``, or ``95 s`` in a short one."""
    if run_ns < _CLOCK_FROM_NS:
        return duration_text(start_ns)
    seconds = start_ns // 10**9
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _slope(drift: Drift | None) -> str:
    if drift is None:
        return _UNKNOWN
    of = drift.per_hour
    return f"{_signed(of.estimate)} ({_signed(of.low)} to {_signed(of.high)})"


def _signed(value: float) -> str:
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2  # noqa: PLR2004
    # Adding zero removes the sign of a zero.
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def _drift(drift: Drift) -> str:
    of, over = drift.per_hour, drift.over_run
    verb = "rises" if of.estimate > 0 else "falls"
    ends = sorted((abs(of.low), abs(of.high)))
    return (
        f"{drift.figure} {verb} by {abs(of.estimate):.3g} % an hour ({ends[0]:.3g} to "
        f"{ends[1]:.3g}), by {abs(over.estimate):.3g} % over the run"
    )


def _pile_ups(of: Stability) -> str:
    if not of.pile_ups:
        return "pile-ups not known: neither queue nor latencies were recorded over time"
    run, first = next(
        ((run, one) for run, one in enumerate(of.pile_ups) if one.count), (0, of.pile_ups[0])
    )
    if not first.count:
        return "no pile-ups"
    run_ns = of.interval_ns * of.intervals
    total = sum(one.count for one in of.pile_ups)
    listed = ", ".join(_pile_up(one, run_ns) for one in first.found[:_PILE_UPS_LISTED])
    more = f" and {first.count - _PILE_UPS_LISTED} more" if first.count > _PILE_UPS_LISTED else ""
    runs = len(of.pile_ups)
    where = f"in repeat {run + 1} " if runs > 1 else ""
    counted = f"{total} pile-up{'s' * (total > 1)}" + (f" in {runs} runs" if runs > 1 else "")
    return f"{counted}, {where}at {listed}{more}"


def _pile_up(one: PileUp, run_ns: int) -> str:
    return f"{_when(one.start_ns, run_ns)} ({duration_text(one.duration_ns)})"


def over_time_method(of: Stability) -> str:
    """How the figures of a table came about."""
    windows = f", windows of {duration_text(of.pile_ups[0].window_ns)}" if of.pile_ups else ""
    return (
        f"{of.intervals} intervals of {duration_text(of.interval_ns)}{windows}; a drift is named "
        f"if its interval excludes none and it is {(MATTERS - 1) * 100:.0f} % of the run or more"
    )


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
