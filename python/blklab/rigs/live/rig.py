"""The `live` rig: this machine's kernel and a real disk, with real fio, another real program, or
recorded I/O.

`--disk` names a directory, in which blklab makes its own test files, or a device. The
schedulers are set on the whole disks below it. Each run begins with the disks' original settings, a
newly set scheduler, and a page cache in the requested state, cold or warm.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from blklab import programs
from blklab.base import scratch
from blklab.base.as_root import as_root
from blklab.base.catalogue import Entry
from blklab.base.journal import Journal, default_directory
from blklab.base.signals import Signals
from blklab.base.text import shown
from blklab.domain import recordings, scheduler
from blklab.domain.conditions import LiveRigData
from blklab.domain.experiment import Disk, Experiment, RigSpec, SchedulerSpec
from blklab.domain.result import DIRECTIONS, Result
from blklab.domain.setup import DiskData
from blklab.errors import InputError
from blklab.host.devices import queue
from blklab.rigs import check_workload
from blklab.rigs.live import cache as page_cache
from blklab.rigs.live import (
    cgroups,
    danger,
    describe,
    files,
    leftovers,
    outlook,
    precondition,
    requests,
    steady,
    surroundings,
    target,
    wall,
)
from blklab.rigs.live.beside_load import BesideLoad
from blklab.rigs.live.borrowed import Borrowed, borrowing
from blklab.rigs.live.counters import Sampler
from blklab.rigs.live.frequency import Frequency
from blklab.rigs.live.load import Files, Load, room_of
from blklab.rigs.live.outlook import AnyLoad
from blklab.rigs.live.program import Program, check_there
from blklab.rigs.live.program_load import ProgramLoad
from blklab.rigs.live.replay_load import Planned


@dataclass(frozen=True)
class Ready:
    """A prepared target."""

    target: target.Target
    borrowed: Borrowed | None
    """None if no setting changes."""
    laid: files.LaidFiles | None
    """None for a device."""
    room_bytes: int
    """Before test files were made."""
    cgroups: cgroups.Made | None
    """None if no job names one."""


class LiveRig:
    """See :class:`blklab.rigs.Rig`.

    `cache` is ``cold`` or ``warm``; a device is written to only if nothing uses it, and with
    `write_device` or, whatever is on it, if `overwrite` is its full id
    (:func:`blklab.rigs.live.danger.full_id`). With `trace_latency` each request is traced
    (:mod:`blklab.rigs.live.requests`); with `no_precondition` flash is not overwritten before the
    first run (:mod:`blklab.rigs.live.precondition`).
    """

    name = "live"
    at_once = 1

    def __init__(
        self,
        cache: str = "cold",
        write_device: str | None = None,
        overwrite: str | None = None,
        trace_latency: str | None = None,
        no_precondition: str | None = None,
    ) -> None:
        page_cache.check(cache)
        check_there()
        self.spec = RigSpec(
            self.name,
            cache=cache,
            write_device=write_device is not None,
            overwrite=overwrite,
            trace_latency=trace_latency is not None,
            precondition=no_precondition is None,
        )
        self._cache = cache
        self._write_device, self._overwrite = write_device is not None, overwrite
        self._trace_latency = trace_latency is not None
        self._precondition = no_precondition is None
        self._following = requests.Following()
        self._places: dict[str, Ready] = {}
        # Lines about undone leftovers, not yet reported.
        self._put_right: list[str] = []
        # Rates of writing workloads, run by run: the disk may slow down.
        self._rates: dict[tuple[str, str, str], list[float]] = {}
        self._program = Program()
        self._planned = Planned()
        self._lock = threading.Lock()
        self._began_s: float | None = None
        self._ends_s: float | None = None

    def find_disk(self, spec: str) -> Disk:
        """A directory or device; see :class:`blklab.rigs.Rig`."""
        target.find(spec)
        return Disk(Entry(shown(spec), Path(spec), ""))

    def put_right(self) -> None:
        """Undo leftovers of killed runs: otherwise a changed state would count as the original one,
        and a resumed comparison would not find the disks in their earlier state."""
        found = leftovers.restore(Journal(default_directory()))
        self._put_right += (*found.done, *found.problems)

    def describe_disk(self, disk: Disk) -> DiskData:
        """The data of sysfs for the disks below; see :class:`blklab.rigs.Rig`."""
        return describe.target(target.find(str(disk.file.path)))

    def describe(self) -> LiveRigData:
        """See :class:`blklab.rigs.Rig`."""
        return describe.machine(self._cache)

    def check_host(self, changed: Mapping[str, int]) -> dict[str, int]:
        """See :class:`blklab.rigs.Rig`."""
        for name in changed:
            raise InputError(f"--host: {name}: with --rig live the host is this machine")
        return {}

    def check_scheduler(self, spec: SchedulerSpec) -> scheduler.Scheduler:
        """See :class:`blklab.rigs.Rig`; `prepared` tries whether the disk accepts it."""
        return _parsed(spec)

    def alone(self, experiment: Experiment) -> tuple[RigSpec, Experiment]:
        """See :class:`blklab.rigs.Rig`: borrowed disks, test files and the rates of earlier runs
        stay with this rig, and disks with their machine."""
        return self.spec, experiment

    def position(self) -> tuple[float, float | None]:
        """See :class:`blklab.rigs.Rig`."""
        began_s = self._began_s
        return (0.0, None) if began_s is None else (time.monotonic() - began_s, self._ends_s)

    def cancel(self) -> None:
        """See :class:`blklab.rigs.Rig`."""
        self._program.kill()

    @contextlib.contextmanager
    def prepared(
        self, experiments: Sequence[Experiment], tell: Callable[[str], None]
    ) -> Iterator[None]:
        """See :class:`blklab.rigs.Rig`. The disks are borrowed and test files written once for all
        runs; every scheduler is set once before the first run."""
        told: list[str] = []
        journal = Journal(default_directory())
        try:
            with contextlib.ExitStack() as stack:
                signals = stack.enter_context(Signals.guarding())
                found_left = leftovers.restore(journal)
                for line in dict.fromkeys(
                    (*self._put_right, *found_left.done, *found_left.problems)
                ):
                    tell(line)
                self._put_right.clear()
                by_path: dict[str, list[Experiment]] = {}
                for experiment in experiments:
                    by_path.setdefault(str(experiment.disk.file.path), []).append(experiment)
                targets = {path: target.find(path) for path in by_path}
                rooms = {path: room_of(found) for path, found in targets.items()}
                loads = {
                    path: [self._load(one, targets[path], rooms[path]) for one in several]
                    for path, several in by_path.items()
                }
                for path, found in targets.items():
                    self._keep_device(found, loads[path], stack)
                wanted = [(targets[path], several) for path, several in by_path.items()]
                borrowed = _borrow(wanted, journal, signals, told, stack)
                if self._trace_latency:
                    disks = sorted({disk for found in targets.values() for disk in found.disks})
                    self._following = stack.enter_context(
                        requests.following(disks, journal, signals, told)
                    )
                for path, found in targets.items():
                    worn = self._written_over(found, loads[path])
                    outlook.announce(found, loads[path], worn, tell)
                    precondition.write_over(found.path, worn, tell)
                    ours = borrowed and borrowed.part(found.disks)
                    laid = None
                    if found.device is None:
                        laid = stack.enter_context(
                            files.laid_in(found.path, journal, signals, told, found.identity)
                        )
                        laid.lay_out(outlook.sizes(loads[path]), lambda _: None)
                    groups = {group.path: group for load in loads[path] for group in load.cgroups}
                    inside = None
                    if groups:
                        inside = stack.enter_context(
                            cgroups.made(list(groups.values()), journal, signals, told)
                        )
                    self._places[path] = Ready(found, ours, laid, rooms[path], inside)
                told += wall.told()
                for line in told:
                    tell(line)
                told.clear()
                yield
        finally:
            self._places.clear()
            self._following = requests.Following()
            for line in told:
                tell(line)

    def run(self, experiment: Experiment) -> Result:
        """Run the job; see :class:`blklab.rigs.Rig`."""
        place = self._places.get(str(experiment.disk.file.path))
        if place is None:
            with self.prepared([experiment], lambda _: None):
                return self.run(experiment)
        with self._lock:
            return self._run(experiment, place)

    def _run(self, experiment: Experiment, place: Ready) -> Result:
        load = self._load(experiment, place.target, place.room_bytes)
        notes = []
        if place.borrowed is not None:
            chosen = _parsed(experiment.scheduler)
            notes = place.borrowed.use(chosen.name, _texts(chosen))
        if place.cgroups is not None:
            notes += place.cgroups.weigh(load.cgroups)
        set_to = _settings(place.target)
        job = load.job if isinstance(load, Load) else None
        follower, not_followed = self._following.follower(place.target, job)
        notes += not_followed
        watch = _Watch(place.target, follower)
        with scratch.directory("run") as directory, watch:

            def begin(places: Files) -> None:
                self._fix_cache(places)
                watch.begin()
                self._began_s = time.monotonic()
                self._ends_s = load.ends_s

            result, cpu_s = load.run(
                self._program,
                directory,
                place.laid,
                begin,
                warm=self._cache == "warm",
                cgroups=place.cgroups,
            )
            self._began_s = None
            after = surroundings.snapshot(place.target)
        before = watch.before
        if place.borrowed is not None:
            place.borrowed.check_still(set_to)
        now = _settings(place.target)
        notes += result.notes
        notes += surroundings.notes(
            place.target, before, after, result.jobs, direct=load.is_direct, own_cpu_s=cpu_s
        )
        notes += watch.frequency.notes()
        if load.writes and (unsteady := self._unsteady(experiment, result)):
            notes.append(unsteady)
        whole = replace(
            result,
            disk=after.disks.since(before.disks).of_disk(),
            series=watch.sampler.series(direct=load.is_direct),
            device_before=before.to_json(set_to),
            device_after=after.to_json(now, watch.frequency.seen()),
        )
        if follower is not None:
            whole, missing = follower.added_to(whole)
            notes += missing
        return replace(whole, notes=tuple(notes))

    def _load(self, experiment: Experiment, found: target.Target, room: int) -> AnyLoad:
        check_workload(self.spec, experiment.job)
        if programs.is_program(experiment.job):
            return ProgramLoad.of(experiment, found, room)
        if recordings.is_recording(experiment.job):
            return self._planned.of(experiment, found, room)
        if experiment.job.beside:
            return BesideLoad.of(experiment, found, room, self._planned)
        return Load.of(experiment, found, room)

    def _unsteady(self, experiment: Experiment, result: Result) -> str | None:
        """Whether the runs of this workload under this scheduler are not in a steady state yet."""
        which = (str(experiment.disk.file.path), experiment.job.name, experiment.scheduler.label)
        rates = self._rates.setdefault(which, [])
        rates.append(_rate(result))
        return steady.unsteady(rates)

    def _keep_device(
        self, found: target.Target, loads: Sequence[AnyLoad], stack: contextlib.ExitStack
    ) -> None:
        if found.device is None:
            return
        kept = danger.kept(found.device)
        if any(load.writes for load in loads):
            kept = danger.kept_for_writing(
                found.device, allowed=self._write_device, overwrite=self._overwrite
            )
        stack.enter_context(kept)

    def _written_over(self, found: target.Target, loads: Sequence[AnyLoad]) -> precondition.Extents:
        """The parts of a device that are overwritten before the first run."""
        known = [load for load in loads if not isinstance(load, ProgramLoad)]
        if not (self._precondition and any(load.writes for load in known)):
            return []
        if not precondition.is_flash(found):
            return []
        return precondition.joined(
            (start, size) for load in known for _, start, size in load.places(None)
        )

    def _fix_cache(self, places: Files) -> None:
        if self._cache == "warm":
            page_cache.make_warm(places)
        else:
            page_cache.make_cold([path for path, _, _ in places])


class _Watch:
    """The machine's state at the start of a run, and the disks' counters during the run."""

    before: surroundings.Snapshot

    def __init__(self, found: target.Target, follower: requests.Follower | None) -> None:
        self._target = found
        self._follower = follower
        self._stack = contextlib.ExitStack()
        self.sampler = Sampler(found.disks)
        self.frequency = Frequency()

    def begin(self) -> None:
        """Called at the start of the run."""
        self.before = surroundings.snapshot(self._target)
        self._stack.enter_context(self.sampler)
        self._stack.enter_context(self.frequency)
        if self._follower is not None:
            self._stack.enter_context(self._follower)

    def __enter__(self) -> _Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _parsed(spec: SchedulerSpec) -> scheduler.Scheduler:
    if spec.kernel is not None:
        raise InputError(f"scheduler '{spec.label}': a kernel of its own needs --rig kernel")
    return scheduler.parse(spec)


def _rate(result: Result) -> float:
    """A rate where more is faster: bytes per time, or a program's figure."""
    figure = result.figure
    if figure is not None:
        return figure.value if figure.higher_is_better else 1.0 / figure.value
    moved = sum(job.direction(name).bytes for job in result.jobs for name in DIRECTIONS)
    return moved / max(result.duration_ns, 1)


