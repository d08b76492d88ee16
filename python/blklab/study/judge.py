"""Published statements beside the measurements: reproduced, or not.

* A *figure* is reproduced if the mean of the runs is within the claim's tolerance of the mean
  of the published ones. Most comparisons publish only means, so the only measure of
  uncertainty is the range of the runs.
* A *ratio* likewise: the ratio, run by run, of two schedulers.
* An *order* is reproduced if each scheduler is ahead of the next one by an interval that excludes
  a tie and by a relevant amount, all together at 95 % (Bonferroni over the pairs).
* A *difference* is computed run by run too: the mean of one scheduler's figures less another's.
* *Single runs* are judged as if only one run existed: the scheduler with the best figure wins.
  Reproduced if the first scheduler wins every single run, by however little. The verdict counts how
  often each scheduler would have won. It does not show a true difference; for that see the order.
* A *bound* is reproduced if the mean of the runs keeps to it.
* A claim that the runs cannot decide is "not known": a percentile of too few samples
  (`blklab.experiment.samples`), a rate within a tolerance that is finer than one I/O.
* *No difference* is reproduced if, at 95 % for all pairs together, no scheduler can be further
  than the tolerance from any other. An undetected difference is not enough; if a difference above
  the tolerance is neither shown nor excluded, the answer is "not known".
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from blklab.base.units import number_text
from blklab.domain.measurement import Measurement
from blklab.experiment.analyse import waited_for
from blklab.experiment.metrics import METRICS, Metric, Scope, figures, resolution, too_few
from blklab.experiment.statistics import CONFIDENCE, MATTERS, Interval, is_shown, ratio, turned
from blklab.experiment.words import NO_DIFFERENCE, factor
from blklab.study.live import RIG as LIVE
from blklab.study.model import Claim, Outcome, Part, Study

REPRODUCED, NOT_REPRODUCED, NOT_KNOWN = "reproduced", "not reproduced", "not known"
_NO_REASON = "No reason is known."
_NOBODY = "none of them"
_NEAR = ("figures", "ratio", "difference", "no-difference")
_TOGETHER = " + "


@dataclass(frozen=True)
class Judgement:
    """One published figure or statement on one disk under one workload."""

    part: str
    rig: str
    disk: str
    workload: str
    kind: str
    text: str
    """The published statement."""
    subject: str
    """The scheduler, or the compared schedulers."""
    unit: str
    tolerance: float | None
    """Relative; None for an order and for a bound."""
    published: Interval | None
    """Mean, least and largest of the published runs; None for a statement without a figure."""
    measured: Interval | None
    """For a figure the same of our runs; for ratios with their confidence interval."""
    found: str
    """The measurement in words, or the reason if there is none."""
    outcome: str
    why: str
    """Known reasons if it is not reproduced."""
    source: str
    metric: str = ""
    """The metric by name; empty in results of older versions."""


@dataclass(frozen=True)
class _Cell:
    """Figures of one metric by scheduler, one for each run, in the order of the seeds."""

    metric: Metric
    figures: Mapping[str, list[float] | None]
    too_few: Mapping[str, str]
    """The reason if there are none because of too few samples."""
    resolution: Mapping[str, float]
    """The factor by which one I/O more or less changes them."""

    def finest(self, *names: str) -> float:
        """The largest ratio of two of these schedulers' figures that one I/O can cause."""
        return max(self.resolution.get(name, 1.0) for name in names)


@dataclass(frozen=True)
class _Finding:
    subject: str
    outcome: str
    found: str
    published: Interval | None = None
    measured: Interval | None = None


def judge(study: Study, outcomes: Sequence[Outcome]) -> list[Judgement]:
    """Every claim on each of its disks under each of its workloads, in the order of the study."""
    return [
        _judgement(claim, outcome, disk, workload, finding)
        for part, outcome in zip(study.parts, outcomes, strict=True)
        for claim in part.claims
        for disk, loads in _places(claim, part.disks, part.workloads, outcome)
        for workload in [_TOGETHER.join(loads)]
        for finding in _findings(claim, part, outcome, disk, loads)
    ]


