"""Recorded I/O as a workload: ``FILE``, or ``FILE:way=closed,fit=scale,...``.

An experiment holds a text with the replay's parameters and the hash of the file, so that it is
stored, shown, compared and resumed as a job file is. The file itself is read where the run happens;
one that has changed meanwhile is refused.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from blklab import _core
from blklab.base.catalogue import Entry
from blklab.base.files import why
from blklab.base.text import shown
from blklab.base.units import span_ns
from blklab.errors import InputError, nearest

Way = Literal["open", "closed", "inferred"]
Fit = Literal["refuse", "wrap", "scale"]
Cgroups = Literal["recorded", "none"]

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
"""What happens to I/O beyond the end of the disk."""
CGROUPS: Mapping[Cgroups, str] = {
    "recorded": "each I/O in its recorded cgroup",
    "none": "all I/O in the root",
}
"""Which cgroups I/O is in."""
PARAMETERS: Mapping[str, str] = {
    "way": "what an I/O waits for: open, closed or inferred (the default)",
    "fit": "I/O beyond the end of the disk: refuse (the default), wrap or scale",
    "from": "start of the replayed part, such as 4s or 250ms",
    "until": "its end",
    "speed": "divides arrival times, or think times if closed, such as 2 or 0.5; 1 by default",
    "loops": "how often it is replayed, one after the other; 1 by default",
    "cgroups": "the cgroups of I/O: recorded (the default) or none",
    "cgroup_weight/PATH": "weight of that recorded cgroup, 10 to 1000; 100 by default",
    "device": "the device, of a trace that has several",
    "format": "the trace's format; detected by default",
}
"""Behind the file's name, ``:name=value,...``."""

_RECORDED_SPEED = 1_000_000
_SPEED = re.compile(r"\d{1,4}(?:\.\d{1,6})?", re.ASCII)
_SPEED_MAX = 1000
_SPEED_MIN = 0.001
LOOPS_MAX = 1_000_000
_WEIGHT = "cgroup_weight/"
WEIGHT_MIN, WEIGHT_MAX = 10, 1000
"""The least of CFQ, and the most of BFQ and CFQ."""
_HEAD = "recording="
_HASHED_BYTES = 1 << 20


@dataclass(frozen=True)
class Replay:
    """How a recording is replayed."""

    file: Path
    sha256: str
    """The hash of the file, in hexadecimal."""
    way: Way = "inferred"
    fit: Fit = "refuse"
    from_ns: int = 0
    until_ns: int | None = None
    """The replayed part; None is the end."""
    speed_millionths: int = _RECORDED_SPEED
    """How fast; a million is as recorded."""
    loops: int = 1
    device: str | None = None
    trace_format: str | None = None
    cgroups: Cgroups = "recorded"
    weights: tuple[tuple[str, int], ...] = ()
    """Paths of recorded cgroups with their weights; all others have 100."""

    @property
    def length_ns(self) -> int | None:
        """The time of one loop, if the part has an end."""
        return None if self.until_ns is None else self.until_ns - self.from_ns

    @property
    def part(self) -> Replay:
        """What is read of the file, however it is replayed."""
        return Replay(
            self.file,
            self.sha256,
            from_ns=self.from_ns,
            until_ns=self.until_ns,
            device=self.device,
            trace_format=self.trace_format,
        )


def is_recording(workload: Entry) -> bool:
    """Whether it is recorded I/O, not a fio job file or a program."""
    return workload.kind == "recording"


def check_again(path: Path) -> None:
    """InputError if the file cannot be read more than once."""
    if str(path) == "-" or (path.exists() and not path.is_file()):
        raise InputError(
            f"{path}: a pipe cannot be read twice; make a recording of it first: "
            f"blklab trace import {path} --out RECORDING"
        )


def is_trace(path: Path) -> bool:
    """Whether the file is a trace of a known format, and no job file, which begins with a section.

    InputError if it cannot be read.
    """
    if path.suffix == ".fio":
        return False
    return _core.trace_format_of(path) is not None


def entry(path: Path, changes: Mapping[str, str], name: str) -> Entry:
    """The file at `path` as a workload called `name`. InputError if a parameter is wrong or the
    file cannot be read."""
    _parameters(name, changes)
    check_again(path)
    lines = ["# Recorded I/O", f"{_HEAD}{shown(path.name)}", f"sha256={_hash(path)}"]
    lines += [f"{key}={value}" for key, value in changes.items()]
    return Entry(name, path, "\n".join(lines) + "\n", kind="recording")


def in_way(workload: Entry, way: Way) -> Entry:
    """An `entry` of which the way is not chosen yet, replayed in that way."""
    return replace(workload, text=f"{workload.text}way={way}\n")


