"""The compiled core's tables and parsers: its schedulers, tunables and options, and whether the
text of a job, a disk, a scheduler or a host is valid.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypedDict, cast

from blklab import _core
from blklab.base.catalogue import Entry
from blklab.domain.experiment import Disk, environment_variables
from blklab.errors import InputError

TOO_LARGE = "seed or host value: out of range for 64 bits"


def version() -> str:
    """The core's version."""
    return _core.version()


def schedulers() -> list[_core.SchedulerInfo]:
    """Name, summary, source and tunables of every scheduler."""
    return _core.schedulers()


def decision_kinds() -> list[str]:
    """Every kind of decision that a scheduler records, in the order of their numbers."""
    return _core.decision_kinds()


def trace_formats() -> list[_core.TraceFormat]:
    """Every format of traces that is read."""
    return _core.trace_formats()


def drawn_disk(disk: Disk, seed: int) -> Disk:
    """A disk drawn from the ranges of its file's estimates, which meets the calibrated figures that
    the file's own values meet. InputError if its file is wrong."""
    return _draw(disk, seed)[0]


def missed_by_all(disk: Disk, seed: int) -> str | None:
    """The calibrated figure because of which `drawn_disk` has the file's own values; None if it has
    drawn ones."""
    return _draw(disk, seed)[1]


@functools.lru_cache(maxsize=1024)
def _draw(disk: Disk, seed: int) -> tuple[Disk, str | None]:
    """Kept, since measuring the figures of a flash disk takes some 60 ms of CPU time."""
    with core_types():
        text, values, missed = _drawn_from(disk).draw(seed)
    return replace(disk, file=replace(disk.file, text=text), drawn=tuple(values)), missed


@functools.lru_cache(maxsize=64)
def _drawn_from(disk: Disk) -> _core.Disk:
    """It measures once which figures its disks have to meet."""
    return disk_model(disk)


def disk_model(disk: Disk) -> _core.Disk:
    """The model of a disk, from its file and changes. InputError if they are wrong."""
    with core_types():
        return _core.Disk(disk.file.text, disk.file.place, list(disk.overrides))


def environment() -> dict[str, list[_core.Tunable]]:
    """The tunables of queue, page cache and host, by these names."""
    return _core.environment()


def host_text(name: str, value: int) -> str:
    """A value of the host as users write it: ``7.3`` for the number of a version."""
    rows = (row for table in environment().values() for row in table if row.name == name)
    words = {number: word for row in rows for word, number in row.words}
    return words.get(value, str(value))


def kernel_number(version: str) -> int | None:
    """The host's value `kernel` for Linux `version` (``6.12.107``); None if it is not simulated."""
    return _kernels().get(".".join(version.split(".")[:2]))


def newest_kernel_before(version: str) -> int:
    """The number of the newest simulated version that is no newer than Linux `version`; the oldest
    if there is none, the newest if that is no version."""
    numbers = sorted(_kernels().values())
    parts = re.match(r"(\d+)\.(\d+)", version)
    its = 1000 * int(parts[1]) + int(parts[2]) if parts else numbers[-1]
    return max((number for number in numbers if number <= its), default=numbers[0])


def _kernels() -> dict[str, int]:
    """The numbers of the simulated versions of Linux, by name."""
    [row] = (row for row in environment()["host"] if row.name == "kernel")
    return dict(row.words)


def check_host(changed: Mapping[str, int]) -> dict[str, int]:
    """Every tunable of host and page cache, with these changed. InputError if wrong."""
    values = host(changed).values
    if values["journal"] and (name := host_text("file_system", values["file_system"])) not in (
        JOURNALED
    ):
        raise InputError(
            f"--host: journal=1: the journal of {name} is not modelled; expected file_system="
            f"{' or '.join(JOURNALED)}"
        )
    return values


def host(changed: Mapping[str, int]) -> _core.Host:
    """The modelled host. InputError if a name or value is wrong."""
    with core_types():
        return _core.Host(dict(changed))


def host_file(text: str, path: str) -> dict[str, int]:
    """The values of a host file; `path` is for messages. InputError if it is wrong."""
    with core_types():
        return dict(_core.host_file(text, path))


def describe_job(entry: Entry, ignore_unsupported: bool, *, real: bool = False) -> _core.Job:
    """A job file on the default host; if `real`, for real fio on a real disk. InputError if it is
    wrong."""
    return job(entry, host({}), ignore_unsupported, real=real)


