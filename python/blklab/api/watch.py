"""``blklab.watch``: what disks do, whether another scheduler would pay, and the change."""

from __future__ import annotations

import contextlib
import math
import os
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from blklab.base.as_root import as_root
from blklab.base.journal import Journal, default_directory
from blklab.base.signals import Signals
from blklab.base.text import shown
from blklab.domain import defaults, specs
from blklab.domain.experiment import SchedulerSpec
from blklab.domain.scheduler import in_core
from blklab.errors import InputError, RunError, nearest, unknown
from blklab.host import reading, roots
from blklab.host.devices import modules, queue, stack
from blklab.host.devices.queue import SCHEDULER, GoneError, MissingError, Queue
from blklab.rigs.live import counters, recording
from blklab.rigs.live.borrowed import Borrowed, borrowing
from blklab.rigs.live.danger import full_id
from blklab.settings import programs, unit
from blklab.watching.decide import Decision, Rules, Watcher
from blklab.watching.load import Load, load
from blklab.watching.words import advice_line, kind_line

OBJECTIVES = ("latency", "throughput")
INTERVAL_S = 10.0
AT_MOST_EVERY_S = 600.0
GAIN = 0.1
STEADY = 3
_INTERVAL_LEAST_S = 0.05
_AGAIN_S = 6 * 3600.0
"""Evidence is made anew after this time: a load of one kind may still change."""
_MODELS = {"hdd": "desktop-5900rpm", "nvme": "950pro-256gb", "ssd": "su800-128gb"}


@dataclass(frozen=True)
class WatchEvent:
    """Something that a watch observed or did."""

    time: str
    """ISO 8601, UTC."""
    disk: str
    """The kernel's name."""
    what: str
    """``observed`` (each interval), ``kind`` (another kind of load), ``advice`` (another answer),
    ``set``, ``not-set``, ``note``, ``restored``."""
    text: str
    """One line."""
    decision: Decision | None = None
    """With ``observed``, ``kind``, ``advice``, ``set`` and ``not-set``."""
    load: Load | None = None
    """With ``observed``."""

    def to_json(self) -> dict[str, Any]:
        """Plain data; units are in the names."""
        row: dict[str, Any] = {
            "time": self.time,
            "disk": self.disk,
            "what": self.what,
            "text": self.text,
        }
        if (one := self.load) is not None:
            row |= {
                "requests": one.requests,
                "reads_per_s": round(one.reads_per_s, 3),
                "writes_per_s": round(one.writes_per_s, 3),
                "flushes_per_s": round(one.flushes_per_s, 3),
                "read_bytes_mean": round(one.read_bytes),
                "write_bytes_mean": round(one.write_bytes),
                "reads_in_flight": round(one.reads_in_flight, 3),
                "writes_in_flight": round(one.writes_in_flight, 3),
                "busy": round(one.busy, 4),
            }
        if (found := self.decision) is not None:
            row |= {
                "kind": found.seen.kind.name,
                "scheduler": found.present,
                "better": found.better,
                "gain": None if math.isnan(found.gain) else round(found.gain, 4),
            }
        return row


@dataclass(frozen=True)
class Watched:
    """A watch that has ended."""

    disks: tuple[str, ...]
    span_s: float
    intervals: int
    """The number of intervals of each disk."""
    changes: int
    """How often a scheduler was set, on all disks together."""
    watching_cpu_s: float
    """CPU time of this process for observing, deciding and setting."""
    evidence_cpu_s: float
    """CPU time of samples, simulations and the store."""


@dataclass(frozen=True)
class WatchLimits:
    """What a watch may do, and when."""

    objective: str = "latency"
    """What ranks schedulers: ``latency`` or ``throughput``."""
    schedulers: tuple[str | SchedulerSpec, ...] = ()
    """Those that may be set; none: Linux's own that are loaded."""
    interval_s: float = INTERVAL_S
    """The time between two looks at the counters."""
    at_most_every_s: float = AT_MOST_EVERY_S
    """The least time between two changes of a disk."""
    gain: float = GAIN
    """The part by which another scheduler must be better: 0.1 is 10 %."""
    steady: int = STEADY
    """The number of intervals that a load must last before it counts."""
    apply: bool = False
    """Whether the scheduler is set."""
    sample: bool = True
    """Whether up to 30 s of a new load's requests are recorded, where tracefs allows it."""


