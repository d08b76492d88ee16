"""Published statements beside the measurements: reproduced, or not.

* A *figure* is reproduced if the mean of the runs is within the claim's tolerance of the mean
  of the published ones. Most comparisons publish only means, so the only measure of
  uncertainty is the range of the runs.
* An *order of all schedulers*, for figures with `ranked`, is reproduced if Kendall's tau-b of the
  measured order with the published one is at least 0.8. Figures within 5 % of each other are ties.
* A *ratio* likewise: the ratio, run by run, of two schedulers.
* An *order* is reproduced if each scheduler is ahead of the next one by an interval that excludes
  a tie and by a relevant amount, all together at 95 % (Bonferroni over the pairs).
* An *order of workloads* is judged in the same way, for each scheduler: its runs under one
  workload, and those under the next.
* A *difference* is computed run by run too: the mean of one scheduler's figures less another's.
* *Single runs* are judged as if only one run existed: the scheduler with the best figure wins.
  Reproduced if the first scheduler wins every single run, by however little. The verdict counts how
  often each scheduler would have won. It does not show a true difference; for that see the order.
* A *bound* is reproduced if the mean of the runs keeps to it.
* A figure is *steady* if the interval of its change from the start to the end of the runs is within
  the tolerance, and not if the interval excludes every change within it; otherwise the answer is
  "not known". The interval holds for intervals of a run that depend on each other
  (`blklab.experiment.drift`).
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
from dataclasses import dataclass, replace
from statistics import fmean

from blklab.base.units import number_text
from blklab.domain.measurement import Measurement
from blklab.experiment.analyse import waited_for
from blklab.experiment.drift import FIGURES
from blklab.experiment.metrics import METRICS, Metric, Scope, figures, resolution, too_few
from blklab.experiment.stability import stability
from blklab.experiment.statistics import MATTERS, Interval, is_shown, joint_level, ratio, turned
from blklab.experiment.words import NO_DIFFERENCE, factor, interval_text
from blklab.study.explained import explained, is_far
from blklab.study.live import RIG as LIVE
from blklab.study.model import Claim, Outcome, Part, Study
from blklab.study.ranking import groups, tau

REPRODUCED, NOT_REPRODUCED, NOT_KNOWN = "reproduced", "not reproduced", "not known"
_NO_REASON = "No reason is known."
_NOBODY = "none of them"
RANKING = "ranking"
"""The kind of the judgement of an order by Kendall's tau."""
TIE = 0.05
"""Figures that are no further apart are ties in an order, relative."""
TAU_LEAST = 0.8
_NEAR = ("figures", "ratio", "difference", "no-difference", "steady")
_TOGETHER = " + "
_OF_WORKLOADS = "workload-order"
_BEFORE = " before "


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
    ran_on: str = ""
    """How the measured figure came about, if not on `rig`."""
    explained: str = ""
    """What the run did, for a figure that is far from the published one."""

    @property
    def factor(self) -> float | None:
        """The measured figure divided by the published one; None without one of them."""
        return _factor(self.published, self.measured)


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
    kind: str = ""
    """If it is another one than the claim's."""


def _factor(published: Interval | None, measured: Interval | None) -> float | None:
    if published is None or measured is None or not published.estimate:
        return None
    return measured.estimate / published.estimate


def judge(study: Study, outcomes: Sequence[Outcome]) -> list[Judgement]:
    """Every claim on each of its disks under each of its workloads, in the order of the study."""
    return [
        _judgement(claim, outcome, disk, workload, finding)
        for part, outcome in zip(study.parts, outcomes, strict=True)
        for claim in part.claims
        for disk, loads in _places(claim, part.disks, part.workloads, outcome)
        for workload in [(_BEFORE if claim.kind == _OF_WORKLOADS else _TOGETHER).join(loads)]
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
    together = claim.summed or claim.kind == _OF_WORKLOADS
    each = [loads] if together else [(load,) for load in loads]
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
        finding.kind or claim.kind,
        claim.text,
        finding.subject,
        _unit(claim),
        claim.tolerance if claim.kind in _NEAR and not finding.kind else None,
        finding.published,
        finding.measured,
        finding.found,
        finding.outcome,
        _why_not(claim, outcome, disk) if finding.outcome == NOT_REPRODUCED else "",
        claim.source,
        claim.metric,
        _ran_on(outcome, workload, finding.subject),
        _explained(claim, outcome, disk, workload, finding),
    )


def _why_not(claim: Claim, outcome: Outcome, disk: str) -> str:
    known = claim.not_reproduced or _NO_REASON
    if outcome.rig != LIVE:
        return known
    return f"Another disk and machine than the published one: {disk}. Of the modelled one: {known}"


