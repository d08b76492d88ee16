"""Random sequences of blklab's commands on a machine, and of disturbances.

Hypothesis draws live runs, ``apply``, ``undo`` and ``restore``, signals to them at random moments,
actions of other programs meanwhile (settings, files, unmounts, full disks, removed disks), and
shrinks a failing sequence. After each step `Model.settle` compares the whole machine.

No draw depends on the machine's state, so that a sequence can be repeated; only the timing
differs.
"""

from __future__ import annotations

import contextlib
import functools
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.machine_command import PHASES, Command
from tests.machine_draws import (
    APPLIED,
    BEGUN_WITH,
    BLOWS,
    EARLY_BLOWS,
    HARMLESS,
    JOBS,
    LOADS,
    NAMES,
    OTHERS,
    PHASE_S,
    PROGRAMS,
    RUN_WITH,
    SCHEDULERS,
    STOPPING,
    WITH_FILES,
    WITHOUT_A_CHANCE,
    WRITTEN,
    Blow,
    Meanwhile,
    Moment,
)
from tests.machine_model import ANYTHING, Asked, LostError, Model
from tests.machine_snapshot import settings
from tests.machine_user import User
from tests.machine_world import HOME, OWN, STATE, Disk, World

FIGURES: Counter[str] = Counter()
"""Counts of steps and commands over all sequences of this process."""
SCRIPT: list[str] = []
"""The current sequence as shell commands."""


@dataclass(frozen=True)
class Lost:
    """A failed sequence."""

    why: str
    script: list[str]
    number: int
    """The number of the sequence in this process."""

    def __str__(self) -> str:
        return "\n".join([f"Sequence {self.number}, as one would type it:", *self.script, self.why])


LOST: list[Lost] = []
"""The failures of all sequences of this process."""


Rule = TypeVar("Rule", bound=Callable[..., None])


def step(**drawn: st.SearchStrategy[Any]) -> Callable[[Rule], Rule]:
    """A rule for Hypothesis that does nothing after a failure."""

    def made(do: Rule) -> Rule:
        @functools.wraps(do)
        def unless_lost(self: MachineState, /, **values: Any) -> None:
            if not self._lost:
                try:
                    do(self, **values)
                except Exception:
                    # An error of the model, or a broken machine.
                    self._fail(traceback.format_exc())

        decorated: Any = rule
        return cast(Rule, decorated(**drawn)(unless_lost))

    return made