def _places(
    claim: Claim, disks: Sequence[str], workloads: Sequence[str], outcome: Outcome
) -> list[tuple[str, tuple[str, ...]]]:
    """Disk and workloads by the labels of the results, which may differ from the study's names:
    paths, or a real disk instead of all models."""
    of_disks, of_loads = ({name: name for name in names} for names in (disks, workloads))
    if outcome.results is not None:
        setup = outcome.results.setup
        there = [row["label"] for row in setup["disks"]]
        if outcome.rig == LIVE:
            there *= len(disks)
        of_disks = dict(zip(disks, there, strict=True))
        names = [row["name"] for row in setup["workloads"]]
        of_loads = dict(zip(workloads, names, strict=True))
    loads = tuple(of_loads[load] for load in claim.workloads)
    each = [loads] if claim.summed else [(load,) for load in loads]
    return [
        (disk, some) for disk in dict.fromkeys(of_disks[d] for d in claim.disks) for some in each
    ]


def _judgement(
    claim: Claim, outcome: Outcome, disk: str, workload: str, finding: _Finding
) -> Judgement:
    return Judgement(
        outcome.part,
        outcome.rig,
        disk,
        workload,
        claim.kind,
        claim.text,
        finding.subject,
        _unit(claim),
        claim.tolerance if claim.kind in _NEAR else None,
        finding.published,
        finding.measured,
        finding.found,
        finding.outcome,
        _why_not(claim, outcome, disk) if finding.outcome == NOT_REPRODUCED else "",
        claim.source,
        claim.metric,
    )


def _why_not(claim: Claim, outcome: Outcome, disk: str) -> str:
    known = claim.not_reproduced or _NO_REASON
    if outcome.rig != LIVE:
        return known
    return f"Another disk and machine than the published one: {disk}. Of the modelled one: {known}"


def _unit(claim: Claim) -> str:
    unit = "times" if claim.kind == "ratio" else METRICS[claim.metric].unit
    return f"{unit}, job {claim.job}" if claim.job else unit


def _findings(
    claim: Claim, part: Part, outcome: Outcome, disk: str, workloads: Sequence[str]
) -> list[_Finding]:
    cell = _together([_cell(claim, part, outcome, disk, load) for load in workloads])
    if claim.kind == "figures":
        return [_figure(claim, cell, name, outcome) for name in claim.values]
    if claim.kind == "bound":
        return [_bound(claim, cell, name, outcome) for name in claim.schedulers]
    missing = [name for name in claim.schedulers if cell.figures.get(name) is None]
    if missing:
        subject = _subject(claim, claim.schedulers)
        return [_Finding(subject, NOT_KNOWN, _why_missing(missing[0], cell, outcome))]
    return [_JUDGES[claim.kind](claim, cell)]


def _cell(claim: Claim, part: Part, outcome: Outcome, disk: str, workload: str) -> _Cell:
    runs = outcome.results.runs if outcome.results is not None else ()
    by_scheduler: dict[str, list[Measurement]] = {}
    for run in sorted(runs, key=lambda run: run.repeat):
        if (run.disk, run.workload) == (disk, workload):
            by_scheduler.setdefault(run.scheduler, []).append(run)
    metric = METRICS[claim.metric]
    scope = Scope(waited_for(by_scheduler), claim.job, part.weights)
    there = {name: figures(metric, of, scope) for name, of in by_scheduler.items()}
    having = {name: by_scheduler[name] for name, found in there.items() if found is not None}
    few = {name: why for name, of in having.items() if (why := too_few(metric, of, scope))}
    return _Cell(
        metric,
        {name: None if name in few else found for name, found in there.items()},
        few,
        {name: resolution(metric, of, scope) for name, of in having.items()},
    )


def _together(cells: Sequence[_Cell]) -> _Cell:
    """The sum of the figures of each repeat; none for a scheduler that lacks one."""
    added: dict[str, list[float] | None] = {}
    for name in cells[0].figures:
        of_loads = [found for cell in cells if (found := cell.figures.get(name)) is not None]
        whole = len(of_loads) == len(cells)
        added[name] = [sum(of) for of in zip(*of_loads, strict=True)] if whole else None
    return _Cell(
        cells[0].metric,
        added,
        {name: why for cell in cells for name, why in cell.too_few.items()},
        {name: max(cell.finest(name) for cell in cells) for name in added},
    )


def _subject(claim: Claim, names: Sequence[str]) -> str:
    words = {"ratio": " to ", "difference": " less ", "order": " before ", "single-run": " before "}
    return words.get(claim.kind, ", ").join(names)