def _unit(claim: Claim) -> str:
    units = {"ratio": "times", "steady": "% over the run"}
    unit = units.get(claim.kind, METRICS[claim.metric].unit)
    return f"{unit}, job {claim.job}" if claim.job else unit


def _findings(
    claim: Claim, part: Part, outcome: Outcome, disk: str, workloads: Sequence[str]
) -> list[_Finding]:
    if claim.kind == _OF_WORKLOADS:
        cells = {load: _cell(claim, part, outcome, disk, load) for load in workloads}
        return [_workload_order(claim, cells, name, outcome) for name in claim.schedulers]
    cell = _together([_cell(claim, part, outcome, disk, load) for load in workloads])
    if claim.kind == "figures":
        rows = [_figure(claim, cell, name, outcome) for name in claim.values]
        return [*rows, _ranking(claim, rows)] if claim.ranked else rows
    if claim.kind == "bound":
        return [_bound(claim, cell, name, outcome) for name in claim.schedulers]
    if claim.kind == "steady":
        return [_steady(claim, outcome, disk, workloads[0], name) for name in claim.schedulers]
    missing = [name for name in claim.schedulers if cell.figures.get(name) is None]
    if missing:
        subject = _subject(claim, claim.schedulers)
        return [_Finding(subject, NOT_KNOWN, _why_missing(missing[0], cell, outcome))]
    return [_JUDGES[claim.kind](claim, cell)]


def _cell(claim: Claim, part: Part, outcome: Outcome, disk: str, workload: str) -> _Cell:
    by_scheduler: dict[str, list[Measurement]] = {}
    for run in sorted(runs_of(outcome), key=lambda run: run.repeat):
        if (run.disk, run.workload) == (disk, workload):
            by_scheduler.setdefault(run.scheduler, []).append(run)
    metric = METRICS[claim.metric]
    by = outcome.scale if metric.is_total else 1.0
    # Simulated schedulers, which the claim may not be about, replay a program's I/O: they have none
    # of its operations.
    judged = {name: of for name, of in by_scheduler.items() if name in claim.schedulers}
    scope = Scope(waited_for(judged), claim.job, part.weights)
    there = {name: figures(metric, of, scope) for name, of in by_scheduler.items()}
    having = {name: by_scheduler[name] for name, found in there.items() if found is not None}
    few = {name: why for name, of in having.items() if (why := too_few(metric, of, scope))}
    return _Cell(
        metric,
        {name: None if name in few else _scaled(found, by) for name, found in there.items()},
        few,
        {name: resolution(metric, of, scope) for name, of in having.items()},
    )


def runs_of(outcome: Outcome) -> tuple[Measurement, ...]:
    """The runs of the rig, and those of schedulers that it lacks, which were simulated."""
    if outcome.results is None:
        return ()
    if outcome.simulated is None:
        return outcome.results.runs
    there = {run.scheduler for run in outcome.results.runs}
    lacking = (run for run in outcome.simulated.runs if run.scheduler not in there)
    return (*outcome.results.runs, *lacking)


def _explained(claim: Claim, outcome: Outcome, disk: str, workload: str, finding: _Finding) -> str:
    if claim.kind != "figures" or not is_far(_factor(finding.published, finding.measured)):
        return ""
    place = (disk, workload, finding.subject)
    runs = [run for run in runs_of(outcome) if (run.disk, run.workload, run.scheduler) == place]
    return explained(runs)


def _ran_on(outcome: Outcome, workload: str, scheduler: str) -> str:
    if outcome.results is None or outcome.simulated is None:
        return ""
    if scheduler in {run.scheduler for run in outcome.results.runs}:
        return ""
    rows = [run for run in outcome.simulated.runs if run.scheduler == scheduler]
    if not rows:
        return ""
    is_replay = any(run.figure is not None for run in rows if run.workload == workload)
    return "simulator, recording" if is_replay else "simulator, job file"


def _scaled(found: list[float] | None, by: float) -> list[float] | None:
    return None if found is None else [value * by for value in found]


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


