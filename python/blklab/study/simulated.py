"""The simulation beside a part on the kernel rig: schedulers that no kernel has any more.

A job file is simulated as it is. A real program runs once in a guest, under one scheduler, and its
recording is replayed under each, as inferred: each I/O waits for what it waited for. Its figure
under a scheduler is the recorded one, divided as its time grows: the time of the recorded
measurement, longer by what the replay of its I/O is longer than the recorded I/O. What the program
computes takes the recorded time.

Schedulers that the kernel has are simulated too: `blklab.study.trust` compares the two.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from blklab import programs
from blklab.base import pool
from blklab.domain import recordings, specs
from blklab.domain.comparison import Setup
from blklab.domain.experiment import Experiment, SchedulerSpec
from blklab.domain.measurement import Measurement, measure
from blklab.domain.result import Figure
from blklab.domain.results_file import Results
from blklab.errors import BlklabError
from blklab.experiment.describe import describe
from blklab.rigs import Rig
from blklab.rigs.kernel.recording import Recorded, record
from blklab.rigs.kernel.rig import KernelRig
from blklab.rigs.sim import SimRig
from blklab.study.kernels import KernelsRig
from blklab.study.plan import PlannedPart


@dataclass(frozen=True)
class _Unit:
    """A workload on a disk, with the seed of one repeat."""

    disk_number: int
    workload_number: int
    repeat: int


def run(
    planned: PlannedPart, rig: Rig | None, jobs: int, done: Callable[[Any], None]
) -> Results | None:
    """Run it, `jobs` units at a time; None if nothing is to be simulated. `done` is called after
    each unit. BlklabError if one fails."""
    if planned.simulated is None or not isinstance(rig, KernelsRig):
        return None
    kernel = rig.default
    assert isinstance(kernel, KernelRig)
    under = specs.scheduler(planned.part.recorded_under or "none")
    beside = _Beside(_hosted(planned.simulated, kernel), kernel, SimRig(), under)
    found: dict[tuple[int, int, int, int], Measurement] = {}

    def ended(units: Sequence[list[tuple[tuple[int, int, int, int], Measurement]]]) -> None:
        for rows in units:
            found.update(rows)
            done(None)

    def cancel() -> None:
        beside.kernel.cancel()
        beside.sim.cancel()

    pool.run_all(beside.unit, list(beside.units()), jobs, ended, cancel)
    described = describe(beside.described(), beside.sim)
    return Results(described, tuple(one for _, one in sorted(found.items())))


@dataclass(frozen=True)
class _Beside:
    """A simulation, and all that it needs."""

    setup: Setup
    kernel: KernelRig
    sim: SimRig
    under: SchedulerSpec

    def units(self) -> Iterator[_Unit]:
        """In the order in which they begin."""
        for repeat in range(self.setup.repeats):
            for workload in range(len(self.setup.workloads)):
                for disk in range(len(self.setup.disks)):
                    yield _Unit(disk, workload, repeat)

    def unit(self, unit: _Unit) -> list[tuple[tuple[int, int, int, int], Measurement]]:
        """The measurements under all schedulers, each with its place in the order of tables."""
        workload = self.setup.workloads[unit.workload_number]
        experiment = Experiment(
            workload,
            self.setup.disks[unit.disk_number],
            self.under,
            self.setup.seed + unit.repeat,
            self.setup.host,
        )
        try:
            if programs.is_program(workload):
                rows = self._replays(experiment, unit.repeat)
            else:
                rows = self._jobs(experiment, unit.repeat)
        except BlklabError as error:
            raise type(error)(
                f"{workload.name} on {experiment.disk.label}, beside the kernel: {error}"
            ) from error
        return [
            ((unit.disk_number, unit.workload_number, number, unit.repeat), row)
            for number, row in enumerate(rows)
        ]

    def described(self) -> Setup:
        """The set-up with what ran on the simulator."""
        loads = [
            replace(load, text=_told(load.text, self.under), kind="recording")
            if programs.is_program(load)
            else load
            for load in self.setup.workloads
        ]
        return replace(self.setup, workloads=tuple(loads))

    def _jobs(self, experiment: Experiment, repeat: int) -> list[Measurement]:
        several = [replace(experiment, scheduler=one) for one in self.setup.schedulers]
        return [measure(one, self.sim.run(one), repeat=repeat) for one in several]

    def _replays(self, experiment: Experiment, repeat: int) -> list[Measurement]:
        host = self.kernel.check_host({})
        own = {name: value for name, value in experiment.host.items() if name in host}
        with tempfile.TemporaryDirectory(prefix="blklab-") as directory:
            file = Path(directory) / "program.rec"
            recorded = record(self.kernel, replace(experiment, host=own), file)
            if not recorded.ios:
                same = measure(experiment, recorded.result, repeat=repeat)
                notes = (*same.notes, "the program does no I/O while it is measured")
                return [
                    replace(same, scheduler=one.label, notes=notes, story=None)
                    for one in self.setup.schedulers
                ]
            load = recordings.entry(file, {}, experiment.job.name)
            return [
                self._replay(replace(experiment, job=load, scheduler=one), recorded, repeat)
                for one in self.setup.schedulers
            ]

    def _replay(self, experiment: Experiment, recorded: Recorded, repeat: int) -> Measurement:
        result = self.sim.run(experiment)
        own = recorded.result
        assert own.figure is not None
        duration_ns = max(own.duration_ns + result.duration_ns - recorded.span_ns, 1)
        longer = duration_ns / own.duration_ns
        value = (
            own.figure.value / longer if own.figure.higher_is_better else own.figure.value * longer
        )
        found = measure(experiment, result, repeat=repeat)
        note = (
            f"replayed on the simulator from a recording under {self.under.label}, in which the "
            f"program takes {own.duration_ns / 1e9:.3f} s, and its {recorded.ios} I/Os "
            f"{recorded.span_ns / 1e9:.3f} s"
        )
        figure = Figure(value, own.figure.unit, own.figure.higher_is_better)
        return replace(
            found,
            duration_ns=duration_ns,
            figure=figure,
            notes=(note, *found.notes),
            jobs=(),
            costs=own.costs,
        )


def _hosted(setup: Setup, kernel: KernelRig) -> Setup:
    """With the host of that kernel's guests."""
    made = kernel.made
    own = specs.guest(made.as_guest)
    return replace(setup, host={**setup.host, **own})


def _told(text: str, under: SchedulerSpec) -> str:
    """The text of a replayed program."""
    return f"# A program's recording under {under.label}, replayed\n{text}"
