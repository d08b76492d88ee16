"""The answer of a search in words, the same on the terminal and on its page."""

from __future__ import annotations

from blklab.experiment.statistics import Interval
from blklab.experiment.words import factor, interval_text
from blklab.tuning.answer import Confirmed, Tuned

_WHERE = {"sim": "on the simulator", "kernel": "in Linux itself"}


def sentence(found: Tuned) -> str:
    """What is recommended, by how much, and how sure that is."""
    confirmed = found.confirmed[0]
    repeats, reference = confirmed.repeats, found.reference
    broken = confirmed.beyond[found.best]
    beyond = f" It exceeds a bound in {broken} of {repeats} repeats." if broken else ""
    *bounds, goal = (part.strip() for part in found.objective.split(","))
    if found.contradicted is not None:
        settings = found.contradicted
        told = [
            _as_good(one, one.gains[settings]) for one in found.confirmed if settings in one.gains
        ]
        return f"Keep {reference}: for {goal} {settings} is as good as it {'; '.join(told)}."
    if found.gain is None:
        return f"Keep {reference}: no settings were shown to be better for {goal}.{beyond}"
    gap = found.gain
    if gap.estimate < 1.0:
        # It is there for its bounds.
        gap = Interval(1 / gap.estimate, 1 / gap.high, 1 / gap.low)
        sure = interval_text(gap.estimate, gap.low, gap.high)
        return (
            f"{found.best} keeps {' and '.join(bounds)} in {repeats - broken} of {repeats} "
            f"repeats, {reference} in {repeats - confirmed.beyond[reference]}; for {goal} it is "
            f"{factor(gap.estimate)} worse ({sure})."
        )
    sure = interval_text(gap.estimate, gap.low, gap.high)
    kept = f", within {' and '.join(bounds)}" if bounds and not broken else ""
    return (
        f"{found.best}: {factor(gap.estimate)} better than {reference} for {goal} "
        f"({sure}){kept}.{beyond}"
    )


def _as_good(confirmed: Confirmed, gain: Interval) -> str:
    return f"{gain.estimate:.2f} times ({gain.low:.2f} to {gain.high:.2f}) {_where(confirmed)}"


def confirmed_text(confirmed: Confirmed) -> str:
    """How often and where: ``10 fresh seeds on the simulator, each on ...``."""
    drawn = ", each on a disk drawn from the ranges of the model's estimates"
    of_model = drawn if confirmed.rig == "sim" else ""
    return f"{confirmed.repeats} fresh seeds {_where(confirmed)}{of_model}"


def levels_text(found: Tuned) -> list[str]:
    """What the search's short runs and further seeds were worth, a line for each."""
    lines = []
    if (short := found.short) is not None:
        agreement = _agreement_text(short.agreement, short.judged)
        if short.used:
            lines.append(
                f"{short.settings:,} short runs, of {short.share:.1%} of the time, spared "
                f"{short.spared:,} settings a whole one; {agreement}"
            )
        elif short.agreement is None:
            lines.append("no short runs: too few settings of the screening differ to judge them by")
        else:
            lines.append(f"no short runs, since they put settings in another order; {agreement}")
    if (further := found.further) is not None:
        one = _agreement_text(further.agreement, further.judged)
        lines.append(
            f"each setting had {further.each} of {further.seeds} seeds, {further.settings:,} had "
            f"all; the orders by one seed and by all: {one}"
        )
    return lines


def _agreement_text(agreement: float | None, judged: int) -> str:
    if agreement is None:
        return "unknown, since too few settings differ"
    return f"Kendall's tau {agreement:.2f} over {judged} settings"


def _where(confirmed: Confirmed) -> str:
    return _WHERE.get(confirmed.rig, f"on {confirmed.disk}")
