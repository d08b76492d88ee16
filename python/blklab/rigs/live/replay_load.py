"""Recorded I/O on a target: the counterpart of `blklab.rigs.live.load`.

The program ``blklab-replay`` performs it: it submits to the target past the page cache, from a
thread for each recorded process. It writes random data, only where the recording writes, and is
confined to the run's files as fio is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, TypedDict

import msgspec

from blklab import _core
from blklab.base import binaries
from blklab.base.text import shown
from blklab.base.units import duration_text, size_text
from blklab.domain import core, recordings
from blklab.domain.experiment import Experiment
from blklab.domain.result import Result
from blklab.errors import InputError, RunError
from blklab.host import reading
from blklab.host.roots import HERE
from blklab.rigs.live import wall
from blklab.rigs.live.cgroups import Group, Made
from blklab.rigs.live.files import LaidFiles
from blklab.rigs.live.load import DEVICE_FILE_BYTES, Files
from blklab.rigs.live.program import Program
from blklab.rigs.live.target import Target
from blklab.rigs.loaded import LoadedRecordings
from blklab.rigs.written_run import COLUMNS, SCALARS, WrittenRun

_LOAD, _TOLD = "replay.bin", "replay.json"
_SECTOR_BYTES = 512
_NEAR_BYTES = 1 << 20
# Schedulers let no process have more than a part of the queue's requests.
_SHARE_OF_REQUESTS = 4


class _Lateness(TypedDict):
    ios: int
    median_ns: int
    p99_ns: int
    max_ns: int
    held: int


class _Told(TypedDict):
    lateness: _Lateness
    without_priority: int
    began_unix_ns: int


_DECODER = msgspec.json.Decoder(_Told)


@dataclass(frozen=True)
class ReplayLoad:
    """One experiment's recordings on one target."""

    name: str
    target: Target
    size_bytes: int
    """The size of the test file, or of the device."""
    load: bytes
    """For ``blklab-replay``."""
    used: Files
    """The places of the target that the I/Os use."""
    writes: bool
    """Or discards."""
    ends_s: float | None
    """Its duration as recorded, at the chosen speed."""
    notes: tuple[str, ...]
    """What is not as it was recorded."""
    number: int = 0
    """That of its file."""

    is_direct: ClassVar[bool] = True
    cgroups: ClassVar[list[Group]] = []

    @classmethod
    def of(
        cls, experiment: Experiment, target: Target, room: int, loaded: LoadedRecordings
    ) -> ReplayLoad:
        """With `room` bytes for its file, or on a device of that size. InputError if it cannot be
        read, or does not fit."""
        entry = experiment.job
        replays = recordings.every(entry)
        block = _block_bytes(target)
        with core.core_types():
            found = loaded.replays(entry)
            ends = [loaded.of(one).end_sector * _SECTOR_BYTES for one in replays]
            size = room
            if target.device is None:
                size = _file_bytes(entry.name, replays, ends, room, target)
                size = -(-size // block) * block
            load, told, beyond, places = _core.replay_load_on(found, size, block, _NEAR_BYTES)
        return cls(
            entry.name,
            target,
            size,
            load,
            [(target.path, start, length) for start, length in places],
            told.writes,
            max(_lasts_ns(one, loaded.of(one)) for one in replays) / 1e9,
            (
                "blklab-replay replays it past the page cache, without CPU work: the recorded "
                "times contain it",
                *recordings.notes(told, replays),
                *_no_cgroups(told),
                *recordings.beyond(beyond, _no_discards(target)),
            ),
        )

    @property
    def sizes(self) -> list[int]:
        """The size of its test file in bytes."""
        return [self.size_bytes]

    def places(self, laid: LaidFiles | None) -> Files:
        """The file, or the used places of a device."""
        return self.used if laid is None else [(laid.path(self.number), 0, self.size_bytes)]

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
        """Replay; returns the result, and the program's CPU time in s. Its files are in
        `directory`; `begin` receives the used places right before. RunError with its own message
        if it fails."""
        (directory / _LOAD).write_bytes(self.load)
        binary = binaries.find("blklab-replay")
        where = self.target.path if laid is None else laid.directory
        # Relative to this directory, the name of the file is a number.
        on = str(self.target.path if laid is None else self.number)
        command = [
            str(binary),
            f"--requests={_requests(self.target) // _SHARE_OF_REQUESTS}",
            "--",
            str(directory / _LOAD),
            on,
            str(directory),
        ]
        begin(self.places(laid))
        around = wall.around(binary, where, [directory])
        ended = program.run(command, directory if laid is None else where, wall=around)
        if ended.code != 0:
            raise RunError(f"{self.name}: {_reason(ended.code, ended.stderr)}")
        try:
            scalars, columns = ((directory / name).read_bytes() for name in (SCALARS, COLUMNS))
            told = _DECODER.decode((directory / _TOLD).read_bytes())
        except (OSError, ValueError) as error:
            raise RunError(f"{self.name}: blklab-replay left no result: {error}") from error
        result = Result.from_run(WrittenRun(scalars, columns, "blklab-replay"))
        return replace(result, notes=(*self.notes, *_told(told))), ended.cpu_s

    def began_unix_ns(self, directory: Path) -> int:
        """When the replay of a `run` in that directory began: its time zero."""
        return _DECODER.decode((directory / _TOLD).read_bytes())["began_unix_ns"]


def _told(told: _Told) -> list[str]:
    """How late the replay was, and what this user may not do."""
    late = told["lateness"]
    times = [duration_text(late[key]) for key in ("median_ns", "p99_ns", "max_ns")]
    line = (
        f"I/Os were issued later than planned by {times[0]} (median), {times[1]} (99th "
        f"percentile), {times[2]} (maximum)"
    )
    if late["held"]:
        line = (
            f"{line}; {late['held']} of {late['ios']} because their process was still submitting "
            "the one before, as in a full queue"
        )
    lines = [line]
    if missing := told["without_priority"]:
        lines.append(
            f"{missing} process{'es have' if missing > 1 else ' has'} no priority: this user may "
            "not set the recorded one"
        )
    return lines


def _reason(code: int, stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return shown(lines[-1]) if lines else f"blklab-replay ended with exit code {code}"


def _file_bytes(
    name: str, replays: Sequence[recordings.Replay], ends: Sequence[int], room: int, target: Target
) -> int:
    """The size of a test file: as large as the recorded places reach, or less where they are fitted
    to it. InputError if there is no room."""
    reaches = max(ends)
    fixed = max(
        (end for one, end in zip(replays, ends, strict=True) if one.fit == "refuse"), default=0
    )
    if fixed > room:
        raise InputError(
            f"{shown(str(target.path))}: {name} reaches {size_text(fixed)} into its disk; there is "
            f"room for a file of {size_text(room)}, a tenth of the file system stays free. With "
            "fit=scale or fit=wrap the file is as large as there is room for"
        )
    return max(fixed, min(reaches, DEVICE_FILE_BYTES, room), _NEAR_BYTES)


def _lasts_ns(replay: recordings.Replay, recording: _core.Recording) -> float:
    length_ns = replay.length_ns or recording.last_ns
    return length_ns * replay.loops / (replay.speed_millionths / 1e6)


def _queue(target: Target, name: str, otherwise: int) -> list[int]:
    """A setting of the queues of the disks below."""
    texts = [reading.value(HERE.sys / "block" / disk / "queue" / name) for disk in target.disks]
    return [int(text) if text.isdigit() else otherwise for text in texts] or [otherwise]


def _block_bytes(target: Target) -> int:
    """The smallest I/O of the disks below, which direct I/O needs."""
    return max(_queue(target, "logical_block_size", _SECTOR_BYTES))


def _requests(target: Target) -> int:
    return min(_queue(target, "nr_requests", 0))


def _no_cgroups(told: _core.ReplayNotes) -> list[str]:
    """Why recorded cgroups are not replayed, if there are any."""
    if not told.cgroups:
        return []
    return [
        f"recorded cgroups are not replayed ({told.cgroups}): all processes are threads of "
        "blklab-replay, and Linux has no cgroup of I/O for single threads"
    ]


def _no_discards(target: Target) -> str:
    """Why a discard takes no time, if so."""
    if target.device is None:
        return "a file has none"
    return "" if max(_queue(target, "discard_max_bytes", 0)) else "the disk has none"


class Planned:
    """The loads of a rig, each planned once for all of its runs."""

    def __init__(self) -> None:
        self._recordings = LoadedRecordings()
        self._loads: dict[tuple[object, ...], ReplayLoad] = {}

    def of(self, experiment: Experiment, target: Target, room: int) -> ReplayLoad:
        """See `ReplayLoad.of`. Only one thread may plan at a time."""
        key = (experiment.job, target, room)
        if key not in self._loads:
            self._loads[key] = ReplayLoad.of(experiment, target, room, self._recordings)
        return self._loads[key]
