"""The `kernel` rig: the real kernel's schedulers before a disk model, in virtual time.

Each run is a guest: user-mode Linux, whose first process serves the disk model, sets the
scheduler, runs the job and leaves its result in the run's directory.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab import binaries
from blklab.errors import InputError, RunError, nearest
from blklab.kernel import cache
from blklab.kernel.boot import Guest, TimeTravel, boot
from blklab.result import DIRECTIONS, Result
from blklab.rigs import Experiment, sim

DRIVERS = ("fio", "native")
"""Who issues the I/O."""

LATENESS_PART = 0.02
"""A run is invalid if half of its completions were late by more than this part of the mean
latency that the processes saw."""

_MIB_DIRECT = 256
_MIB_BESIDE_CACHE = 96
_TIMEOUT_S = 1800.0
_VALUE_BYTES = 8
_LOG_ROWS = 16384
_ADAPTER_TAGS = 32
# Write-back throttling is not part of any scheduler, and the other rigs have none.
_QUEUE = {"wbt_lat_usec": 0}


@dataclass(frozen=True)
class Options:
    """What this rig alone can be told."""

    kernel: str | None = None
    """Name or key of a kernel that was built; the one built last if none is given."""
    driver: str = "fio"
    time_travel: TimeTravel = "inf-cpu"


class KernelRig:
    """See :class:`blklab.rigs.Rig`."""

    name = "kernel"

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or Options()
        if self._options.driver not in DRIVERS:
            wrong = self._options.driver
            raise InputError(f"--driver: no '{wrong}'{nearest(wrong, DRIVERS)}")
        named = self._options.kernel
        self._kernel = cache.find(named) if named else cache.latest()
        self._init = binaries.find("blklab-guest")
        self._guests: set[Guest] = set()
        self._lock = threading.Lock()
        self._cancelled = False

    def run(self, experiment: Experiment) -> Result:
        """Boot a guest, let it run the job; see :class:`blklab.rigs.Rig`."""
        order, memory_mib = self._order(experiment)
        with tempfile.TemporaryDirectory(prefix="blklab-run-") as name:
            directory = Path(name)
            (directory / "disk.toml").write_text(experiment.disk.file.text)
            (directory / "guest.json").write_text(json.dumps(order))
            self._boot(directory, memory_mib)
            outcome = _outcome(directory)
            result = Result.from_run(_Run(directory))
            _check_lateness(outcome["disk"]["lateness"], result)
            return result

    def cancel(self) -> None:
        """See :class:`blklab.rigs.Rig`."""
        with self._lock:
            self._cancelled = True
            guests = list(self._guests)
        for guest in guests:
            guest.kill()

    def _boot(self, directory: Path, memory_mib: int) -> None:
        with boot(
            self._kernel.image,
            [str(self._init)],
            directory,
            memory_mib=memory_mib,
            time_travel=self._options.time_travel,
            timeout_s=_TIMEOUT_S,
        ) as guest:
            with self._lock:
                if self._cancelled:
                    raise KeyboardInterrupt
                self._guests.add(guest)
            try:
                guest.wait()
            except RunError:
                if self._cancelled:
                    raise KeyboardInterrupt from None
                raise
            finally:
                with self._lock:
                    self._guests.discard(guest)

    def _order(self, experiment: Experiment) -> tuple[dict[str, Any], int]:
        """``guest.json``, and the guest's memory in MiB."""
        scheduler = sim.check_scheduler(experiment.scheduler)
        host = sim.check_host(experiment.host)
        job = sim.describe_job(experiment.job, experiment.ignore_unsupported)
        limits = sim.describe_disk(experiment.disk)["limits"]
        of_queue = {tunable["name"] for tunable in sim.environment()["queue"]}
        settings: Mapping[str, int] = scheduler["settings"]
        order = {
            "disk": {
                "file": "disk.toml",
                "overrides": list(experiment.disk.overrides),
                "seed": experiment.seed,
                "data": "none",
            },
            "scheduler": scheduler["name"],
            "queue": _QUEUE
            | _requests(scheduler["name"], limits)
            | {n: v for n, v in settings.items() if n in of_queue and v},
            "iosched": {n: v for n, v in scheduler["changed"].items() if n not in of_queue},
            "log_rows": _LOG_ROWS,
            "sysctl": _sysctls(host),
            "run": {
                "job": {
                    "text": _flat(job),
                    "seed": experiment.seed,
                    "driver": self._options.driver,
                }
            },
        }
        return order, _memory_mib(job, host)