class IdleOptionDocument(TypedDict):
    """See `_core.IdleOption`."""

    path: str
    line: int
    name: str
    value: str | None
    why: str


class JobSectionDocument(TypedDict):
    """See `_core.JobSection`."""

    name: str
    description: str | None
    line: int
    clones: int
    options: list[tuple[str, str]]


JobDocument = TypedDict(
    "JobDocument",
    {
        "global": list[tuple[str, str]],
        "ignored": list[IdleOptionDocument],
        "jobs": list[JobSectionDocument],
        "path": str,
        "without_effect": list[IdleOptionDocument],
    },
)
"""A job file of ``blklab workloads NAME --json``."""


def job_document(job: _core.Job) -> JobDocument:
    """As JSON, with sorted keys: its hash identifies an unfinished run."""
    return {
        "global": job.defaults,
        "ignored": cast(list[IdleOptionDocument], _sorted(job.ignored)),
        "jobs": cast(list[JobSectionDocument], _sorted(job.jobs)),
        "path": job.path,
        "without_effect": cast(list[IdleOptionDocument], _sorted(job.without_effect)),
    }


def _sorted(rows: Sequence[_core.IdleOption | _core.JobSection]) -> list[dict[str, object]]:
    return [{name: getattr(row, name) for name in sorted(row.FIELDS)} for row in rows]


def is_direct(job: _core.Job) -> bool:
    """All I/O of the job bypasses the page cache."""
    return all(
        dict(section.options).get("direct", "0") not in ("0", "false") for section in job.jobs
    )


def commits(job: _core.Job) -> bool:
    """The job syncs files, and not only their data: in a file system it commits its journal."""
    return any(_commits(dict(section.options)) for section in job.jobs)


def _commits(options: Mapping[str, str]) -> bool:
    if options.get("filename", "").startswith("/dev/"):
        return False
    after = (options.get(name, "0") for name in ("fsync", "end_fsync", "fsync_on_close"))
    return options.get("sync") in ("sync", "1") or any(
        value not in ("0", "false") for value in after
    )


UNCOMMITTED = (
    "fsync only flushes the disk's cache; in a file system it also commits: "
    "--host journal=1,file_system=ext4 (or xfs)"
)
"""A note of a run whose job :func:`commits` and whose host has no journal."""
JOURNALED = ("xfs", "ext4")
"""File systems whose journals are modelled."""


def on_partitions(job: _core.Job) -> tuple[str, ...]:
    """What of a job's I/O a guest has on partitions, where the simulator has files in a file
    system; see `crates/blklab-guest/src/job/native/as_files.rs`."""
    rings = any(dict(section.options).get("ioengine") == "io_uring" for section in job.jobs)
    found = {"buffered I/O": not is_direct(job), "I/O of io_uring": rings}
    return tuple(what for what, is_there in found.items() if is_there)


def job(
    entry: Entry, there: _core.Host, ignore_unsupported: bool, *, real: bool = False
) -> _core.Job:
    """A job file on this host; if `real`, for real fio on a real disk. InputError if it is
    wrong."""
    with core_types():
        return _core.Job(
            entry.text, entry.place, environment_variables(), there, ignore_unsupported, real
        )


def ignored_options(entry: Entry, ignore_unsupported: bool, *, real: bool = False) -> list[str]:
    """A line for each option of a job file that is left out; see `describe_job`. Other workloads
    have none. InputError if the file is wrong."""
    if entry.kind != "file":
        return []
    return [
        f"{option.path}:{option.line}: {option.name}={option.value}: {option.why}"
        for option in describe_job(entry, ignore_unsupported, real=real).ignored
    ]


@contextlib.contextmanager
def core_types() -> Iterator[None]:
    """InputError for numbers and texts that the core's types cannot hold. The core reports other
    errors itself."""
    try:
        yield
    except OverflowError as error:
        raise InputError(TOO_LARGE) from error
    except UnicodeEncodeError as error:
        raise InputError(str(error)) from error


@functools.cache
def option_names() -> dict[str, frozenset[str]]:
    """All names of each option of a job file, by any of them."""
    known = {}
    for row in _core.workload_options():
        names = frozenset({row.name, *row.aliases})
        known.update(dict.fromkeys(names, names))
    return known
