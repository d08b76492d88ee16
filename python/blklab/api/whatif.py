"""``blklab.whatif``: a recorded load under several schedulers.

A recording says when each I/O came, and not why. So it is replayed in three ways, whose answers
bracket the truth (`WAYS`). A scheduler is named only if all three agree, and if it also wins on
disks drawn from the ranges of the model's estimates.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from blklab import _core
from blklab.api.listener import SILENT, Listener
from blklab.api.reasons import WHOLE, Reason, Side, reasons
from blklab.base import limits
from blklab.base.catalogue import Entry
from blklab.base.text import shown
from blklab.base.units import duration_text, rate_text
from blklab.domain import core, defaults, latencies, recordings, specs, validation
from blklab.domain.comparison import OBJECTIVE_TEXT
from blklab.domain.experiment import Disk, Experiment, SchedulerSpec, Window
from blklab.domain.recordings import WAYS, Cgroups, Fit, Way
from blklab.domain.result import DIRECTIONS, Result
from blklab.domain.scheduler import in_core
from blklab.domain.task import Task
from blklab.errors import InputError, unknown
from blklab.execute import Ended, Local
from blklab.rigs import find_disk
from blklab.rigs.sim import SimRig

Objective = Literal["latency", "throughput"]

OBJECTIVES: Mapping[Objective, str] = {
    "latency": OBJECTIVE_TEXT["latency"],
    "throughput": OBJECTIVE_TEXT["throughput"],
}
EQUAL = 0.02
"""Figures that differ by less count as equal."""
DRAWS = 4
"""Drawn disks by default."""


@dataclass(frozen=True)
class Replayed:
    """A recording that was replayed once."""

    scheduler: str
    """Its label."""
    way: Way
    result: Result
    """A job for each recorded process. Latencies count from the time at which an I/O was due. Its
    notes tell how many I/Os were not replayed, or have another address than recorded."""

    @property
    def bytes_per_s(self) -> float:
        """Reads and writes together."""
        jobs = self.result.jobs
        moved = sum(job.direction(name).bytes for job in jobs for name in DIRECTIONS)
        return moved * 1e9 / max(1, self.result.duration_ns)

    @property
    def latency_ns(self) -> int:
        """99th percentile of reads, else of syncs, else of writes."""
        found = latencies.latencies(self.result.jobs)
        one = next((found[name] for name in ("read", "sync", "write") if name in found), None)
        if one is None:
            return 0
        return one.percentiles_ns[latencies.PERCENTILES.index(latencies.RANKED_BY)]


@dataclass(frozen=True)
class WhatIf:
    """A recorded load under several schedulers on one disk."""

    disk: str
    """Its label."""
    objective: Objective
    ios: int
    span_ns: int
    """The time of the last I/O."""
    rows: tuple[Replayed, ...]
    """Each scheduler in each way."""
    best: Mapping[Way, tuple[str, ...]]
    """Per way: the schedulers within 2 % of the best, the best first."""
    winners: tuple[str, ...]
    """Schedulers that are among the best in every way and on every drawn disk; empty if there is
    none."""
    drawn: tuple[tuple[str, ...], ...]
    """The best of each drawn disk, replayed as inferred."""
    notes: tuple[str, ...] = field(default=())
    explained: str = ""
    """The scheduler whose advantage `reasons` explain, replayed as inferred; empty without one."""
    present: str = ""
    """The scheduler that it is compared with."""
    reasons: tuple[Reason, ...] = ()
    """The mechanisms that made the difference; empty if none accounts for half of it."""

    def figure(self, row: Replayed) -> float:
        """The figure that ranks: ns, or bytes per second."""
        return row.bytes_per_s if self.objective == "throughput" else row.latency_ns

    def sentence(self) -> str:
        """The answer in one sentence."""
        names = [row.scheduler for row in self.rows if row.way == self.rows[0].way]
        if len(self.winners) == len(names):
            return f"No scheduler differs from another by more than {EQUAL:.0%}."
        if self.winners:
            which = " and ".join(self.winners)
            return f"{which} {'serves' if len(self.winners) == 1 else 'serve'} this load best."
        agreed = set.intersection(*(set(best) for best in self.best.values()))
        if agreed:
            which = " or ".join(name for name in names if name in agreed)
            wins = sum(1 for best in self.drawn if agreed & set(best))
            return (
                f"Not known: {which} on the model, but only on {wins} of {len(self.drawn)} disks "
                "drawn from the ranges of its estimates."
            )
        told = ", ".join(f"{way}: {' or '.join(best)}" for way, best in self.best.items())
        return f"Not known: it depends on what the I/O waits for ({told})."


def load_recording(
    trace: str | os.PathLike[str],
    *,
    trace_format: str | None = None,
    device: str | None = None,
    from_ns: int = 0,
    until_ns: int | None = None,
) -> _core.Recording:
    """A trace, or a part of it, in memory, with its facts.

    Raises:
        InputError: it cannot be read, has no I/O, or several devices of which none is chosen.
    """
    path = Path(trace)
    with core.core_types():
        found = _core.Recording(
            path, format=trace_format, device=device, from_ns=from_ns, until_ns=until_ns
        )
    recordings.check(found, path, device)
    return found


def replay_trace(
    trace: str | os.PathLike[str],
    *,
    disk: str | os.PathLike[str] | Disk,
    scheduler: str | SchedulerSpec = "none",
    way: Way = "inferred",
    fit: Fit = "refuse",
    seed: int = 1,
    host: Mapping[str, int] | None = None,
) -> Replayed:
    """Replay a trace on a modelled disk.

    Args:
        trace: a file as of `read_trace`.
        disk: as of `simulate`.
        scheduler: as of `simulate`.
        way: what an I/O waits for; a key of `WAYS`.
        fit: what happens to addresses beyond the end of the disk; a key of `FITS`.
        seed: of the disk.
        host: as of `simulate`; by default CPU work takes no time, since the recorded times contain
            it.

    Raises:
        InputError: the trace, a name or a value is wrong, or the trace does not fit the disk.
        RunError: the run cannot go on.
    """
    place = SimRig()
    there = specs.host(["guest"]) if host is None else host
    load = Load(
        recording_entry(trace, fit=fit), find_disk(place, disk), specs.scheduler(scheduler), way
    )
    [row] = replays([load], place, seed=seed, host=there)
    return row


def whatif(
    trace: str | os.PathLike[str],
    *,
    disk: str | os.PathLike[str] | Disk,
    schedulers: Sequence[str | SchedulerSpec] = (),
    objective: str = "latency",
    fit: Fit = "refuse",
    draws: int = DRAWS,
    seed: int = 1,
    trace_format: str | None = None,
    device: str | None = None,
    from_ns: int = 0,
    until_ns: int | None = None,
    cgroups: Cgroups = "recorded",
    cgroup_weights: Mapping[str, int] | None = None,
    present: str | None = None,
    listener: Listener = SILENT,
) -> WhatIf:
    """Which scheduler would have served a recorded load best.

    Args:
        trace: as of `read_trace`.
        disk: a disk model, as of `simulate`.
        schedulers: by default Linux's own of today.
        objective: a key of `OBJECTIVES`.
        fit: a key of `FITS`.
        draws: this many disks are drawn from the ranges of the model's estimates.
        seed: of the disk and of the draws.
        trace_format: as of `read_trace`.
        device: as of `read_trace`.
        from_ns: the part of the trace that is replayed begins here,
        until_ns: and ends here.
        cgroups: a key of `CGROUPS`.
        cgroup_weights: the weights of recorded cgroups by their paths, 10 to 1000; 100 for all
            others.
        present: the scheduler with which the best one is compared, one of `schedulers`; by default
            the one under which the trace was recorded if another is better, else the worst.
        listener: is told of each replay that has ended.

    Raises:
        InputError: the trace, a name or a value is wrong, or the trace does not fit the disk.
        RunError: a run cannot go on.
    """
    ranked_by = _objective(objective)
    place = SimRig()
    found = find_disk(place, disk)
    chosen = [specs.scheduler(one) for one in schedulers or defaults.LINUX]
    for one in chosen:
        _simulated(one)
    labels = [one.label for one in chosen]
    if present is not None and present not in labels:
        raise unknown(f"present: '{present}' is not one of the schedulers", present, labels)
    entry = recording_entry(
        trace,
        fit=fit,
        trace_format=trace_format,
        device=device,
        from_ns=from_ns,
        until_ns=until_ns,
        cgroups=cgroups,
        cgroup_weights=cgroup_weights,
    )
    recording = place.recordings.of(recordings.chosen(entry))
    notes = [note for note in (validation.note(found),) if note]
    ways: tuple[Way, ...] = tuple(WAYS)
    if not recording.completed:
        ways = ("open",)
        notes.append(
            "the trace has no completions: nothing says what its I/O waited for, and only its "
            "recorded times are replayed"
        )
    if recording.level == "file":
        notes.append("the trace is of calls above the page cache; it is replayed as direct I/O")
    others = [core.drawn_disk(found, seed + draw) for draw in range(draws)]
    loads = [Load(entry, found, one, way) for one in chosen for way in ways]
    on_drawn = [Load(entry, other, one, ways[-1]) for other in others for one in chosen]
    with listener.runs(len(loads) + len(on_drawn), f"{recording.count} I/Os") as ended:
        every = replays(
            [*loads, *on_drawn], place, seed=seed, host=specs.host(["guest"]), ended=ended
        )
    rows, of_drawn = every[: len(loads)], every[len(loads) :]
    best = {way: _best([row for row in rows if row.way == way], ranked_by) for way in ways}
    each = len(chosen)
    drawn = [_best(of_drawn[n * each : (n + 1) * each], ranked_by) for n in range(draws)]
    agreed = [name for name in best[ways[-1]] if all(name in one for one in best.values())]
    notes.extend(rows[0].result.notes)
    winners = tuple(name for name in agreed if all(name in one for one in drawn))
    of_way = {row.scheduler: row for row in rows if row.way == ways[-1]}
    better = winners[0] if winners else best[ways[-1]][0]
    worst = max(labels, key=lambda name: _cost(of_way[name], ranked_by))
    known = recording.scheduler in labels and recording.scheduler not in best[ways[-1]]
    recorded = recording.scheduler if known and recording.scheduler else worst
    worse = recorded if present is None else present
    differ = worse not in best[ways[-1]] and better != worse
    explained: tuple[Reason, ...] = ()
    if differ:
        pair = [next(one for one in chosen if one.label == name) for name in (better, worse)]
        load = Load(entry, found, chosen[0], ways[-1])
        explained = _reasons(pair, load, place, seed, ranked_by)
    return WhatIf(
        found.label,
        ranked_by,
        recording.count,
        recording.last_ns,
        tuple(rows),
        best,
        winners,
        tuple(drawn),
        tuple(notes),
        better if differ else "",
        worse if differ else "",
        explained,
    )


def _reasons(
    pair: Sequence[SchedulerSpec], load: Load, rig: SimRig, seed: int, objective: Objective
) -> tuple[Reason, ...]:
    """Why the first scheduler is better than the second."""

    def again(scheduler: SchedulerSpec, window: Window | None) -> tuple[Replayed, float, str]:
        """The replay, its cost, and its figure in words."""
        one = replace(load, scheduler=scheduler, window=window)
        [row] = replays([one], rig, seed=seed, host=specs.host(["guest"]))
        is_rate = objective == "throughput"
        told = rate_text(row.bytes_per_s) if is_rate else duration_text(row.latency_ns)
        return row, _cost(row, objective), told

    def side(scheduler: SchedulerSpec) -> Side:
        row, cost, told = again(scheduler, WHOLE)
        return Side(scheduler, row.result, cost, told)

    better, worse = map(side, pair)
    found = reasons(
        better,
        worse,
        is_latency=objective == "latency",
        rotational=core.disk_model(load.disk).limits.rotational,
        without=lambda changed: again(changed, None)[1:],
    )
    return tuple(found)


@dataclass(frozen=True)
class Load:
    """A replay to be done."""

    entry: Entry
    """A `recording_entry`."""
    disk: Disk
    scheduler: SchedulerSpec
    way: Way
    window: Window | None = None
    """The requests and decisions in it are kept in the result."""


def recording_entry(
    trace: str | os.PathLike[str],
    *,
    fit: Fit = "refuse",
    trace_format: str | None = None,
    device: str | None = None,
    from_ns: int = 0,
    until_ns: int | None = None,
    cgroups: Cgroups = "recorded",
    cgroup_weights: Mapping[str, int] | None = None,
) -> Entry:
    """A trace as a workload. InputError if it cannot be read, or a parameter is wrong."""
    changes = {"fit": fit, "from": f"{from_ns}ns"}
    if until_ns is not None:
        changes["until"] = f"{until_ns}ns"
    if trace_format is not None:
        changes["format"] = trace_format
    if device is not None:
        changes["device"] = device
    if cgroups != "recorded":
        changes["cgroups"] = cgroups
    changes |= recordings.weights_as_parameters(cgroup_weights or {})
    path = Path(trace)
    return recordings.entry(path, changes, shown(path.name))


def replays(
    loads: Sequence[Load],
    rig: SimRig,
    *,
    seed: int,
    host: Mapping[str, int],
    ended: Callable[[object], None] = lambda _: None,
) -> list[Replayed]:
    """Replay all, several at a time, in the order of `loads`; `ended` is called after each.
    InputError, RunError."""
    tasks = [
        Task(
            rig.spec,
            Experiment(
                recordings.in_way(load.entry, load.way),
                load.disk,
                load.scheduler,
                seed,
                host,
                window=load.window,
            ),
            "result",
        )
        for load in loads
    ]
    found: dict[int, Replayed] = {}

    def done(events: Sequence[Ended]) -> None:
        for event in events:
            load, result = loads[event.number], event.found
            assert isinstance(result, Result), "whole results were asked for"
            found[event.number] = Replayed(load.scheduler.label, load.way, result)
            ended(found[event.number])

    Local(limits.JOBS_DEFAULT, rig).run(tasks, done)
    return [found[number] for number in range(len(loads))]


def _simulated(spec: SchedulerSpec) -> _core.Scheduler:
    if spec.kernel is not None:
        raise InputError(f"scheduler '{spec.label}': a trace is replayed on the simulator only")
    return in_core(spec)


def _objective(name: str) -> Objective:
    for known in OBJECTIVES:
        if known == name:
            return known
    raise unknown(f"objective: no '{name}'", name, list(OBJECTIVES))


def _best(rows: Sequence[Replayed], objective: Objective) -> tuple[str, ...]:
    """Those within `EQUAL` of the best, the best first."""

    ordered = sorted(rows, key=lambda row: _cost(row, objective))
    most = _cost(ordered[0], objective) * (1 + EQUAL)
    return tuple(row.scheduler for row in ordered if _cost(row, objective) <= most)


def _cost(row: Replayed, objective: Objective) -> float:
    """The figure that ranks, of which less is better: ns, or s for each byte; at least a little."""
    return max(row.latency_ns, 1) if objective == "latency" else 1 / max(row.bytes_per_s, 1.0)