class _Run:
    """A result as the guest writes it; see :class:`blklab.result.RunData`."""

    def __init__(self, directory: Path) -> None:
        scalars = json.loads((directory / "run.json").read_bytes())
        self._bulk = (directory / "run.i64").read_bytes()
        self._places: dict[str, slice] = {}
        self.summary = json.dumps(scalars["summary"])
        begin = 0
        for name, length in scalars["columns"]:
            end = begin + length * _VALUE_BYTES
            self._places[name] = slice(begin, end)
            begin = end

    def columns(self) -> list[str]:
        return list(self._places)

    def column(self, name: str) -> bytes:
        return self._bulk[self._places[name]]


def _requests(scheduler: str, limits: Mapping[str, int]) -> dict[str, int]:
    """What `nr_requests` is before a SATA disk that takes fewer commands than its adapter."""
    fewer = limits["hw_queues"] == 1 and limits["queue_depth"] < _ADAPTER_TAGS
    return {"nr_requests": 2 * _ADAPTER_TAGS} if fewer and scheduler != "none" else {}


def _flat(job: Mapping[str, Any]) -> str:
    """The job file with its variables, includes and `[global]` sections put in."""
    lines = []
    for section in job["jobs"]:
        lines.append(f"[{section['name']}]")
        lines += [f"{name}={value}" if value else name for name, value in section["options"]]
    return "\n".join(lines) + "\n"


def _sysctls(host: Mapping[str, int]) -> dict[str, int]:
    """The page cache's settings. Limits as sizes: a ratio is of what the guest has free."""
    memory = host["memory_kb"] * 1024
    size = {
        limit: host[f"{limit}_bytes"] or memory * host[f"{limit}_ratio"] // 100
        for limit in ("dirty_background", "dirty")
    }
    return {f"vm.{limit}_bytes": max(size[limit], 2 * 4096) for limit in size} | {
        f"vm.{name}": host[name] for name in ("dirty_expire_centisecs", "dirty_writeback_centisecs")
    }


def _memory_mib(job: Mapping[str, Any], host: Mapping[str, int]) -> int:
    """Direct I/O needs little; a page cache as large as the modelled one, and room beside it."""
    direct = all(
        dict(section["options"]).get("direct", "0") not in ("0", "false") for section in job["jobs"]
    )
    return _MIB_DIRECT if direct else host["memory_kb"] // 1024 + _MIB_BESIDE_CACHE


def _outcome(directory: Path) -> dict[str, Any]:
    try:
        outcome: dict[str, Any] = json.loads((directory / "result.json").read_bytes())
    except (OSError, ValueError) as error:
        raise RunError(f"the guest left no result: {error}") from error
    if outcome["error"]:
        raise RunError(f"in the guest: {outcome['error']}")
    return outcome


def _check_lateness(lateness: Mapping[str, int], result: Result) -> None:
    """RunError if the disk could not keep up with its model."""
    sides = [job.direction(name) for job in result.jobs for name in DIRECTIONS]
    ios = sum(side.ios for side in sides)
    latency_ns = sum(side.lat.mean_ns * side.ios for side in sides) / max(ios, 1)
    if ios and lateness["p50_ns"] > LATENESS_PART * latency_ns:
        raise RunError(
            f"invalid: half of the disk's completions came {lateness['p50_ns']} ns late or later "
            f"(the latency seen is {latency_ns:.0f} ns); run fewer guests at a time (--jobs 1)"
        )
