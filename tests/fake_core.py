"""Stands in for the compiled core where a test is about what Python does with its answers."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence

from tests import plausible

_SCHEDULERS = {"none": 1.0, "mq-deadline": 1.3, "kyber": 0.98, "bfq": 0.96, "cfq": 0.94}


class CancelToken:
    def __init__(self) -> None:
        self.cancelled = False
        self.now_ns, self.end_ns = 0, 0

    def cancel(self) -> None:
        self.cancelled = True


class PanicException(BaseException):
    """The stand-in never panics."""


def version() -> str:
    return "0.0-fake"


def schedulers() -> str:
    tunable = {"name": "fifo_batch", "unit": "", "default": 16, "min": 0, "max": 2**31 - 1}
    return json.dumps(
        [
            {
                "name": name,
                "summary": f"summary of {name}",
                "follows": "Linux 7.3",
                "tunables": [tunable | {"help": "requests per batch"}]
                if name == "mq-deadline"
                else [],
            }
            for name in _SCHEDULERS
        ]
    )


def environment() -> str:
    return json.dumps({"queue": [], "page cache": [], "host": []})


def disk_files() -> dict[str, str]:
    return {}


class Host:
    def __init__(self, changed: Mapping[str, int]) -> None:
        self.values = {"cpus": 4} | dict(changed)


class Scheduler:
    def __init__(self, text: str, real: bool = False) -> None:
        self.text = text
        self.name, _, settings = text.partition(":")
        if self.name not in _SCHEDULERS:
            raise ValueError(f"no scheduler '{self.name}'")
        self.changed = dict(pair.split("=") for pair in settings.split(",") if pair)
        self.settings = ({"fifo_batch": "16"} if self.name == "mq-deadline" else {}) | self.changed
        self.own: list[tuple[str, str]] = []


def split_scheduler(text: str) -> tuple[str, list[tuple[str, str]]]:
    found = Scheduler(text)
    return found.name, list(found.changed.items())


class Disk:
    def __init__(self, text: str, path: str, overrides: Sequence[tuple[str, str]] = ()) -> None:
        if "rpm = -" in text:
            raise ValueError(f"{path}:3: rpm: -7200 is out of range (1 to 30000)")
        self.rotational = "rpm" in text
        self.name = path.rpartition("/")[2].removesuffix(".toml")
        self.text = text

    def draw(self, seed: int) -> tuple[str, list[tuple[str, float]]]:
        return self.text, [("rpm", 5900.0)]

    def describe(self) -> str:
        return json.dumps(
            {
                "name": self.name,
                "summary": f"summary of {self.name} <b>bold</b>",
                "kind": "hdd" if self.rotational else "ssd",
                "transport": "sata",
                "limits": {
                    "rotational": self.rotational,
                    "hw_queues": 1 if self.rotational else 8,
                },
                "validation": {"validated": False, "text": "not validated: 0 of 5 figures"},
                "published": [],
                "parameters": [
                    {
                        "key": "rpm",
                        "value": 5900,
                        "unit": "1/min",
                        "help": "speed",
                        "source": "sheet",
                        "range": None,
                    }
                ],
            }
        )


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
            raise ValueError(f"{path}:3: no option 'typo'")
        self.text, self.path = text, path

    def describe(self) -> str:
        row = {"path": self.path, "line": 2, "name": "typo", "value": "1", "why": "no such option"}
        ignored = [row] if "typo" in self.text else []
        return json.dumps({"global": [["rw", "randrw"]], "jobs": [], "ignored": ignored})


def simulate(
    job: Job,
    disk: Disk,
    scheduler: Scheduler,
    host: Host,
    seed: int,
    cancel: CancelToken | None,
    window: tuple[int, int, int] | None,
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