def _why_missing(scheduler: str, cell: _Cell, outcome: Outcome) -> str:
    if scheduler in cell.too_few:
        return f"{scheduler}: {cell.too_few[scheduler]}"
    for skip in outcome.skipped:
        if skip.what in (scheduler, outcome.part):
            return f"{skip.what} was left out: {skip.why}"
    return f"{scheduler}: nothing was measured"


def _figure(claim: Claim, cell: _Cell, name: str, outcome: Outcome) -> _Finding:
    published = _range(claim.values[name])
    runs = cell.figures.get(name)
    if runs is None:
        return _Finding(name, NOT_KNOWN, _why_missing(name, cell, outcome), published)
    measured = _range(runs)
    if coarse := _coarse(claim, cell.finest(name) - 1.0):
        return _Finding(name, NOT_KNOWN, coarse, published)
    off = measured.estimate / published.estimate
    near = _within(off, 1.0, claim.tolerance)
    found = _change(off)
    return _Finding(name, REPRODUCED if near else NOT_REPRODUCED, found, published, measured)


def _bound(claim: Claim, cell: _Cell, name: str, outcome: Outcome) -> _Finding:
    runs = cell.figures.get(name)
    if runs is None:
        return _Finding(name, NOT_KNOWN, _why_missing(name, cell, outcome))
    measured = _range(runs)
    low, high = claim.least or 0.0, claim.most or math.inf
    keeps = low <= measured.estimate <= high
    wanted = " and ".join(
        f"at {word} {number_text(value)}"
        for word, value in (("least", claim.least), ("most", claim.most))
        if value is not None
    )
    found = f"{number_text(measured.estimate)} {cell.metric.unit}, said to be {wanted}"
    return _Finding(name, REPRODUCED if keeps else NOT_REPRODUCED, found, None, measured)


def _ratio(claim: Claim, cell: _Cell) -> _Finding:
    one, other = claim.schedulers
    gap = ratio(_of(cell, one), _of(cell, other))
    subject, published = _subject(claim, claim.schedulers), Interval(*[claim.value] * 3)
    if coarse := _coarse(claim, cell.finest(one, other) - 1.0):
        return _Finding(subject, NOT_KNOWN, coarse, published)
    near = _within(gap.estimate, claim.value, claim.tolerance)
    found = _change(gap.estimate / claim.value)
    return _Finding(subject, REPRODUCED if near else NOT_REPRODUCED, found, published, gap)


def _coarse(claim: Claim, step: float) -> str:
    """The reason if one I/O changes the figure by more than the tolerance; else empty."""
    if step <= claim.tolerance or math.isclose(step, claim.tolerance):
        return ""
    return (
        f"one I/O of a run is {step * 100:.3g} % of the figure, more than the tolerance; use a "
        "longer runtime"
    )


def _order(claim: Claim, cell: _Cell) -> _Finding:
    pairs = list(itertools.pairwise(claim.schedulers))
    level = 1.0 - (1.0 - CONFIDENCE) / len(pairs)
    subject = _subject(claim, claim.schedulers)
    found = []
    outcome = REPRODUCED
    for ahead, behind in pairs:
        gap, finest = _ahead(cell, ahead, behind, level), cell.finest(ahead, behind)
        if is_shown(gap, finest):
            found.append(f"{ahead} is ahead of {behind} by {factor(gap.estimate)}")
        elif math.isinf(gap.visible):
            found.append(f"one run cannot show that {ahead} is ahead of {behind}")
            outcome = NOT_KNOWN if outcome == REPRODUCED else outcome
        elif is_shown(back := turned(gap), finest):
            found.append(f"{behind} is ahead of {ahead} by {factor(back.estimate)}")
            outcome = NOT_REPRODUCED
        elif finest > MATTERS and _size(gap) <= finest:
            found.append(
                f"{ahead} and {behind} differ by no more than one I/O of a run, {factor(finest)}; "
                "use a longer runtime"
            )
            outcome = NOT_KNOWN if outcome == REPRODUCED else outcome
        else:
            found.append(f"{NO_DIFFERENCE} between {ahead} and {behind}")
            outcome = NOT_REPRODUCED
    return _Finding(subject, outcome, "; ".join(found))