class MachineState(RuleBasedStateMachine):
    """One sequence. `world` is set once per process and created again for each sequence."""

    world: World
    goes_on = False
    """Whether a failing sequence is only counted."""

    def __init__(self) -> None:
        super().__init__()
        FIGURES["sequences"] += 1
        SCRIPT.clear()
        self.world.make()
        for name, text in JOBS.items():
            (HOME / f"{name}.fio").write_text(text)
        self.model = Model(self.world)
        self.user = User(self.world, self.model, SCRIPT.append)
        self._lost = ""

    @initialize(
        begun_with=st.fixed_dictionaries(dict.fromkeys(("big", "small", "raw"), BEGUN_WITH))
    )
    def begin(self, begun_with: dict[str, tuple[tuple[str, str], ...]]) -> None:
        """Sets the disks' settings before the first command."""
        asked: Asked = {}
        for role, chosen in begun_with.items():
            for what in chosen:
                asked |= self.user.sets(self._disk(role), *what)
        self._settle(asked)

    # Live runs.

    @step(
        role=NAMES,
        load=st.sampled_from((*JOBS, *PROGRAMS)),
        scheduler=st.sampled_from(RUN_WITH),
        cold=st.integers(0, 9).map(lambda value: value == 9),
        options=st.sets(st.sampled_from(("--trace-latency", "--write-device")), max_size=2),
        others=st.lists(OTHERS, max_size=2),
    )
    def run(
        self,
        role: str,
        load: str,
        scheduler: str,
        cold: bool,
        options: set[str],
        others: list[Meanwhile],
    ) -> None:
        """A live run of any kind, with actions of other programs meanwhile."""
        words = _words_of_run(self._disk(role), load, scheduler, cold, sorted(options))
        self._run(words, self._disk(role), others)

    @step(role=NAMES, load=LOADS, scheduler=SCHEDULERS, others=st.lists(OTHERS, max_size=1),
          blow=BLOWS)  # fmt: skip
    def run_and_signal(
        self, role: str, load: str, scheduler: str, others: list[Meanwhile], blow: Blow
    ) -> None:
        """A live run without errors, and a signal to it."""
        words = _words_of_run(self._disk(role), load, scheduler, False, ["--write-device"])
        self._run(words, self._disk(role), others, blow)

    def _run(
        self,
        words: Sequence[str],
        disk: Disk,
        others: Sequence[Meanwhile],
        blow: Blow | None = None,
    ) -> None:
        command = self._start(*words)
        asked: Asked = {}
        if disk.role == "raw":
            asked["data/raw/first"] = frozenset({ANYTHING})
        events: list[Meanwhile | Blow] = [*others, *([blow] if blow else [])]
        struck = False
        for event in sorted(events, key=lambda event: PHASES.index(event.moment.phase)):
            _wait(command, event.moment, disk)
            if isinstance(event, Blow):
                struck |= self._strike(command, event)
            else:
                asked |= self._meanwhile(event, command, disk, asked)
        code = self._ended(command)
        asked |= self.user.comes_again(self.world.raw)
        if struck and _is_deadly(blow):
            self.model.killed(disk, asked)
        elif code == 0:
            asked |= _either(self.model.restored(), asked)
        self._settle(asked)

    def _meanwhile(self, event: Meanwhile, command: Command, disk: Disk, asked: Asked) -> Asked:
        """The possible changes of an action, besides those of `asked`; the run may restore some."""
        FIGURES["changes from outside"] += 1
        other = self._disk(event.role)
        lives = not command.has_ended()
        if event.name == "write":
            written = self.user.sets(other, *event.what)
            if not (lives and other is disk):
                return written
            state = self.model.state
            either = {key: values | {state.get(key)} for key, values in written.items()}
            if event.what[0] == "scheduler":
                # Read while the run may be setting it too: the value is that of either.
                coupled = self.model.coupled(disk.role, either)
                coupled |= {key: either[key] for key in either if key.endswith("/scheduler")}
                return either | self.model.may_be(coupled)
            return either
        if event.name == "apply":
            return self._apply_quietly(event.what[0], other, asked)
        if event.name == "undo":
            return self._undo_quietly()
        if event.name == "restore":
            self._whole("restore")
            return {}
        if event.name == "run":
            self._whole(*_words_of_run(other, "reads", "kyber", False, []))
            return {}
        if event.name == "freeze":
            self._strike(command, Blow(event.moment, signal.SIGSTOP, "blklab"))
            return {}
        if event.name.startswith("umount") and lives and other.is_mounted():
            self.model.leftovers_in.add(other.role)
            self.model.leftovers = True
        return {
            "umount": lambda: self.user.unmounts(other),
            "umount_lazily": lambda: self.user.unmounts(other, "--lazy"),
            "fill": lambda: self.user.fills(other),
            "save": lambda: self.user.saves(other),
            "cut": lambda: self.user.breaks(self.world.raw),
        }[event.name]()

    # Settings that stick.

    @step(role=NAMES, choice=st.sampled_from(APPLIED))
    def apply(self, role: str, choice: tuple[str, dict[str, str]]) -> None:
        """Applies settings to one disk."""
        self._apply(role, choice, "id", None)

    @step(role=NAMES, choice=st.sampled_from(APPLIED), kind=st.sampled_from(("id", "kind")),
          blow=EARLY_BLOWS)  # fmt: skip
    def apply_and_signal(
        self, role: str, choice: tuple[str, dict[str, str]], kind: str, blow: Blow | None
    ) -> None:
        """Applies settings to one disk or to all of its kind, perhaps with a signal."""
        self._apply(role, choice, kind, blow)

    def _apply(
        self, role: str, choice: tuple[str, dict[str, str]], kind: str, blow: Blow | None
    ) -> None:
        disk = self._disk(role)
        spec, chosen = choice
        disks = [disk] if kind == "id" else self._of_its_kind(disk)
        command = self._start("apply", disk.name, *spec.split(), "--for", kind)
        struck = self._strike_early(command, blow, disk)
        self._ended(command)
        entries = self.model.entries()
        self.model.leftovers |= struck and _is_deadly(blow)
        if len(entries) == len(self.model.stack):
            self._settle({})
            return
        asked = self.model.applied(disks, chosen, {})
        if entries[-1]:
            self._settle(asked)
            return
        if not (struck and _is_deadly(blow)):
            self._fail("the latest entry is not whole, and the next apply would be refused")
        self.model.interrupted = self.model.stack[-1]
        self._settle(asked)

    @step(everything=st.booleans(), blow=EARLY_BLOWS)
    def undo(self, everything: bool, blow: Blow | None) -> None:
        """Undoes the latest entry or all; perhaps with a signal."""
        command = self._start("undo", *(["--all"] if everything else []))
        struck = self._strike_early(command, blow, self.world.big)
        code = self._ended(command)
        self.model.leftovers |= struck and _is_deadly(blow)
        entries = self.model.entries()
        asked = self.model.undone(len(self.model.stack) - len(entries))
        if entries and not entries[-1]:
            if code == 0:
                self._fail("the latest entry is not whole after an undo that went well")
            self.model.interrupted = self.model.stack[-1]
        self._settle(asked)

    @step(blow=EARLY_BLOWS, forget=st.none() | NAMES)
    def restore(self, blow: Blow | None, forget: str | None) -> None:
        """Restores leftovers of killed runs; perhaps with a signal."""
        words = ["--forget", self._disk(forget).name] if forget else []
        command = self._start("restore", *words)
        struck = self._strike_early(command, blow, self.world.big)
        code = self._ended(command)
        if struck or not self.user.has_left_state():
            self.model.leftovers |= struck
            self._settle({})
        elif forget is None:
            self._settle(self.model.restored())
        else:
            self._settle(self.model.forgotten(self._disk(forget)) if code == 0 else {})

    # Actions of other programs.

    @step(role=NAMES, what=st.sampled_from(WRITTEN))
    def write(self, role: str, what: tuple[str, str]) -> None:
        """Another program changes a setting."""
        self._settle(self.user.sets(self._disk(role), *what))

    @step(role=WITH_FILES, what=st.sampled_from(("fill", "free", "save", "ro", "rw")))
    def files(self, role: str, what: str) -> None:
        """Another program fills a file system, frees space, writes a file; it becomes read-only."""
        disk = self._disk(role)
        if what in ("ro", "rw"):
            self._settle(self.user.remounts(disk.point, what) if disk.is_mounted() else {})
            return
        change = {"fill": self.user.fills, "free": self.user.frees, "save": self.user.saves}
        self._settle(change[what](disk))

    @step(role=WITH_FILES)
    def mount_or_not(self, role: str) -> None:
        """Unmounts a mounted file system, or mounts an unmounted one."""
        disk = self._disk(role)
        self._settle((self.user.unmounts if disk.is_mounted() else self.user.mounts)(disk))

    @step(role=NAMES)
    def replace(self, role: str) -> None:
        """The disk is pulled out and put in again."""
        self._settle(self.user.replaces(self._disk(role)))

    @step(what=st.sampled_from(("full", "ro", "fine", "fine")))
    def state(self, what: str) -> None:
        """blklab may have no room for its records, or no permission to write them."""
        self._settle(self.user.takes_state(what))

    # Parts of the rules.

    def _disk(self, role: str) -> Disk:
        disk: Disk = getattr(self.world, role)
        return disk

    def _of_its_kind(self, disk: Disk) -> list[Disk]:
        """The disks with the same driver (by name) and the same `rotational`."""

        def kind(one: Disk) -> tuple[str, str]:
            driver = "loop" if one.name.startswith("loop") else one.name[:2]
            return driver, settings(one)["rotational"]

        return [one for one in self.world.disks if kind(one) == kind(disk)]

    def _start(self, *words: str) -> Command:
        FIGURES["commands"] += 1
        command = Command.start(*words)
        SCRIPT.append(f"{command} &")
        self.model.started.append(command.pid)
        return command

    def _whole(self, *words: str) -> Command:
        command = self._start(*words)
        self._ended(command)
        return command

    def _ended(self, command: Command) -> int:
        """Waits for its end; its exit code."""
        code = command.wait()
        if command.hangs:
            self._fail(f"{command} hung: {command.said()}")
        SCRIPT.append(f"wait $!  # exit code {code}: {_last_line(command.said())}")
        return code

    def _strike(self, command: Command, blow: Blow) -> bool:
        """Sends the signal; whether it may have ended the command."""
        name = _name(blow.number)
        sent = command.send(blow.number, blow.target)
        SCRIPT.append(f"kill -{name} {blow.target}  # {blow.moment}{'' if sent else ': too late'}")
        if not sent:
            return False
        FIGURES["signals"] += 1
        FIGURES[f"signal {name}"] += 1
        if blow.number in STOPPING:
            time.sleep(0.05)
            command.send(signal.SIGCONT, blow.target)
        return blow.number not in (*STOPPING, *HARMLESS)

    def _strike_early(self, command: Command, blow: Blow | None, disk: Disk) -> bool:
        if blow is None:
            return False
        _wait(command, blow.moment, disk)
        return self._strike(command, blow)

    def _apply_quietly(self, spec: str, disk: Disk, asked: Asked) -> Asked:
        count = len(self.model.entries())
        self._whole("apply", disk.name, *spec.split())
        if len(self.model.entries()) == count:
            return {}
        return self.model.applied([disk], dict(APPLIED)[spec], asked)

    def _undo_quietly(self) -> Asked:
        count = len(self.model.entries())
        self._whole("undo")
        return self.model.undone(count - len(self.model.entries()))

    def _settle(self, asked: Asked) -> None:
        FIGURES["steps"] += 1
        try:
            self.model.settle(asked)
        except LostError as found:
            self._fail(str(found))
        finally:
            FIGURES["compared"] += self.model.compared
            self.model.compared = 0
            for output in OWN.glob("output-*"):
                output.unlink()

    def _fail(self, why: str) -> None:
        """Records the failure; the remaining steps do nothing."""
        if not self._lost:
            self._lost = why
            FIGURES["lost"] += 1
            LOST.append(Lost(why, list(SCRIPT), FIGURES["sequences"]))

    def teardown(self) -> None:
        """The end, and the only failing check, so that the drawn values do not depend on timing."""
        if not self._lost:
            self._end()
        if self._lost and not self.goes_on:
            raise LostError(self._lost)

    def _end(self) -> None:
        """Mounts, restores and undoes everything: the state must be the first one, except for
        requested changes."""
        self.state(what="fine")
        for disk in self.world.with_files:
            if disk.is_mounted():
                self._settle(self.user.remounts(disk.point, "rw"))
            else:
                self.mount_or_not(role=disk.role)
        self.restore(blow=None, forget=None)
        self.undo(everything=True, blow=None)
        if self.model.owed or self.model.leftovers or self.model.stack:
            self._fail("something is owed at the end")


