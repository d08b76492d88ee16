"""A fake of the compiled core, for tests of Python's handling of its answers."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from blklab.errors import InputError
from tests import plausible

_SCHEDULERS = {"none": 1.0, "mq-deadline": 1.3, "kyber": 0.98, "bfq": 0.96, "cfq": 0.94}


class CancelToken:
    def __init__(self) -> None:
        self.cancelled = False
        self.now_ns, self.end_ns = 0, 0

    def cancel(self) -> None:
        self.cancelled = True


class TraceReading:
    """The fake reads no traces."""


class PanicException(BaseException):
    """The fake never panics."""


def version() -> str:
    return "0.0-fake"


@dataclass(frozen=True)
class Tunable:
    name: str = "fifo_batch"
    unit: str = ""
    default: int = 16
    min: int = 0
    max: int = 2**31 - 1
    words: tuple[tuple[str, int], ...] = ()
    help: str = "requests per batch"


@dataclass(frozen=True)
class SchedulerInfo:
    name: str
    summary: str
    follows: str
    tunables: list[Tunable]


def schedulers() -> list[SchedulerInfo]:
    return [
        SchedulerInfo(
            name,
            f"summary of {name}",
            "Linux 7.3",
            [Tunable()] if name == "mq-deadline" else [],
        )
        for name in _SCHEDULERS
    ]


def environment() -> dict[str, list[Tunable]]:
    return {"queue": [], "page cache": [], "host": []}


def disk_files() -> dict[str, str]:
    return {}


class Host:
    def __init__(self, changed: Mapping[str, int]) -> None:
        self.values = {"cpus": 4, "journal": 0} | dict(changed)


class Scheduler:
    def __init__(
        self,
        name: str,
        settings: Sequence[tuple[str, str]] = (),
        real: bool = False,
        plugin: None = None,
    ) -> None:
        self.name = name
        if self.name not in _SCHEDULERS:
            raise InputError(f"no scheduler '{self.name}'")
        self.changed = dict(settings)
        changes = ",".join(f"{key}={value}" for key, value in settings)
        self.text = f"{name}:{changes}" if changes else name
        self.settings = ({"fifo_batch": "16"} if self.name == "mq-deadline" else {}) | self.changed
        self.own: list[tuple[str, str]] = []


def split_scheduler(text: str) -> tuple[str, list[tuple[str, str]]]:
    name, _, settings = text.partition(":")
    return name, pairs(settings, name, "") if settings else []


def pairs(text: str, owner: str, expected: str) -> list[tuple[str, str]]:
    found = [one.partition("=") for one in text.split(",")]
    for key, equals, value in found:
        if not (key and equals and value):
            wrong = f"{key}{equals}{value}"
            raise InputError(f"{owner}: expected {expected} behind ':', found '{wrong}'")
    return [(key, value) for key, _, value in found]


def host_spec(text: str) -> tuple[str | None, list[tuple[str, int]]]:
    values = [(key, int(value)) for key, value in pairs(text, "", "")] if text else []
    return None, values


@dataclass(frozen=True)
class DiskLimits:
    rotational: bool
    hw_queues: int


@dataclass(frozen=True)
class Parameter:
    key: str = "rpm"
    value: str = "5900"
    unit: str = "1/min"
    help: str = "speed"
    source: str = "sheet"
    range: None = None


@dataclass(frozen=True)
class Validation:
    validated: bool = False
    text: str = "not validated: 0 of 5 figures"


class Disk:
    FIELDS = (
        "name",
        "summary",
        "kind",
        "transport",
        "limits",
        "validation",
        "published",
        "parameters",
    )
    transport = "sata"
    validation = Validation()
    published = ()
    parameters = (Parameter(),)

    def __init__(self, text: str, path: str, overrides: Sequence[tuple[str, str]] = ()) -> None:
        if "rpm = -" in text:
            raise InputError("rpm: -7200 is out of range (1 to 30000)", path, 3)
        self.rotational = "rpm" in text
        self.kind = "hdd" if self.rotational else "ssd"
        self.name = path.rpartition("/")[2].removesuffix(".toml")
        self.summary = f"summary of {self.name} <b>bold</b>"
        self.limits = DiskLimits(self.rotational, 1 if self.rotational else 8)
        self.text = text

    def draw(self, seed: int) -> tuple[str, list[tuple[str, float]], str | None]:
        return self.text, [("rpm", 5900.0)], None


@dataclass(frozen=True)
class IdleOption:
    FIELDS: ClassVar = ("path", "line", "name", "value", "why")
    path: str
    line: int
    name: str
    value: str
    why: str


class Job:
    def __init__(
        self,
        text: str,
        path: str,
        env: Mapping[str, str],
        host: Host,
        ignore_unsupported: bool = False,
        real: bool = False,
    ) -> None:
        if "typo" in text and not ignore_unsupported:
            raise InputError("no option 'typo'", path, 3)
        self.text, self.path = text, path
        self.defaults = [("rw", "randrw")]
        self.jobs: list[object] = []
        self.without_effect: list[object] = []
        row = IdleOption(path, 2, "typo", "1", "no such option")
        self.ignored = [row] if "typo" in text else []


def simulate(
    job: Job,
    disk: Disk,
    scheduler: Scheduler,
    host: Host,
    seed: int,
    cancel: CancelToken | None,
    window: tuple[int, int, int] | None = None,
    until_ns: int | None = None,
) -> plausible.MadeRun:
    speed = _SCHEDULERS[scheduler.name] if disk.rotational else 1.0
    mean_ns = (8e6 if disk.rotational else 9e4) / speed
    writes = "write" in job.text
    return plausible.run(
        seed + zlib.crc32(job.path.encode()) % 1000,
        mean_ns=mean_ns,
        read_ios=0 if writes else 4000,
        write_ios=4000 if writes else 0,
        names=("alpha", "beta"),
        syncs=160 if writes else 0,
        duration_ns=round(
            4e9 / speed * (1.0 + zlib.crc32(f"{scheduler.text}{seed}".encode()) % 40 / 1e3)
        ),
    )