def _settings(found: target.Target) -> dict[str, dict[str, str]]:
    return {name: queue.named(name).settings() for name in found.disks}


def _texts(chosen: scheduler.Scheduler) -> dict[str, str]:
    return {name: str(value) for name, value in chosen.changed.items()}


def _borrow(
    wanted: Sequence[tuple[target.Target, Sequence[Experiment]]],
    journal: Journal,
    signals: Signals,
    told: list[str],
    stack: contextlib.ExitStack,
) -> Borrowed | None:
    """All disks below the targets, after each scheduler was tried once; None if this user may not
    change settings and only requests the current ones."""
    queues = {name: queue.named(name) for found, _ in wanted for name in found.disks}
    chosen = [
        (found.disks, {one.scheduler.label: _parsed(one.scheduler) for one in several})
        for found, several in wanted
    ]
    if not all(os.access(one.disk / "queue/scheduler", os.W_OK) for one in queues.values()):
        for names, schedulers in chosen:
            _check_as_it_is([queues[name] for name in names], schedulers)
        told.append("no permission to set anything: measured with the current settings")
        return None
    borrowed = stack.enter_context(borrowing(list(queues.values()), journal, signals, told))
    for names, schedulers in chosen:
        for one in schedulers.values():
            borrowed.part(names).use(one.name, _texts(one))
    return borrowed


def _check_as_it_is(
    queues: Sequence[queue.Queue], chosen: Mapping[str, scheduler.Scheduler]
) -> None:
    """InputError unless each equals the disks' current setting."""
    for spec, one in chosen.items():
        for disk in queues:
            active = disk.schedulers().active
            if one.changed or one.name != active:
                raise InputError(
                    f"{shown(disk.name)}: setting '{spec}' needs root; type: {as_root()} (or "
                    f"measure the current one: --scheduler {active})"
                )
