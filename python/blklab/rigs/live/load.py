"""A job file for real fio on a target, and fio's output as a result."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from blklab import _core
from blklab.base.as_root import or_as_root
from blklab.base.text import shown
from blklab.base.units import size_text
from blklab.domain import core
from blklab.domain.experiment import Experiment, environment_variables
from blklab.domain.result import Result
from blklab.errors import InputError, NoRoomError, RunError
from blklab.rigs.live import wall
from blklab.rigs.live.cgroups import Group, Made
from blklab.rigs.live.files import LaidFiles, room_bytes
from blklab.rigs.live.program import Program, confined
from blklab.rigs.live.target import Target

DEVICE_FILE_BYTES = 4 << 30
"""In a directory, a job that names a device gets a file of this size instead, or a smaller one if
there is no room."""
_JOB = "job.fio"
OUTPUT = "fio.json"
"""fio's report, in its directory and among a result's raw files."""
# fio's own error message follows these.
_FIO = "fio: "

Files: TypeAlias = list[tuple[Path, int, int]]
"""Path, first byte, length."""


@dataclass(frozen=True)
class Load:
    """One experiment's job file on one target."""

    job: _core.FioJob
    target: Target

    @classmethod
    def of(cls, experiment: Experiment, target: Target, room: int) -> Load:
        """With `room` bytes for its files, see `room_of`. InputError if the job file is wrong, or
        if there is no room for them."""
        if target.device is None:
            load = cls._on(experiment, target, room)
            if any(file.is_device for file in load.job.files):
                load = cls._on(experiment, target, min(room, DEVICE_FILE_BYTES))
            if sum(load.sizes) > room:
                raise InputError(
                    f"{shown(str(target.path))}: {experiment.job.name} needs "
                    f"{size_text(sum(load.sizes))} of test files; there is room for "
                    f"{size_text(room)}, a tenth of the file system stays free"
                )
            return load
        return cls._on(experiment, target, room)

    @classmethod
    def _on(cls, experiment: Experiment, target: Target, room: int) -> Load:
        entry = experiment.job
        try:
            with core.core_types():
                job = _core.FioJob(
                    entry.text,
                    entry.place,
                    environment_variables(),
                    experiment.ignore_unsupported,
                    room,
                    experiment.seed,
                )
        except NoRoomError as error:
            raise _no_room(error, entry.name, target) from error
        return cls(job, target)

    @property
    def sizes(self) -> list[int]:
        """The size of each file in bytes."""
        return [file.size_bytes for file in self.job.files]

    @property
    def writes(self) -> bool:
        """Or discards."""
        return self.job.writes

    @property
    def is_direct(self) -> bool:
        """All of its I/O goes past the page cache."""
        return self.job.direct

    @property
    def cgroups(self) -> list[Group]:
        """The cgroups that its jobs name, each after its parent."""
        return [Group(one.path, one.weight) for one in self.job.cgroups]

    @property
    def ends_s(self) -> float | None:
        """Its duration, if it has a runtime."""
        ends_ns = self.job.ends_by_ns
        return None if ends_ns is None else ends_ns / 1e9

    def places(self, laid: LaidFiles | None) -> Files:
        """The place of each file."""
        if laid is not None:
            return [(laid.path(number), 0, size) for number, size in enumerate(self.sizes)]
        return [(self.target.path, file.start_bytes, file.size_bytes) for file in self.job.files]

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
        """Run fio; returns its result, and its CPU time in s. fio's input and output files are in
        `directory`; `begin` receives the test files right before the run. RunError with fio's own
        message if it fails."""
        (directory / _JOB).write_text(self._text(laid, cgroups, warm=warm), encoding="utf-8")
        command = [
            "fio",
            "--eta=never",
            "--output-format=json+",
            f"--output={directory / OUTPUT}",
            str(directory / _JOB),
        ]
        begin(self.places(laid))
        # Relative to this directory, the names of files are numbers.
        where = self.target.path if laid is None else laid.directory
        around = wall.around_fio(where, [directory, *(cgroups.writable() if cgroups else ())])
        ended = program.run(command, directory if laid is None else where, wall=around)
        text = _read(directory / OUTPUT)
        if ended.code != 0:
            raise RunError(f"{_FIO}{_reason(ended.stderr + text)}")
        try:
            run = self.job.read(text, 0)
        except InputError as error:
            raise RunError(str(error)) from error
        result = replace(Result.from_run(run), raw={OUTPUT: text.encode()})
        return _with_duration(result), ended.cpu_s

    def _text(self, laid: LaidFiles | None, cgroups: Made | None, *, warm: bool) -> str:
        places: Sequence[tuple[str, int | None]]
        if laid is not None:
            places = [(str(number), None) for number in range(len(self.sizes))]
        else:
            places = [(str(path), start) for path, start, _ in self.places(None)]
        text = self.job.write(places, None if cgroups is None else cgroups.name)
        # The job's own options come later and override these.
        more = (["invalidate=0"] if warm else []) + ([] if confined() else ["thread"])
        lines = []
        for line in text.splitlines():
            lines += [line, *more] if line.startswith("[") else [line]
        return "\n".join(lines) + "\n"


def room_of(target: Target) -> int:
    """The space for test files in a directory; the size of a device. InputError if it cannot be
    used."""
    return room_bytes(target.path) if target.device is None else _device_bytes(target.path)


def _with_duration(result: Result) -> Result:
    """The time until the last process ended, by fio's count, which excludes fio's own start."""
    return replace(result, duration_ns=max(job.end_ns for job in result.jobs))


def _reason(text: str) -> str:
    """fio's line with the error, else the first line."""
    # Its report follows, in JSON.
    stripped = (line.strip() for line in text.splitlines())
    lines = [line for line in stripped if line and line[0] not in '{}[]"']
    said = [line.removeprefix(_FIO) for line in lines if line.startswith(_FIO)]
    return shown((said or lines or ["failed without a message"])[0])


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _device_bytes(path: Path) -> int:
    """The size of a device. InputError if it cannot be opened."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        sudo = or_as_root() if isinstance(error, PermissionError) else ""
        raise InputError(f"{shown(str(path))}: {error.strerror}{sudo}") from error
    try:
        return os.lseek(handle, 0, os.SEEK_END)
    finally:
        os.close(handle)


def _no_room(error: NoRoomError, name: str, target: Target) -> InputError:
    """The core's error about a job that is too large for the disk, reworded for a real target."""
    need, room = size_text(error.need_bytes), size_text(error.room_bytes)
    smaller = f"smaller ones: {name.partition(':')[0]}:size=..."
    told = copy.copy(error)
    told.reason = (
        f"job '{error.job}': the files need {need}, {shown(str(target.path))} has room for {room}; "
        f"{smaller}"
    )
    return told
