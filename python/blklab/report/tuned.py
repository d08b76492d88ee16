"""The page of ``blklab tune``: the answer, how sure it is, and what each tunable changes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from blklab.experiment import statistics
from blklab.experiment.statistics import Interval
from blklab.experiment.words import factor
from blklab.report.parts import css, environment
from blklab.tuning.answer import Tuned
from blklab.tuning.sensitivity import Moved, Pair
from blklab.tuning.words import confirmed_text, levels_text, sentence

PAGE = "tune.html"
"""Its name, beside the confirmation's report."""
_FARTHEST = 1000.0
"""A ratio beyond it, up or down, is drawn at the edge."""
_NEAREST = 1.1
"""The least ratio at the edges of a picture, so that a percent does not look like all there is."""


@dataclass(frozen=True)
class Bar:
    """An interval in a picture, in percent of its width; 50 is as good as the reference."""

    low: float
    at: float
    high: float
    way: str
    """``better`` or ``worse`` if that is shown, else ``open``."""


class Picture:
    """A logarithmic axis around 1 that has room for some ratios."""

    def __init__(self, gains: Iterable[Interval]) -> None:
        sizes = [max(gain.estimate, 1.0 / gain.estimate) for gain in gains]
        self.edge = min(_FARTHEST, max([_NEAREST, *sizes]) * _NEAREST)

    def bar(self, gain: Interval) -> Bar:
        """Where it is drawn."""
        way = "better" if gain.low > 1.0 else "worse" if gain.high < 1.0 else "open"
        return Bar(self._place(gain.low), self._place(gain.estimate), self._place(gain.high), way)

    def _place(self, ratio: float) -> float:
        within = min(self.edge, max(1.0 / self.edge, ratio))
        return round(50.0 + 50.0 * math.log(within) / math.log(self.edge), 2)


def tuned_page(found: Tuned) -> str:
    """The whole page; it needs nothing else."""
    around = found.sensitivity
    moved = around.moved if around else ()
    return (
        environment()
        .get_template("tuned.html")
        .render(
            title=f"{found.disk}: {' and '.join(found.workloads)}",
            found=found,
            sentence=sentence(found),
            levels=levels_text(found),
            confirmed_text=confirmed_text,
            gain_text=gain_text,
            factor=factor,
            infinity=math.inf,
            picture=Picture,
            around=around,
            moving=[one for one in moved if _shown(one)],
            still=_still(moved),
            together=together,
            worth=sorted(found.worth.items(), key=lambda row: -row[1]),
            goals=[part.strip() for part in found.objective.split(",")[-1].split("+")],
            level=f"{statistics.CONFIDENCE:.0%}".replace("%", " %"),
            css=css("tuned.css"),
        )
    )


def gain_text(gain: Interval) -> str:
    """``1.31 times better``, ``2 % worse``, or ``as good``, as far as digits tell."""
    if gain.estimate >= 1.0:
        size, word = gain.estimate, "better"
    else:
        size, word = 1.0 / gain.estimate, "worse"
    text = factor(size)
    return "as good" if text == "0.0 %" else f"{text} {word}"


def together(pair: Pair) -> str:
    """What an interaction means, in words."""
    gap = pair.interaction
    if gap.low <= 1.0 <= gap.high:
        return "each by itself: no interaction shown"
    size = factor(max(gap.estimate, 1.0 / gap.estimate))
    return f"{size} {'better' if gap.estimate > 1.0 else 'worse'} than one by one"


def _shown(one: Moved) -> bool:
    return gain_text(one.gain) != "as good"


def _still(moved: Sequence[Moved]) -> list[str]:
    """Tunables of which neither end changes a figure."""
    moving = {one.tunable for one in moved if _shown(one)}
    return sorted({one.tunable for one in moved} - moving)