def _words_of_run(
    disk: Disk, load: str, scheduler: str, cold: bool, options: Sequence[str]
) -> list[str]:
    place = disk.node if disk.role == "raw" else disk.point
    cache = "cold" if cold else "warm"
    words = ["--rig", "live", "--disk", str(place), "--scheduler", scheduler, "--cache", cache]
    if load in JOBS:
        return ["fio", f"{load}.fio", *words, "--no-keep", *options]
    return ["compare", "--workload", load, *words, "--repeats", "1", "--no-keep", *options]


def _wait(command: Command, moment: Moment, disk: Disk) -> None:
    """Waits for this moment of the command, or for its end."""
    scheduler = disk.queue / "scheduler"
    before = scheduler.read_text()
    records = _records()
    reached: dict[str, Callable[[], bool]] = {
        "begin": lambda: True,
        "written": lambda: bool(_records() - records),
        "set": lambda: scheduler.read_text() != before or command.program_runs(),
        "runs": command.program_runs,
    }
    command.until(reached[moment.phase if moment.phase != "ends" else "runs"])
    if moment.phase == "ends":
        command.until(lambda: not command.program_runs())
    command.until(lambda: False, moment.fraction * PHASE_S)


def _records() -> set[tuple[str, int]]:
    """The journal's records, each with its time."""
    found = set()
    for path in (STATE / "journal").glob("*.json"):
        with contextlib.suppress(FileNotFoundError):
            found.add((path.name, path.stat().st_mtime_ns))
    return found


def _either(one: Asked, other: Asked) -> Asked:
    """The union of the values that either allows."""
    return {key: one.get(key, frozenset()) | other.get(key, frozenset()) for key in {*one, *other}}


def _is_deadly(blow: Blow | None) -> bool:
    """Whether the signal leaves blklab no chance to restore anything."""
    return (
        blow is not None and blow.number in WITHOUT_A_CHANCE and blow.target in ("blklab", "group")
    )


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name.removeprefix("SIG")
    except ValueError:
        return str(number)
