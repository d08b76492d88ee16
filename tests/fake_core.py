"""Stands in for the compiled core where a test is about what Python does with its answers."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from types import SimpleNamespace

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


def check_host(changed: Mapping[str, int]) -> str:
    return json.dumps({"cpus": 4} | dict(changed))


def parse_scheduler(text: str, real: bool) -> SimpleNamespace:
    name, _, settings = text.partition(":")
    if name not in _SCHEDULERS:
        raise ValueError(f"no scheduler '{name}'")
    changed = dict(pair.split("=") for pair in settings.split(",") if pair)
    defaults = {"fifo_batch": 16} if name == "mq-deadline" else {}
    return SimpleNamespace(name=name, settings=defaults | changed, changed=changed, own=[])


def disk(text: str, path: str, overrides: Sequence[tuple[str, str]] = ()) -> str:
    if "rpm = -" in text:
        raise ValueError(f"{path}:3: rpm: -7200 is out of range (1 to 30000)")
    name = path.rpartition("/")[2].removesuffix(".toml")
    return json.dumps(
        {
            "name": name,
            "summary": f"summary of {name} <b>bold</b>",
            "kind": "hdd" if "rpm" in text else "ssd",
            "transport": "sata",
            "limits": {"rotational": "rpm" in text, "hw_queues": 1 if "rpm" in text else 8},
            "parameters": [
                {"key": "rpm", "value": 5900, "unit": "1/min", "help": "speed", "source": "sheet"}
            ],
        }
    )


def parse_job(
    text: str, path: str, env: Mapping[str, str], ignore_unsupported: bool, real: bool
) -> str:
    if "typo" in text and not ignore_unsupported:
        raise ValueError(f"{path}:3: no option 'typo'")
    row = {"path": path, "line": 2, "name": "typo", "value": "1", "why": "no such option"}
    ignored = [row] if "typo" in text else []
    return json.dumps({"global": [["rw", "randrw"]], "jobs": [], "ignored": ignored})


def simulate(
    job_text: str,
    job_path: str,
    env: Mapping[str, str],
    disk_text: str,
    disk_path: str,
    disk_overrides: Sequence[tuple[str, str]],
    scheduler: str,
    seed: int,
    host: Mapping[str, int],
    ignore_unsupported: bool,
    cancel: CancelToken | None,
    window: tuple[int, int, int] | None,
) -> plausible.MadeRun:
    parse_job(job_text, job_path, env, ignore_unsupported, real=False)
    speed = _SCHEDULERS[scheduler.partition(":")[0]]
    rotational = "rpm" in disk_text
    if not rotational:
        speed = 1.0
    mean_ns = (8e6 if rotational else 9e4) / speed
    writes = "write" in job_text
    return plausible.run(
        seed + zlib.crc32(job_path.encode()) % 1000,
        mean_ns=mean_ns,
        read_ios=0 if writes else 4000,
        write_ios=4000 if writes else 0,
        names=("alpha", "beta"),
        syncs=160 if writes else 0,
        duration_ns=round(
            4e9 / speed * (1.0 + zlib.crc32(f"{scheduler}{seed}".encode()) % 40 / 1e3)
        ),
    )