def _ranking(claim: Claim, rows: Sequence[_Finding]) -> _Finding:
    """Kendall's tau of the measured figures with the published ones."""
    pairs = [
        (row.published.estimate, row.measured.estimate)
        for row in rows
        if row.published is not None and row.measured is not None
    ]
    subject = f"order of {len(rows)} schedulers"
    if missing := [row.subject for row in rows if row.measured is None]:
        return _Finding(subject, NOT_KNOWN, f"no figure of {', '.join(missing)}", kind=RANKING)
    more = METRICS[claim.metric].more_is_better
    published, measured = (
        groups(series, TIE, more_is_better=more) for series in zip(*pairs, strict=True)
    )
    apart = f"more than {TIE * 100:g} % apart"
    if not any(published):
        same = not any(measured)
        text = f"no two published figures are {apart}, {'nor are ours' if same else 'but ours are'}"
        return _Finding(subject, REPRODUCED if same else NOT_REPRODUCED, text, kind=RANKING)
    if not any(measured):
        text = f"no two of our figures are {apart}, but the published ones are"
        return _Finding(subject, NOT_REPRODUCED, text, kind=RANKING)
    found = tau(published, measured)
    outcome = REPRODUCED if found >= TAU_LEAST else NOT_REPRODUCED
    text = f"Kendall's tau {found:.2f}, {TAU_LEAST:g} or more expected"
    return _Finding(subject, outcome, text, None, Interval(found, found, found), RANKING)


def _bound(claim: Claim, cell: _Cell, name: str, outcome: Outcome) -> _Finding:
    runs = cell.figures.get(name)
    if runs is None:
        return _Finding(name, NOT_KNOWN, _why_missing(name, cell, outcome))
    measured = _range(runs)
    low, high = claim.least or 0.0, math.inf if claim.most is None else claim.most
    keeps = low <= measured.estimate <= high
    wanted = " and ".join(
        f"at {word} {number_text(value)}"
        for word, value in (("least", claim.least), ("most", claim.most))
        if value is not None
    )
    found = f"{number_text(measured.estimate)} {cell.metric.unit}, said to be {wanted}"
    return _Finding(name, REPRODUCED if keeps else NOT_REPRODUCED, found, None, measured)


def _steady(claim: Claim, outcome: Outcome, disk: str, workload: str, name: str) -> _Finding:
    place = (disk, workload, name)
    there = [run for run in runs_of(outcome) if (run.disk, run.workload, run.scheduler) == place]
    figure = next(one.name for one in FIGURES if one.metric == claim.metric)
    found = stability([run.over_time for run in there])
    drift = None if found is None else found.drift(figure)
    if drift is None:
        why = (
            "the run is shorter than a minute, or an interval has too few I/Os"
            if there
            else "nothing was measured"
        )
        return _Finding(name, NOT_KNOWN, f"{name}: {why}")
    low, high = (end / 100 for end in (drift.over_run.low, drift.over_run.high))
    within = max(-low, high) <= claim.tolerance
    beyond = min(high, -low) < -claim.tolerance
    outcome_of = REPRODUCED if within else NOT_REPRODUCED if beyond else NOT_KNOWN
    more = "" if within or beyond else "; longer or more runs decide"
    text = f"over the run {low * 100:+.2f} to {high * 100:+.2f} %{more}"
    return _Finding(name, outcome_of, text, None, drift.over_run)


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
    level = joint_level(len(pairs))
    subject = _subject(claim, claim.schedulers)
    found = []
    outcome = REPRODUCED
    for ahead, behind in pairs:
        gap, finest = _ahead(cell, ahead, behind, level), cell.finest(ahead, behind)
        if is_shown(gap, finest):
            found.append(f"{ahead} is ahead of {behind} by {_lead(gap)}")
        elif math.isinf(gap.visible):
            found.append(f"one run cannot show that {ahead} is ahead of {behind}")
            outcome = NOT_KNOWN if outcome == REPRODUCED else outcome
        elif is_shown(back := turned(gap), finest):
            found.append(f"{behind} is ahead of {ahead} by {_lead(back)}")
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


def _workload_order(
    claim: Claim, cells: Mapping[str, _Cell], name: str, outcome: Outcome
) -> _Finding:
    """The order of the workloads under one scheduler."""
    for cell in cells.values():
        if cell.figures.get(name) is None:
            return _Finding(name, NOT_KNOWN, _why_missing(name, cell, outcome))
    of_loads = _Cell(
        METRICS[claim.metric],
        {load: cell.figures[name] for load, cell in cells.items()},
        {},
        {load: cell.finest(name) for load, cell in cells.items()},
    )
    return replace(_order(replace(claim, schedulers=tuple(cells)), of_loads), subject=name)


def _no_difference(claim: Claim, cell: _Cell) -> _Finding:
    pairs = list(itertools.combinations(claim.schedulers, 2))
    level = joint_level(len(pairs))
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


def _lead(gap: Interval) -> str:
    """``9.6 % (8.1 % to 11.1 %)``; without an interval if every run gives the same."""
    ends = interval_text(gap.estimate, gap.low, gap.high)
    size = factor(gap.estimate)
    return size if factor(gap.low) == factor(gap.high) else f"{size} ({ends})"


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
