"""A job file on a target, and recorded I/O beside it: fio and ``blklab-replay`` at the same time.

Both programs are started together, each confined to the run's files. fio first reads its job file
and prepares its processes, so that its I/O begins later; a note says by how much.
"""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from blklab.base.units import duration_text
from blklab.domain.experiment import Experiment
from blklab.domain.result import Result
from blklab.rigs.live.cgroups import Group, Made
from blklab.rigs.live.files import LaidFiles
from blklab.rigs.live.load import OUTPUT, Files, Load
from blklab.rigs.live.program import Program
from blklab.rigs.live.replay_load import Planned, ReplayLoad
from blklab.rigs.live.target import Target

_REPLAY = "replay"


@dataclass(frozen=True)
class BesideLoad:
    """One experiment's job file and recordings on one target."""

    fio: Load
    replay: ReplayLoad
    """Its test file comes after those of fio."""

    @classmethod
    def of(cls, experiment: Experiment, target: Target, room: int, planned: Planned) -> BesideLoad:
        """With `room` bytes for the files of both, or on a device of that size. InputError as of
        `Load.of` and `ReplayLoad.of`."""
        fio = Load.of(experiment, target, room)
        left = room - sum(fio.sizes) if target.device is None else room
        replayed = planned.of(experiment, target, left)
        return cls(fio, replace(replayed, number=len(fio.sizes)))

    @property
    def sizes(self) -> list[int]:
        """The sizes of the test files in bytes."""
        return [*self.fio.sizes, *self.replay.sizes]

    @property
    def writes(self) -> bool:
        """Or discards."""
        return self.fio.writes or self.replay.writes

    @property
    def is_direct(self) -> bool:
        """All of its I/O goes past the page cache."""
        return self.fio.is_direct

    @property
    def cgroups(self) -> list[Group]:
        """Those of the job file. Recorded processes are in none."""
        return self.fio.cgroups

    @property
    def ends_s(self) -> float | None:
        """Its duration, if the job file has a runtime and the recording a length."""
        ends = (self.fio.ends_s, self.replay.ends_s)
        return None if None in ends else max(end for end in ends if end is not None)

    def places(self, laid: LaidFiles | None) -> Files:
        """The places of both."""
        return [*self.fio.places(laid), *self.replay.places(laid)]

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
        """Run both; see `Load.run`. If one fails, the other is ended, and the error is raised."""
        own = directory / _REPLAY
        own.mkdir()
        begin(self.places(laid))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)

        # A program ends with the thread that has started it.
        with ThreadPoolExecutor(2) as pool:
            runs: list[Future[tuple[Result, float]]] = [
                pool.submit(load.run, program, place, laid, _nothing, warm=warm, cgroups=cgroups)
                for load, place in ((self.replay, own), (self.fio, directory))
            ]
            done, _ = wait(runs, return_when=FIRST_EXCEPTION)
            failed = [run.exception() for run in done if run.exception() is not None]
            if failed:
                program.end()
        for error in failed:
            if error is not None:
                raise error
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        (replayed, _), (ran, _) = (run.result() for run in runs)
        return _both(ran, replayed, _apart_ns(ran, self.replay.began_unix_ns(own))), cpu_s


def _nothing(_: Files) -> None:
    """Everything has begun."""


def _both(ran: Result, replayed: Result, apart_ns: float) -> Result:
    """The processes of the job file, and those of the recordings."""
    which = "after" if apart_ns >= 0 else "before"
    note = f"fio's processes began {duration_text(abs(apart_ns))} {which} the replay"
    return replace(
        ran,
        jobs=(*ran.jobs, *replayed.jobs),
        duration_ns=max(ran.duration_ns, replayed.duration_ns),
        notes=(*ran.notes, *replayed.notes, note),
    )


def _apart_ns(ran: Result, began_unix_ns: int) -> float:
    """How much later than the replay fio's first process began, by fio's own times: that of its
    report, before which its last process ended, in ms."""
    report: dict[str, Any] = json.loads(_document(ran.raw[OUTPUT]))
    began_ms: float = report["timestamp_ms"] - ran.duration_ns / 1e6
    return began_ms * 1e6 - began_unix_ns


def _document(output: bytes) -> bytes:
    """fio's report, before which it may have written lines."""
    return output[output.index(b"{") :]