def _no_difference(claim: Claim, cell: _Cell) -> _Finding:
    pairs = list(itertools.combinations(claim.schedulers, 2))
    level = 1.0 - (1.0 - CONFIDENCE) / len(pairs)
    gaps = {pair: _ahead(cell, *pair, level) for pair in pairs}
    limit = 1.0 + claim.tolerance
    subject = _subject(claim, claim.schedulers)
    finest = cell.finest(*claim.schedulers)
    reach, (one, other) = max((_reach(gap), pair) for pair, gap in gaps.items())
    if max(reach, finest) <= limit:
        return _Finding(subject, REPRODUCED, f"at most {factor(max(reach, finest))} apart")
    far = max(limit, finest)
    shown = [(_size(g), pair) for pair, g in gaps.items() if g.low > far or g.high < 1 / far]
    if shown:
        size, (one, other) = max(shown)
        return _Finding(subject, NOT_REPRODUCED, f"{one} and {other} are {factor(size)} apart")
    more = "a longer runtime decides" if finest > limit else "more --repeats decide"
    found = f"{one} and {other} may be {factor(max(reach, finest))} apart; {more}"
    return _Finding(subject, NOT_KNOWN, found)


def _difference(claim: Claim, cell: _Cell) -> _Finding:
    one, other = claim.schedulers
    gaps = [a - b for a, b in zip(_of(cell, one), _of(cell, other), strict=True)]
    subject, published = _subject(claim, claim.schedulers), Interval(*[claim.value] * 3)
    larger = max(fmean(_of(cell, one)), fmean(_of(cell, other)))
    if coarse := _coarse(claim, (cell.finest(one, other) - 1.0) * larger / claim.value):
        return _Finding(subject, NOT_KNOWN, coarse, published)
    measured = _range(gaps)
    off = measured.estimate / claim.value
    near = _within(off, 1.0, claim.tolerance)
    return _Finding(
        subject, REPRODUCED if near else NOT_REPRODUCED, _change(off), published, measured
    )


def _single_run(claim: Claim, cell: _Cell) -> _Finding:
    best = max if cell.metric.more_is_better else min
    runs = list(zip(*(_of(cell, name) for name in claim.schedulers), strict=True))
    ahead = Counter(
        name for run in runs for name, figure in zip(claim.schedulers, run, strict=True)
        if figure == best(run) and run.count(figure) == 1
    )  # fmt: skip
    ahead[_NOBODY] = len(runs) - ahead.total()
    counts = ", ".join(f"{name} in {count}" for name, count in ahead.most_common() if count)
    first_run = zip(claim.schedulers, runs[0], strict=True)
    first = ", ".join(f"{name} {value:,.1f}" for name, value in first_run)
    found = f"of {len(runs)} single runs the best: {counts}; the first run: {first}"
    always = ahead[claim.schedulers[0]] == len(runs)
    return _Finding(
        _subject(claim, claim.schedulers), REPRODUCED if always else NOT_REPRODUCED, found
    )


_JUDGES: Mapping[str, Callable[[Claim, _Cell], _Finding]] = {
    "ratio": _ratio,
    "difference": _difference,
    "order": _order,
    "single-run": _single_run,
    "no-difference": _no_difference,
}


def _of(cell: _Cell, name: str) -> list[float]:
    runs = cell.figures[name]
    assert runs is not None, "looked at before"
    return runs


def _ahead(cell: _Cell, one: str, other: str, level: float) -> Interval:
    """The factor by which `one` is better."""
    better, worse = _of(cell, one), _of(cell, other)
    if not cell.metric.more_is_better:
        better, worse = worse, better
    return ratio(better, worse, level)


def _size(gap: Interval) -> float:
    return max(gap.estimate, 1.0 / gap.estimate)


def _reach(gap: Interval) -> float:
    """The largest possible distance of the two, in either direction."""
    return max(gap.high, 1.0 / gap.low if gap.low > 0.0 else math.inf)


def _within(value: float, target: float, tolerance: float) -> bool:
    return abs(value / target - 1.0) <= tolerance


def _change(off: float) -> str:
    # Adding zero removes the sign of a zero.
    percent = round((off - 1.0) * 100.0, 1) + 0.0
    return f"{percent:+.1f} %" if off < 2 else factor(off)  # noqa: PLR2004


def _range(values: Sequence[float]) -> Interval:
    return Interval(fmean(values), min(values), max(values))
