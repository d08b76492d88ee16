"""``blklab.whatif``: a recorded load under several schedulers.

A recording says when each I/O came, and not why. So it is replayed in three ways, whose answers
bracket the truth (`WAYS`). A scheduler is named only if all three agree, and if it also wins on
disks drawn from the ranges of the model's estimates.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from blklab import _core
from blklab.api.listener import SILENT, Listener
from blklab.api.simulate import job_entry
from blklab.base.catalogue import Entry
from blklab.base.files import new_file
from blklab.domain import core, defaults, latencies, specs, validation
from blklab.domain.comparison import OBJECTIVE_TEXT
from blklab.domain.experiment import Disk, SchedulerSpec
from blklab.domain.result import DIRECTIONS, Result
from blklab.errors import InputError, RunError, unknown
from blklab.rigs import find_disk
from blklab.rigs import rig as rig_of

Way = Literal["open", "closed", "inferred"]
Fit = Literal["refuse", "wrap", "scale"]
Objective = Literal["latency", "throughput"]

WAYS: Mapping[Way, str] = {
    "open": "each I/O at its recorded time",
    "closed": "each I/O after the completions, and the pause, that it came after",
    "inferred": "each process by its times: clock, completions, write-back",
}
"""What an I/O waits for in a replay."""
FITS: Mapping[Fit, str] = {
    "refuse": "an error",
    "wrap": "addresses begin again at the start",
    "scale": "all addresses are scaled to the disk",
}
"""What happens to addresses beyond the end of the disk."""
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
    """A job for each recorded process. Latencies count from the time at which an I/O was due."""
    left_out: int
    """I/Os that are not replayed: no disk model has their operation, or they have no length."""
    moved: int
    """I/Os with another address than recorded."""

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
    """A trace, or a part of it, as a load.

    Raises:
        InputError: it cannot be read, has no I/O, or several devices of which none is chosen.
    """
    with core.core_types():
        found = _core.Recording(
            Path(trace), format=trace_format, device=device, from_ns=from_ns, until_ns=until_ns
        )
    if not found.count:
        chosen = f" of device '{device}'" if device else ""
        raise InputError(f"{os.fspath(trace)}: no I/O{chosen} in that part")
    if len(found.devices) > 1:
        names = ", ".join(found.devices[:8])
        raise InputError(f"{os.fspath(trace)}: I/O of several devices; choose one ({names})")
    return found


def replay_trace(
    trace: str | os.PathLike[str] | _core.Recording,
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
        trace: a file as of `read_trace`, or a `load_recording`.
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
    place = rig_of("sim")
    recording = trace if isinstance(trace, _core.Recording) else load_recording(trace)
    return _replayed(
        recording,
        find_disk(place, disk),
        specs.scheduler(scheduler),
        way,
        fit,
        seed,
        specs.host(["guest"]) if host is None else host,
    )


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
        listener: is told of each replay that has ended.

    Raises:
        InputError: the trace, a name or a value is wrong, or the trace does not fit the disk.
        RunError: a run cannot go on.
    """
    ranked_by = _objective(objective)
    found = find_disk(rig_of("sim"), disk)
    chosen = [specs.scheduler(one) for one in schedulers or defaults.LINUX]
    for one in chosen:
        _simulated(one)
    recording = load_recording(
        trace, trace_format=trace_format, device=device, from_ns=from_ns, until_ns=until_ns
    )
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
    host = specs.host(["guest"])
    total = len(chosen) * (len(ways) + draws)
    with listener.runs(total, f"{recording.count} I/Os") as ended:

        def run(on: Disk, scheduler: SchedulerSpec, way: Way) -> Replayed:
            row = _replayed(recording, on, scheduler, way, fit, seed, host)
            ended(row)
            return row

        rows = [run(found, one, way) for one in chosen for way in ways]
        best = {way: _best([row for row in rows if row.way == way], ranked_by) for way in ways}
        drawn = []
        for draw in range(draws):
            other = core.drawn_disk(found, seed + draw)
            drawn.append(_best([run(other, one, ways[-1]) for one in chosen], ranked_by))
    agreed = [name for name in best[ways[-1]] if all(name in one for one in best.values())]
    first = rows[0]
    if first.left_out:
        notes.append(f"{first.left_out} I/Os are not replayed: no model has them")
    if first.moved:
        notes.append(f"{first.moved} I/Os have another address than recorded ({fit})")
    return WhatIf(
        found.label,
        ranked_by,
        recording.count,
        recording.last_ns,
        tuple(rows),
        best,
        tuple(name for name in agreed if all(name in one for one in drawn)),
        tuple(drawn),
        tuple(notes),
    )


def record_run(
    job: str | os.PathLike[str] | Entry,
    out: str | os.PathLike[str],
    *,
    disk: str | os.PathLike[str] | Disk,
    scheduler: str | SchedulerSpec = "none",
    seed: int = 1,
    host: Mapping[str, int] | None = None,
    ignore_unsupported: bool = False,
) -> Result:
    """Run a fio job on the simulator, and write its I/O to `out`, which must not exist, as a
    recording.

    The other arguments are those of `simulate`.

    Raises:
        InputError: a name, file or value is wrong; `out` exists.
        RunError: the run cannot go on; `out` cannot be written.
    """
    path = Path(out)
    found = find_disk(rig_of("sim"), disk)
    there = core.host(dict(host or {}))
    spec = _simulated(specs.scheduler(scheduler))
    with new_file(path) as part:
        try:
            with core.core_types():
                run, _ = _core.record(
                    core.job(job_entry(job), there, ignore_unsupported),
                    core.disk_model(found),
                    spec,
                    there,
                    seed,
                    part,
                    None,
                )
        except RuntimeError as error:
            raise RunError(str(error)) from error
    return Result.from_run(run)


def _replayed(
    recording: _core.Recording,
    disk: Disk,
    scheduler: SchedulerSpec,
    way: Way,
    fit: Fit,
    seed: int,
    host: Mapping[str, int],
) -> Replayed:
    try:
        with core.core_types():
            run, notes = _core.replay(
                recording,
                core.disk_model(disk),
                _simulated(scheduler),
                core.host(dict(host)),
                way,
                fit,
                seed,
                None,
            )
    except RuntimeError as error:
        raise RunError(str(error)) from error
    return Replayed(scheduler.label, way, Result.from_run(run), notes.left_out, notes.moved)


def _simulated(spec: SchedulerSpec) -> _core.Scheduler:
    if spec.kernel is not None:
        raise InputError(f"scheduler '{spec.label}': a trace is replayed on the simulator only")
    with core.core_types():
        return _core.Scheduler(spec.told)


def _objective(name: str) -> Objective:
    for known in OBJECTIVES:
        if known == name:
            return known
    raise unknown(f"objective: no '{name}'", name, list(OBJECTIVES))


def _best(rows: Sequence[Replayed], objective: Objective) -> tuple[str, ...]:
    """Those within `EQUAL` of the best, the best first."""

    def cost(row: Replayed) -> float:
        return row.latency_ns if objective == "latency" else 1 / row.bytes_per_s

    ordered = sorted(rows, key=cost)
    return tuple(row.scheduler for row in ordered if cost(row) <= cost(ordered[0]) * (1 + EQUAL))
