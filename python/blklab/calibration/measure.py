"""Measures the loads on a device made for it, in interleaved rounds."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from blklab.base import scratch
from blklab.base.journal import Journal, default_directory
from blklab.base.signals import Signals
from blklab.calibration import load as loads
from blklab.calibration.disturbance import Moment
from blklab.calibration.load import Load, Measured, median
from blklab.errors import RunError
from blklab.host.devices import modules, queue
from blklab.host.roots import HERE
from blklab.rigs.live import ahead, leftovers, made
from blklab.rigs.live.borrowed import Borrowed, borrowing
from blklab.rigs.live.program import Program, check_there

_CLOCK_RUN_S = 0.3
_CLOCK_READS = 5


@dataclass
class Bench:
    """A device that is ready, and what was noticed on it."""

    device: made.Made
    schedulers: tuple[str, ...]
    """Those asked for that this kernel has."""
    _borrowed: Borrowed
    _ahead: ahead.Ahead | None
    _directory: Path
    others: list[float] = field(default_factory=list)
    """The share of the CPUs that other programs used, in each run."""

    def measure(
        self,
        groups: Sequence[Sequence[tuple[str, Load]]],
        rounds: int,
        done: Callable[[], None],
    ) -> list[dict[tuple[str, Load], list[Measured]]]:
        """Each load of each group under its scheduler, `rounds` times, in an order drawn anew for
        each round; `done` is called after each run."""
        rows: list[dict[tuple[str, Load], list[Measured]]]
        rows = [{each: [] for each in group} for group in groups]
        order = [(group, each) for group, its in enumerate(rows) for each in its]
        chance = random.Random(1)
        for _ in range(rounds):
            chance.shuffle(order)
            for group, (scheduler, load) in order:
                rows[group][scheduler, load].append(self._run(scheduler, load))
                done()
        return rows

    def _run(self, scheduler: str, load: Load) -> Measured:
        self._borrowed.use(scheduler, {})
        if load.buffered:
            self._fill_cache(load.jobs * loads.BUFFERED_BYTES)
        if self._ahead is not None:
            self._ahead.refresh()
        before = Moment.now()
        found = loads.run(load, self.device.path, self._directory, ahead=self._ahead is not None)
        self.others.append(Moment.now().others(before, found.cpu_s))
        return found

    def _fill_cache(self, left: int) -> None:
        with self.device.path.open("rb", buffering=0) as file:
            while left > 0 and (block := file.read(min(left, 1 << 20))):
                left -= len(block)

    def clock_ns(self) -> int:
        """Reading the clock: what fio's null engine needs less without its five readings."""

        def spent(*more: str) -> float:
            file, output = self._directory / "clock.fio", self._directory / "clock.json"
            lines = ["[clock]", "ioengine=null", "size=1g", "rw=randread", "bs=4k", "time_based"]
            lines += [f"runtime={round(_CLOCK_RUN_S * 1000)}ms", *more, ""]
            file.write_text("\n".join(lines))
            command = [
                "fio",
                "--eta=never",
                "--output-format=json",
                f"--output={output}",
                str(file),
            ]
            ended = Program().run(command, self._directory)
            if ended.code != 0:
                raise RunError("fio: its engine 'null' does not run here")
            return 1e9 / loads.read(output.read_text(errors="replace"), ended.cpu_s).iops

        rounds = [(spent(), spent("gtod_reduce=1")) for _ in range(3)]
        return max(round(median([full - less for full, less in rounds]) / _CLOCK_READS), 0)


@contextlib.contextmanager
def bench(
    kind: str | None, schedulers: Sequence[str], note: Callable[[str], None], *, first: bool
) -> Iterator[Bench]:
    """A new device of that kind, or of the first possible one. Whatever happens, it is removed, and
    the settings of its queue are restored. With `first` what works for it runs before all other
    programs. InputError if there is none; RunError if the kernel refuses a step."""
    chosen = made.chosen(kind)
    check_there()
    told: list[str] = []
    journal = Journal(default_directory())
    try:
        with contextlib.ExitStack() as stack:
            signals = stack.enter_context(Signals.guarding())
            left = leftovers.restore(journal)
            for line in (*left.done, *left.problems):
                note(line)
            device = stack.enter_context(made.made(chosen, journal, signals, told))
            there = queue.named(device.name)
            borrowed = stack.enter_context(borrowing([there], journal, signals, told))
            # The kernel loads one that is a module when it is set.
            available = {*there.schedulers().available, *modules.loadable(HERE)}
            known = tuple(name for name in schedulers if name in available)
            for name in schedulers:
                if name not in known:
                    note(f"{name}: not measured: this kernel does not have it")
            threads = stack.enter_context(ahead.ahead(journal, signals, told)) if first else None
            directory = stack.enter_context(scratch.directory("host"))
            yield Bench(device, known, borrowed, threads, directory)
    finally:
        for line in told:
            note(line)