@dataclass
class _Disk:
    """One disk and the state of its watch."""

    queue: Queue
    choices: dict[str, SchedulerSpec]
    """By its text."""
    model: str
    is_guessed: bool
    """Whether the model only has the disk's kind."""
    watcher: Watcher
    before: counters.Counters
    before_s: float
    borrowed: Borrowed | None = None
    ours: str | None = None
    """The scheduler that this watch has set; None if it has set none, or the original one."""
    left_alone: bool = False
    """Another program sets its scheduler, too."""
    told_kind: str = ""
    told_advice: str = ""
    learnt_s: dict[str, float] = field(default_factory=dict)
    """When the evidence about each kind was made."""

    @property
    def name(self) -> str:
        """The kernel's."""
        return self.queue.name

    def present(self) -> str:
        """Its scheduler now, as on the command line."""
        active = self.queue.read(SCHEDULER)
        if self.ours is not None and self.choices[self.ours].name == active:
            return self.ours
        return active


def watch(
    disks: Sequence[str] = (),
    *,
    model: str | None = None,
    limits: WatchLimits = WatchLimits(),
    for_s: float | None = None,
    store: str | None = None,
    on_event: Callable[[WatchEvent], None] = lambda _: None,
) -> Watched:
    """Watch what disks do, and say when another scheduler would pay; with `WatchLimits.apply` set
    it.

    Settings of a disk that this call has changed are restored at its end, whatever ends it; after
    ``kill -9`` by `restore`.

    Args:
        disks: ``sda``, ``/dev/sda``; none: each disk of this machine with a choice of schedulers.
        model: the disk model that stands for them in simulations; None: one of the disk's kind.
        limits: what may be done, and when.
        for_s: the time in seconds; None: until Ctrl-C.
        store: a file or a URL; None is the default store.
        on_event: is told of all that is observed and done.

    Raises:
        InputError: there is no such disk, model or scheduler, a limit is wrong, or the scheduler
            cannot be set by this user.
        RunError: all disks are gone.
    """
    _check(limits, for_s)
    begun_s, cpu_s = time.monotonic(), _cpu_s()
    with Signals.guarding() as signals, contextlib.ExitStack() as stack_of_disks:
        work = _Work(limits, store, signals, on_event, stack_of_disks)
        every = [_disk(one, model, limits, work) for one in _queues(disks)]
        work.announce(every, model)
        intervals = 0
        with contextlib.suppress(KeyboardInterrupt):
            ends_s = math.inf if for_s is None else begun_s + for_s
            next_s = begun_s
            while every and next_s + limits.interval_s <= ends_s + 1e-9:
                next_s = max(next_s + limits.interval_s, time.monotonic())
                time.sleep(max(0.0, next_s - time.monotonic()))
                intervals += 1
                every = [one for one in every if work.look(one)]
            if not every:
                raise RunError("no disk is left to watch: all are gone")
    return Watched(
        tuple(work.names),
        time.monotonic() - begun_s,
        intervals,
        work.changes,
        _cpu_s() - cpu_s - work.evidence_cpu_s,
        work.evidence_cpu_s,
    )