def chosen(workload: Entry) -> Replay:
    """The replay of an `entry`. InputError if a parameter no longer exists."""
    values = _values(workload)
    sha256 = values.pop("sha256", "")
    given = _parameters(workload.name, values)
    return replace(given, file=workload.path, sha256=sha256)


def every(workload: Entry) -> list[Replay]:
    """The replays of an `entry` and of those beside it. InputError as of `chosen`."""
    return [chosen(one) for one in (workload, *workload.beside) if is_recording(one)]


def labelled(workload: Entry) -> list[tuple[str, Replay]]:
    """The same, each with what stands before the names of its processes; nothing if it is the only
    one. InputError as of `chosen`."""
    found = every(workload)
    names = [shown(one.file.name) for one in found]
    labels = [
        f"{name}#{names[: number + 1].count(name)}" if names.count(name) > 1 else name
        for number, name in enumerate(names)
    ]
    alone = len(found) == 1 and is_recording(workload)
    return list(zip([""] if alone else labels, found, strict=True))


def document(workload: Entry) -> dict[str, object]:
    """What the replay depends on: its parameters and the file's hash, without its path."""
    return dict(_values(workload))


def load(replay: Replay) -> _core.Recording:
    """The replayed part, in memory. InputError if the file has changed since it was chosen, or has
    nothing to replay there."""
    if replay.sha256 and _hash(replay.file) != replay.sha256:
        raise InputError(f"{replay.file}: has changed since the comparison began")
    found = _core.Recording(
        replay.file,
        format=replay.trace_format,
        device=replay.device,
        from_ns=replay.from_ns,
        until_ns=replay.until_ns,
    )
    check(found, replay.file, replay.device)
    return found


def check(recording: _core.Recording, file: Path, device: str | None) -> None:
    """InputError if there is nothing to replay, or I/O of several devices."""
    if not recording.count:
        of_device = f" of device '{device}'" if device else ""
        raise InputError(f"{file}: no I/O{of_device} in that part")
    if len(recording.devices) > 1:
        names = ", ".join(recording.devices[:8])
        raise InputError(f"{file}: I/O of several devices; choose one ({names})")


def notes(told: _core.ReplayNotes, replays: Sequence[Replay]) -> tuple[str, ...]:
    """A line for each way in which the replay is not what was recorded."""
    fit = " or ".join(dict.fromkeys(one.fit for one in replays if one.fit != "refuse"))
    lines = []
    if told.left_out:
        lines.append(f"{told.left_out} I/Os are not replayed: no model has them")
    if told.moved:
        lines.append(f"{told.moved} I/Os have another address than recorded ({fit})")
    if told.joined:
        lines.append(f"{told.joined} I/Os are of processes that share one: there are too many")
    if told.enlarged:
        lines.append(f"{told.enlarged} I/Os are longer than recorded: the disk has larger blocks")
    return tuple(lines)


def cgroup_notes(told: _core.ReplayNotes, replays: Sequence[Replay]) -> tuple[str, ...]:
    """A line for each thing about its cgroups that was not recorded or is not replayed as it was,
    on a rig that has cgroups."""
    lines = []
    given = sum(len(one.weights) for one in replays)
    if told.cgroups > given:
        least = "each" if given == 0 else f"but for {given}"
        lines.append(
            f"recorded cgroups: {told.cgroups}, with weight 100 {least}, since recordings have no "
            "weights: cgroup_weight/PATH=WEIGHT gives one"
        )
    if told.unnamed:
        lines.append(
            f"{told.unnamed} cgroups have a number and no path: they are side by side below the "
            "root"
        )
    if told.movers:
        lines.append(
            f"{told.movers} processes were in several cgroups: they move, as in Linux; for cfq "
            "each is another process in each of them"
        )
    return tuple(lines)


def beyond(told: _core.BeyondProcess, no_discards: str = "") -> tuple[str, ...]:
    """A line for each way in which real processes replay something else than was recorded;
    `no_discards` says why discards take no time, if so."""
    lines = []
    if told.asynchronous:
        lines.append(
            f"{told.asynchronous} asynchronous writes are replayed as synchronous ones, as direct "
            "writes of a process are"
        )
    if told.cut:
        lines.append(
            f"{told.cut} I/Os of more than 1 MiB come as bios of 1 MiB, as a process's direct I/O"
        )
    if told.discards and no_discards:
        lines.append(f"{told.discards} discards take no time: {no_discards}")
    elif told.discards:
        lines.append(
            f"{told.discards} discards come one at a time, and their processes wait for them"
        )
    if told.marked:
        lines.append(
            f"{told.marked} I/Os have lost a flag that only the kernel sets: metadata, urgent or "
            "read-ahead"
        )
    return tuple(lines)


def _values(workload: Entry) -> dict[str, str]:
    lines = [line for line in workload.text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines if not line.startswith(_HEAD))


