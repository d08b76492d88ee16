"""Disks in virtual time for tests of `blklab watch`: the simulator gives each interval's counters
and figures, under the scheduler that the disk has then."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import blklab
from blklab.api.compare import compare
from blklab.api.watch_evidence import REPEATS
from blklab.domain import latencies
from blklab.domain.result import DIRECTIONS
from blklab.watching import kept
from blklab.watching.decide import Decision, Rules, Watcher
from blklab.watching.evidence import Evidence, Figures
from blklab.watching.kinds import Seen
from blklab.watching.load import Load, load

INTERVAL_S = 10.0
SCHEDULERS = ("none", "mq-deadline", "kyber", "bfq")
IDLE = "idle"
_NOTHING = Load(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
_SEEDS = 10
_FIRST_SEED = 100
"""Other seeds than those of the evidence."""


@dataclass(frozen=True)
class Interval:
    """One simulated interval."""

    load: Load
    figures: Figures


@functools.cache
def interval(disk: str, workload: str, scheduler: str, seed: int) -> Interval:
    """The workload, from its start, for as long as its file says."""
    if workload == IDLE:
        return Interval(_NOTHING, Figures(math.nan, 0.0))
    ran = blklab.simulate(workload, disk=disk, scheduler=scheduler, seed=seed)
    found = latencies.latencies(ran.jobs)
    name = next(name for name in ("read", "sync", "write") if name in found)
    p99 = found[name].percentiles_ns[latencies.PERCENTILES.index(latencies.RANKED_BY)]
    moved = sum(job.direction(one).bytes for job in ran.jobs for one in DIRECTIONS)
    return Interval(load(ran.disk, ran.duration_ns), Figures(p99, moved * 1e9 / ran.duration_ns))


@functools.cache
def of_kind(disk: str, workload: str, objective: str) -> Evidence:
    """The evidence of the workload that stands for a kind, as a watch makes it."""
    wanted = kept.Wanted(workload, SCHEDULERS, objective, "", disk, False)
    ran = compare(disks=[disk], workloads=[workload], schedulers=SCHEDULERS,
                  repeats=REPEATS, vary_disk=False)  # fmt: skip
    found = kept.of_results(ran.results, disk, wanted, "simulated")
    assert found is not None
    return found


@dataclass(frozen=True)
class Phase:
    """A load that lasts for some time."""

    workload: str
    span_s: float


@dataclass(frozen=True)
class Course:
    """What happened in a watched sequence of phases."""

    decisions: Sequence[Decision]
    changes: Sequence[tuple[float, str]]
    """Times and schedulers."""
    regret: float
    """How many times worse than the best fixed scheduler in hindsight, less one: of the geometric
    mean over all intervals of the figure that ranks. Negative if the watch is better."""
    worst_fixed: float
    """The same for the worst fixed scheduler."""


def course(
    disk: str, phases: Sequence[Phase], rules: Rules, first: str, evidence: Mapping[str, Evidence]
) -> Course:
    """Watches the phases in virtual time; `evidence` by workload replaces that of its kind."""
    watcher, scheduler, now_s = Watcher(rules), first, 0.0
    decisions: list[Decision] = []
    changes: list[tuple[float, str]] = []
    ours = 0.0
    fixed = dict.fromkeys(SCHEDULERS, 0.0)
    counted = 0
    for phase in phases:
        for number in range(round(phase.span_s / INTERVAL_S)):
            seed = _FIRST_SEED + number % _SEEDS
            now_s += INTERVAL_S
            now = interval(disk, phase.workload, scheduler, seed)
            if phase.workload != IDLE:
                counted += 1
                ours += math.log(now.figures.cost(rules.objective))
                for name in fixed:
                    one = interval(disk, phase.workload, name, seed)
                    fixed[name] += math.log(one.figures.cost(rules.objective))
            decision = watcher.observe(now_s, now.load, scheduler)
            if decision.needs_evidence:
                seen = decision.seen
                watcher.learn(seen, evidence_of(disk, phase, seen, rules, evidence, scheduler))
                decision = watcher.again(now_s, decision)
            decisions.append(decision)
            if decision.set_now:
                assert decision.better is not None
                scheduler = decision.better
                changes.append((now_s, scheduler))
                watcher.changed(now_s)
    best, worst = min(fixed.values()), max(fixed.values())
    counted = max(counted, 1)
    return Course(
        decisions,
        changes,
        math.exp((ours - best) / counted) - 1,
        math.exp((worst - best) / counted) - 1,
    )


def evidence_of(
    disk: str,
    phase: Phase,
    seen: Seen,
    rules: Rules,
    evidence: Mapping[str, Evidence],
    present: str,
) -> Evidence:
    """A sample if it decides, as in a watch."""
    sample = evidence.get(phase.workload)
    if sample is not None and sample.decides(present):
        return sample
    if seen.kind.workload is None:
        return Evidence("", {}, (), why_none="nothing is known")
    return of_kind(disk, seen.kind.workload, rules.objective)


def random_phases(chance: random.Random, workloads: Sequence[str], total_s: float) -> list[Phase]:
    """Phases from one minute to three hours, most of them short; some are idle."""
    phases = []
    while total_s > 0:
        span_s = 60.0 * 180 ** chance.random()
        workload = IDLE if chance.random() < 0.1 else chance.choice(workloads)
        phases.append(Phase(workload, span_s))
        total_s -= span_s
    return phases