class _Work:
    """What all disks of a watch share."""

    def __init__(
        self,
        limits: WatchLimits,
        store: str | None,
        signals: Signals,
        on_event: Callable[[WatchEvent], None],
        stack_of_disks: contextlib.ExitStack,
    ) -> None:
        self._limits, self._store, self._signals = limits, store, signals
        self._on_event, self._stack = on_event, stack_of_disks
        self._why_no_sample = recording.why_not() if limits.sample else "--no-sample"
        self.names: list[str] = []
        self.changes = 0
        self.evidence_cpu_s = 0.0

    def tell(
        self,
        disk: str,
        what: str,
        text: str,
        decision: Decision | None = None,
        of_load: Load | None = None,
    ) -> None:
        """An event of now."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._on_event(WatchEvent(now, disk, what, text, decision, of_load))

    def announce(self, disks: Sequence[_Disk], model: str | None) -> None:
        """What the answers of this watch will rest on."""
        self.names = [one.name for one in disks]
        for one in disks:
            chosen = f"simulated as {one.model}"
            if model is None:
                chosen += ", a disk of its kind; --model names another"
            self.tell(one.name, "note", chosen)
            if self._why_no_sample:
                text = f"requests are not sampled ({self._why_no_sample}): a workload stands for"
                self.tell(one.name, "note", f"{text} each kind of load")

    def look(self, disk: _Disk) -> bool:
        """One interval of one disk; whether it is still there."""
        try:
            if not disk.queue.is_there():
                raise GoneError(disk.name, SCHEDULER)
            now, now_s = counters.of([disk.name]), time.monotonic()
            since = now.since(disk.before).of_disk()
            found = load(since, round((now_s - disk.before_s) * 1e9))
            disk.before, disk.before_s = now, now_s
            present = disk.present()
            if disk.ours is not None and present != disk.ours and not disk.left_alone:
                disk.left_alone = True
                text = f"another program has set {shown(present)}; blklab sets it no more"
                self.tell(disk.name, "note", text)
            decision = self._decided(disk, now_s, found, present)
            self._say(disk, decision, found)
            if decision.set_now and self._limits.apply and not disk.left_alone:
                self._set(disk, decision, now_s)
        except GoneError as error:
            self.tell(disk.name, "note", str(error))
            return False
        return True

    def _decided(self, disk: _Disk, now_s: float, found: Load, present: str) -> Decision:
        for name, made_s in list(disk.learnt_s.items()):
            if now_s - made_s > _AGAIN_S:
                del disk.learnt_s[name]
                disk.watcher.forget(name)
        decision = disk.watcher.observe(now_s, found, present)
        if not decision.needs_evidence:
            return decision
        cpu_s = _cpu_s()
        # The store, the analysis and the simulator, 400 ms: only where evidence is needed.
        from blklab.api.watch_evidence import Sources

        sources = Sources(
            disk.name,
            shown(full_id(disk.name)),
            disk.model,
            disk.is_guessed,
            self._limits.objective,
            self._store,
            not self._why_no_sample,
            self._signals,
            lambda line: self.tell(disk.name, "note", line),
        )
        seen = decision.seen
        disk.watcher.learn(seen, sources.about(seen, found, [present, *disk.choices]))
        disk.learnt_s[seen.key] = now_s
        self.evidence_cpu_s += _cpu_s() - cpu_s
        return disk.watcher.again(now_s, decision)

    def _say(self, disk: _Disk, decision: Decision, found: Load) -> None:
        self.tell(disk.name, "observed", kind_line(decision), decision, found)
        if decision.settled and decision.seen.key != disk.told_kind:
            disk.told_kind, disk.told_advice = decision.seen.key, ""
            self.tell(disk.name, "kind", kind_line(decision), decision)
        # The same answer again, only with other figures, is no news.
        short = f"{decision.better} {decision.present}"
        is_answer = decision.evidence is not None or decision.better is not None
        if is_answer and short != disk.told_advice:
            disk.told_advice = short
            self.tell(disk.name, "advice", advice_line(decision), decision)

    def _set(self, disk: _Disk, decision: Decision, now_s: float) -> None:
        better = decision.better
        assert better is not None
        disk.watcher.changed(now_s)
        spec = disk.choices[better]
        try:
            if disk.borrowed is None:
                self._borrow(disk)
            assert disk.borrowed is not None
            original = disk.borrowed.before[disk.name].get(SCHEDULER)
            if spec.name == original and not spec.settings:
                # With the tunables that it had.
                notes = disk.borrowed.reset()
                disk.ours = None
            else:
                notes = disk.borrowed.use(spec.name, dict(spec.settings))
                disk.ours = better
        except GoneError:
            raise
        except (InputError, RunError) as error:
            self.tell(disk.name, "not-set", f"{better} was not set: {error}", decision)
            return
        self.changes += 1
        self.tell(disk.name, "set", f"scheduler {decision.present} -> {better}", decision)
        for note in notes:
            self.tell(disk.name, "note", note)

    def _borrow(self, disk: _Disk) -> None:
        """From the first change on, no other blklab sets this disk. BusyError, RunError."""
        told: list[str] = []
        journal = Journal(default_directory())

        def restored() -> None:
            for line in told:
                self.tell(disk.name, "note", line)
            if not told:
                before = disk.borrowed.before[disk.name].get(SCHEDULER) if disk.borrowed else ""
                self.tell(disk.name, "restored", f"scheduler {before} and its settings restored")

        with contextlib.ExitStack() as made:
            made.callback(restored)
            disk.borrowed = made.enter_context(
                borrowing([disk.queue], journal, self._signals, told)
            )
            for line in told:
                self.tell(disk.name, "note", line)
            told.clear()
            self._stack.push(made.pop_all())


def install_watch(
    options: Sequence[str], disks: Sequence[str], limits: WatchLimits, model: str | None
) -> tuple[str, ...]:
    """Install a unit of systemd that runs ``blklab watch`` with these `options` now and after each
    boot. Returns unexpected findings, a line each. It is removed by `uninstall_watch` or `undo`.

    Raises:
        InputError: the disks, limits or model are wrong, a unit is installed, or that needs root.
    """
    _check(limits, None)
    if model is not None:
        check_model(model)
    for one in _queues(disks):
        _choices(one, limits.schedulers)
    return tuple(unit.install(options, roots.HERE, programs.HERE))


def uninstall_watch() -> tuple[unit.WatchUnit, tuple[str, ...]]:
    """Stop and remove the unit. Returns it, and unexpected findings, a line each.

    Raises:
        InputError: none is installed, it is not as blklab wrote it, or that needs root.
    """
    found, notes = unit.uninstall(roots.HERE, programs.HERE)
    return found, tuple(notes)


def _check(limits: WatchLimits, for_s: float | None) -> None:
    if limits.objective not in OBJECTIVES:
        text = f"--objective: no '{shown(limits.objective)}'"
        raise unknown(text, limits.objective, OBJECTIVES)
    if not limits.interval_s >= _INTERVAL_LEAST_S:
        raise InputError(
            f"--interval: expected at least {_INTERVAL_LEAST_S:g} s, found {limits.interval_s:g} s"
        )
    if not limits.at_most_every_s >= 0:
        raise InputError("--at-most-every: expected no negative time")
    if not limits.gain > 0:
        raise InputError(f"--gain: expected more than 0 %, found {100 * limits.gain:g} %")
    if for_s is not None and for_s < limits.interval_s:
        raise InputError(f"--for: shorter than one --interval of {limits.interval_s:g} s")
    if limits.steady < 1:
        raise InputError(f"--steady: expected at least 1 interval, found {limits.steady}")


def _queues(names: Sequence[str]) -> list[Queue]:
    """The named disks; else all with a choice of schedulers."""
    if names:
        found = dict.fromkeys(queue.find(name).name for name in names)
        return [queue.named(name) for name in found]
    every = []
    for name in queue.disks():
        one = Queue.of_disk(name)
        is_real = (
            not stack.backing_file(name, roots.HERE) and reading.value(one.disk / "size") != "0"
        )
        with contextlib.suppress(MissingError, GoneError):
            if is_real and len(one.schedulers().available) > 1:
                every.append(one)
    if not every:
        raise InputError("no disk of this machine has a choice of schedulers; see: blklab devices")
    return every


def _disk(one: Queue, model: str | None, limits: WatchLimits, work: _Work) -> _Disk:
    """InputError if a scheduler does not fit the disk, or if it cannot be set."""
    chosen = {spec.text: spec for spec in _choices(one, limits.schedulers)}
    path = one.disk / "queue" / SCHEDULER
    if limits.apply and not os.access(path, os.W_OK):
        root = os.geteuid() == 0
        how = "it is not writable, even by root" if root else f"needs root; type: {as_root()}"
        raise InputError(f"{shown(one.name)}: --apply sets {path}: {how}")
    rules = Rules(
        tuple(chosen),
        limits.objective,
        limits.at_most_every_s,
        1 + limits.gain,
        limits.steady,
    )
    like = _model(one) if model is None else model
    check_model(like)
    now = counters.of([one.name])
    return _Disk(one, chosen, like, model is None, Watcher(rules), now, time.monotonic())


def check_model(model: str) -> None:
    """InputError if there is no such disk model."""
    from blklab.rigs import find_disk
    from blklab.rigs.sim import SimRig

    find_disk(SimRig(), model)


def _choices(one: Queue, asked: Sequence[str | SchedulerSpec]) -> list[SchedulerSpec]:
    available = one.schedulers().available
    if len(available) < 2 and not asked:  # noqa: PLR2004
        raise InputError(
            f"{shown(one.name)}: no scheduler fits it; see the disks below: "
            f"blklab devices {shown(one.name)}"
        )
    if not asked:
        return [SchedulerSpec(name) for name in defaults.LINUX if name in available]
    here = [*available, *modules.loadable(roots.HERE)]
    found = []
    for spec in map(specs.scheduler, asked):
        if spec.name not in here:
            text = f"{shown(one.name)}: this kernel has no scheduler '{shown(spec.name)}'"
            raise InputError(f"{text}{nearest(spec.name, here)}")
        if spec.kernel is not None:
            raise InputError(f"scheduler '{spec.label}': a disk of this machine has one kernel")
        in_core(spec)
        found.append(spec)
    return found


def _model(one: Queue) -> str:
    """A disk model of its kind."""
    if one.name.startswith("nvme"):
        return _MODELS["nvme"]
    return _MODELS["hdd" if reading.value(one.disk / "queue/rotational") == "1" else "ssd"]


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