def _parameters(name: str, given: Mapping[str, str]) -> Replay:
    """The parameters of a recording without a path. InputError."""
    for key in given:
        if key not in PARAMETERS and not key.startswith(_WEIGHT):
            expected = ", ".join(PARAMETERS)
            raise InputError(
                f"{name}: a recording has no parameter '{shown(key)}'{nearest(key, PARAMETERS)}",
                option=key,
                expected=expected,
            )
    way = _one_of(name, "way", given.get("way", "inferred"), list(WAYS))
    fit = _one_of(name, "fit", given.get("fit", "refuse"), list(FITS))
    from_ns = _time(name, "from", given.get("from")) or 0
    until_ns = _time(name, "until", given.get("until"))
    if until_ns is not None and until_ns <= from_ns:
        raise InputError(f"{name}: until={given['until']} is not after from", option="until")
    return Replay(
        Path(),
        "",
        cast(Way, way),
        cast(Fit, fit),
        from_ns,
        until_ns,
        _speed(name, given.get("speed", "1")),
        _loops(name, given.get("loops", "1")),
        given.get("device"),
        given.get("format"),
        *_cgroups(name, given),
    )


def weights_as_parameters(weights: Mapping[str, int]) -> dict[str, str]:
    """Weights by path, as parameters of an `entry`."""
    return {f"{_WEIGHT}{path.strip('/')}": str(weight) for path, weight in weights.items()}


def _cgroups(name: str, given: Mapping[str, str]) -> tuple[Cgroups, tuple[tuple[str, int], ...]]:
    cgroups = cast(Cgroups, _one_of(name, "cgroups", given.get("cgroups", "recorded"), [*CGROUPS]))
    weights = {
        key.removeprefix(_WEIGHT): _weight(name, key, value)
        for key, value in given.items()
        if key.startswith(_WEIGHT)
    }
    if weights and cgroups == "none":
        raise InputError(
            f"{name}: cgroups=none and cgroup_weight: give one of them", option="cgroups"
        )
    return cgroups, tuple(weights.items())


def _weight(name: str, key: str, value: str) -> int:
    if not key.isprintable():
        raise InputError(f"{name}: {shown(key)}: expected a path of letters that can be printed")
    is_number = value.isascii() and value.isdigit() and len(value) <= len(str(WEIGHT_MAX))
    if not is_number or not WEIGHT_MIN <= int(value) <= WEIGHT_MAX:
        expected = f"a whole number, {WEIGHT_MIN} to {WEIGHT_MAX}"
        raise InputError(
            f"{name}: {shown(key)}: expected {expected}, found '{shown(value)}'",
            option=key,
            found=value,
            expected=expected,
        )
    return int(value)


def _speed(name: str, value: str) -> int:
    """In millionths."""
    whole, _, part = value.partition(".")
    millionths = 0
    if _SPEED.fullmatch(value):
        millionths = int(whole) * _RECORDED_SPEED + int(part.ljust(6, "0"))
    if not _SPEED_MIN * _RECORDED_SPEED <= millionths <= _SPEED_MAX * _RECORDED_SPEED:
        expected = f"a number from {_SPEED_MIN} to {_SPEED_MAX}, such as 2 or 0.5"
        raise InputError(
            f"{name}: speed: expected {expected}, found '{shown(value)}'",
            option="speed",
            found=value,
            expected=expected,
        )
    return millionths


def _loops(name: str, value: str) -> int:
    digits = value if value.isascii() and value.isdigit() and len(value) < len("10000000") else "0"
    if not 1 <= int(digits) <= LOOPS_MAX:
        expected = f"a number from 1 to {LOOPS_MAX}"
        raise InputError(
            f"{name}: loops: expected {expected}, found '{shown(value)}'",
            option="loops",
            found=value,
            expected=expected,
        )
    return int(digits)


def _one_of(name: str, key: str, value: str, known: list[str]) -> str:
    if value not in known:
        expected = ", ".join(known)
        raise InputError(
            f"{name}: {key}: expected {expected}, found '{shown(value)}'",
            option=key,
            found=value,
            expected=expected,
        )
    return value


def _time(name: str, key: str, value: str | None) -> int | None:
    if value is None:
        return None
    found = span_ns(value)
    if found is None:
        raise InputError(
            f"{name}: {key}: expected a time such as 4s or 250ms, found '{shown(value)}'",
            option=key,
            found=value,
        )
    return found


def _hash(path: Path) -> str:
    """The hash of all its files: blktrace has one for each CPU."""
    found = hashlib.sha256()
    for one in _core.trace_files(path):
        try:
            with one.open("rb") as file:
                while piece := file.read(_HASHED_BYTES):
                    found.update(piece)
        except (OSError, ValueError) as error:
            raise InputError(f"{one}: cannot be read: {why(error)}") from error
    return found.hexdigest()
