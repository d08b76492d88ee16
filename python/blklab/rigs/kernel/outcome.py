"""A guest's result: ``result.json``, and whether its disk was on time.

The guest is hostile, so its result is checked by types: data that the guest's own program would not
write are refused, in one line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict, TypeVar

import msgspec
from msgspec import Meta

from blklab.base.text import shown
from blklab.domain import core, scheduler
from blklab.domain.costs import Costs, CpuTime
from blklab.domain.experiment import Disk
from blklab.errors import RunError
from blklab.rigs.kernel.rundir import RunDirectory

LATENESS_PART = 0.02
"""A run is invalid if half of its completions were late by more than this part of the mean
latency that the processes saw."""

_BYTES_MAX = 16 << 20
_ERROR_LETTERS_MAX = 2000

Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""The range of a column."""
Whole: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""The same, signed."""
_FILES = Meta(max_length=1 << 17)
_EXTENTS = Meta(max_length=1 << 20)
_Word: TypeAlias = Annotated[str, Meta(pattern=r"\A[\x21-\x7e]{1,200}\Z")]

_Found = TypeVar("_Found")


class _Served(TypedDict):
    errors: int


class _Failed(TypedDict):
    error: str | None
    disk: NotRequired[_Served | None]


class Lateness(TypedDict):
    """By how much the disk's completions came late."""

    p50_ns: Count
    p99_ns: Count
    max_ns: Count


class _Disk(TypedDict):
    reads: Count
    read_sectors: Count
    writes: Count
    write_sectors: Count
    flushes: Count
    errors: Count
    """Requests for which there was no memory."""
    lateness: Lateness


class Ended(TypedDict):
    """The end of the program."""

    exit_code: Annotated[int, Meta(ge=0, le=255)] | None
    signal: Annotated[int, Meta(ge=1, le=127)] | None
    duration_ns: Count


class _Traced(TypedDict):
    file: Annotated[str, Meta(pattern=r"\A(trace\.txt|(sd[a-z]|nvme0n1|ublkb0)\.blktrace\.0)\Z")]
    events: Count
    lost: Count


class _Rounded(TypedDict):
    tunable: _Word
    asked: _Word
    set: _Word


class _Device(TypedDict):
    transport: Literal["sata", "sas", "nvme", "ublk"]
    hw_queues: Count
    queue_depth: Count


class Outcome(TypedDict):
    """The used parts of ``result.json``. A job has no ``program``."""

    device: NotRequired[_Device]
    scheduler: _Word
    rounded: list[_Rounded]
    program: Ended | None
    costs: NotRequired[Costs | None]
    charged: NotRequired[CpuTime | None]
    counters: dict[_Word, Count]
    disk: _Disk
    trace: _Traced | None
    file_system: NotRequired[_Mounted | None]
    moved_sectors: NotRequired[Count | None]
    memory_short_kib: NotRequired[Count]
    memory_cached_kib: NotRequired[Count]


class _Mounted(TypedDict):
    kind: _Word
    options: Annotated[str, Meta(pattern=r"\A[\x21-\x7e]{0,500}\Z")]


class LaidOutFiles(TypedDict):
    """The used parts of ``result.json`` of a guest that has laid files out."""

    file_system: _Mounted
    laid_out: Annotated[list[Annotated[list[tuple[Count, Count]], _EXTENTS]], _FILES]
    journal: _Journal | None


class _Journal(TypedDict):
    extents: Annotated[list[tuple[Count, Count]], _EXTENTS]
    head: Count
    unit: Count


_FAILED = msgspec.json.Decoder(_Failed)
OUTCOME = msgspec.json.Decoder(Outcome)
"""The result of a guest that has run something."""
LAID_OUT = msgspec.json.Decoder(LaidOutFiles)
"""The result of a guest that has laid files out."""


def read(run: RunDirectory, decoder: msgspec.json.Decoder[_Found]) -> _Found:
    """A guest's result. RunError if there is none, or if it contains an error."""
    try:
        text = run.read("result.json", _BYTES_MAX)
    except FileNotFoundError:
        if run.is_full:
            raise ScratchError(
                f"the guest has filled its run directory, which has room for {run.size_mib} MiB"
            ) from None
        raise RunError("the guest left no result") from None
    failed = decoded(text, _FAILED, "result.json")
    if error := failed["error"]:
        message = f"in the guest: {shown(error[:_ERROR_LETTERS_MAX])}"
        if (served := failed.get("disk")) and served["errors"]:
            message = f"the disk's data did not fit into the guest's memory; {message}"
        raise RunError(message)
    return decoded(text, decoder, "result.json")


class ScratchError(RunError):
    """The guest's run directory was too small for it."""


def decoded(text: bytes, decoder: msgspec.json.Decoder[_Found], name: str) -> _Found:
    """`text` of the file `name`, by a decoder that was made on import: see
    `blklab.domain.summaries`. RunError if it is not valid."""
    try:
        return decoder.decode(text)
    except (ValueError, RecursionError) as error:
        raise RunError(
            f"the guest's {name} does not have the expected format: {shown(str(error))}"
        ) from error


def notes(outcome: Outcome, disk: Disk, cpus: int) -> tuple[str, ...]:
    """Differences from the requested settings, a line each: queues of the disk, of which a host
    with `cpus` CPUs uses one for each, and tunables that the kernel has changed."""
    limits = core.disk_model(disk).limits
    queues, depth = min(limits.hw_queues, cpus), limits.queue_depth
    device = outcome.get("device")
    is_ublk = device is None or device["transport"] == "ublk"
    many = 1 if device is None or is_ublk else device["hw_queues"]
    tags = min(depth, scheduler.GUEST_TAGS) if is_ublk else depth
    # Of a program it is the command that says where the file system is.
    moved = outcome.get("moved_sectors")
    mounted = None if moved is None else outcome.get("file_system")
    short_kib = outcome.get("memory_short_kib", 0)
    fewer = (
        f"{disk.label}: a guest has {many} hardware queue{'s' if many > 1 else ''} of {tags} "
        f"commands, not {queues} of {depth}"
    )
    return (
        *([fewer] if (queues, depth) != (many, tags) else []),
        *([f"files in {mounted['kind']} ({mounted['options']})"] if mounted else []),
        *([f"the file system has moved {moved * 512 // 1024} KiB of the files"] if moved else []),
        *([f"the page cache has {short_kib} KiB less than memory_kb"] if short_kib else []),
        *(
            f"{Path(row['tunable']).name}={row['asked']} is {row['set']}: "
            "the kernel counts in ticks"
            for row in outcome["rounded"]
        ),
    )


def too_late(lateness: Lateness, latency_ns: float) -> str | None:
    """The reason if a run with the mean latency `latency_ns` is invalid, else None."""
    late_ns = lateness["p50_ns"]
    if latency_ns == 0 or late_ns <= LATENESS_PART * latency_ns:
        return None
    return (
        f"invalid: half of the disk's completions came {late_ns} ns late or later "
        f"(the latency seen is {latency_ns:.0f} ns)"
    )
