"""What ``--on`` takes: a scheduler of Dask that runs, or a cluster that Dask starts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from blklab.base.limits import JOBS_MAX
from blklab.base.text import shown
from blklab.domain.defaults import LOCAL
from blklab.errors import InputError

_SCHEDULER = re.compile(r"(tcp|tls)://(\[[0-9a-fA-F:]+\]|[^\s/:\[\]]+):(\d{1,5})")
_PORT_MAX = 65535
_EXPECTED = (
    "expected local, the address of a Dask scheduler (tcp://HOST:PORT or tls://HOST:PORT), "
    "local:WORKERS, ssh:HOST,HOST,... or slurm:JOBS"
)


@dataclass(frozen=True)
class Scheduler:
    """A scheduler that runs."""

    url: str
    host: str
    port: int


@dataclass(frozen=True)
class Started:
    """A cluster that is started for this call, and ends with it."""

    kind: str
    """``local``, ``ssh``, ``slurm``."""
    count: int
    """Workers or jobs; for ``ssh`` the number of hosts."""
    hosts: tuple[str, ...] = ()


def parse(on: str) -> Scheduler | Started | None:
    """None for this process. InputError if it is neither an address nor a cluster."""
    if on == LOCAL:
        return None
    kind, _, rest = on.partition(":")
    if kind in ("tcp", "tls"):
        return _scheduler(on)
    if kind in ("local", "slurm"):
        if not rest.isascii() or not rest.isdigit() or not 1 <= int(rest) <= JOBS_MAX:
            raise InputError(
                f"--on: found '{shown(on)}'; expected a number from 1 to {JOBS_MAX} after {kind}:"
            )
        return Started(kind, int(rest))
    if kind == "ssh":
        hosts = tuple(rest.split(","))
        if not all(re.fullmatch(r"[\w.@-]+", host, re.ASCII) for host in hosts):
            raise InputError(f"--on: found '{shown(on)}'; expected names of hosts after ssh:")
        return Started(kind, len(hosts), hosts)
    raise InputError(f"--on: found '{shown(on)}'; {_EXPECTED}")


def _scheduler(on: str) -> Scheduler:
    found = _SCHEDULER.fullmatch(on)
    if found is None or not 1 <= int(found[3]) <= _PORT_MAX:
        raise InputError(f"--on: found '{shown(on)}'; expected {on[:3]}://HOST:PORT")
    return Scheduler(on, found[2].strip("[]"), int(found[3]))
