"""A real program other than fio, on a target: the counterpart of `blklab.rigs.live.load`."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from blklab import programs
from blklab.base.text import shown
from blklab.base.units import size_text
from blklab.domain.experiment import Experiment
from blklab.domain.result import Figure, Result
from blklab.errors import InputError, RunError
from blklab.programs.child import Answer, Order
from blklab.rigs.live.cgroups import Group, Made
from blklab.rigs.live.files import LaidFiles
from blklab.rigs.live.load import Files
from blklab.rigs.live.program import Program
from blklab.rigs.live.target import Target


@dataclass(frozen=True)
class ProgramLoad:
    """One experiment's program on one target."""

    chosen: programs.Chosen
    text: str
    """The workload's."""
    seed: int
    target: Target

    sizes: ClassVar[list[int]] = []
    """It creates its own files, anew for each run."""
    is_direct: ClassVar[bool] = False
    cgroups: ClassVar[list[Group]] = []

    @classmethod
    def of(cls, experiment: Experiment, target: Target, room: int) -> ProgramLoad:
        """With `room` bytes for its files. InputError if it cannot run there."""
        chosen, name = programs.chosen(experiment.job), experiment.job.name
        if why := chosen.program.missing():
            raise InputError(f"{name}: {why}")
        if chosen.program.on_device and target.device is None:
            disks = " or ".join(f"--disk /dev/{shown(disk)}" for disk in target.disks)
            raise InputError(
                f"{name}: reads from a device: expected {disks}, found a directory, "
                f"{shown(str(target.path))}"
            )
        if not chosen.program.on_device and target.device is not None:
            raise InputError(
                f"{name}: works in a directory: expected --disk DIRECTORY, found a device, "
                f"{shown(str(target.path))}"
            )
        needed = chosen.program.room_bytes(chosen.values)
        if needed > room:
            raise InputError(
                f"{shown(str(target.path))}: {name} may need {size_text(needed)}; there is room "
                f"for {size_text(room)}, a tenth of the file system stays free"
            )
        return cls(chosen, experiment.job.text, experiment.seed, target)

    @property
    def writes(self) -> bool:
        """Programs for devices only read; all others write."""
        return not self.chosen.program.on_device

    @property
    def ends_s(self) -> float | None:
        """Its run time, if known in advance."""
        return self.chosen.program.duration_s(self.chosen.values)

    def run(
        self,
        program: Program,
        directory: Path,
        laid: LaidFiles | None,
        begin: Callable[[Files], None],
        *,
        warm: bool,
        cgroups: Made | None = None,
    ) -> tuple[Result, float]:
        """Run it; returns its result, and its CPU time in s. `begin` receives its files after they
        are created. RunError with its own message if it fails."""
        if laid is None:
            return self._run(program, directory, lambda: begin([]))
        with laid.work(others=self.chosen.program.other_user) as work:
            return self._run(program, work, lambda: begin(_files(work)))

    def _run(
        self, program: Program, directory: Path, begin: Callable[[], None]
    ) -> tuple[Result, float]:
        device = self.target.path if self.target.device is not None else None
        order: Order = {
            "text": self.text,
            "seed": self.seed,
            "directory": str(directory),
            "device": None if device is None else str(device),
        }
        # -P: Python must not import modules from the directory.
        command = [sys.executable, "-P", "-m", "blklab.programs.child", json.dumps(order)]
        ended = program.run(command, directory, begin)
        if ended.code != 0 or not ended.stdout:
            lines = [line for line in ended.stderr.splitlines() if line.strip()]
            why = shown(lines[-1]) if lines else f"ended with exit code {ended.code}"
            raise RunError(f"{self.chosen.program.name}: {why}")
        answer: Answer = json.loads(ended.stdout)
        if not 0 < answer["value"] < math.inf:
            raise RunError(
                f"{self.chosen.program.name}: gave {answer['value']:g}, which is not a figure"
            )
        return self._result(answer), answer["cpu_s"]

    def _result(self, answer: Answer) -> Result:
        told = self.chosen.program
        return Result.of_program(
            Figure(answer["value"], told.unit, told.higher_is_better),
            np.array(answer["took_ns"], np.int64),
            answer["duration_ns"],
            {name: text.encode() for name, text in answer["raw"].items()},
        )


def _files(directory: Path) -> Files:
    """All created files, to be dropped from the cache or read."""
    found = (path for path in directory.rglob("*") if path.is_file() and not path.is_symlink())
    return [(path, 0, path.stat().st_size) for path in sorted(found)]
