"""pgbench's read-write transactions (TPC-B) on a private PostgreSQL server.

A cluster is created in the directory (initdb), filled (`pgbench -i`), stopped and restarted with
empty caches; then `pgbench -T` runs. The figure is its tps without the time to connect; latencies
come from its log, one for each transaction. PostgreSQL does not run as root: then the user
`postgres` runs it, or `nobody` if that user does not exist. It listens only on a socket in its own
directory. Settings are PostgreSQL's defaults, except for `shared_buffers` and a `max_wal_size` of
128 MB, which bounds its disk usage.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

from blklab.errors import RunError
from blklab.programs.place import Place, told
from blklab.programs.program import Outcome, Parameter, Program, Values
from blklab.programs.server import HERE, Site, user_of

_TPS = re.compile(r"^tps = ([0-9.]+) ", re.MULTILINE)
_US = 1000
_ROLE = "blklab"
# 100 000 accounts need some 13 MB, and their index 2 MB; updates leave old rows.
_SCALE_BYTES = 20 << 20
_CLUSTER_BYTES = 64 << 20
_WAL_MB = 128
_FILLING = {"wal_level": "minimal", "max_wal_senders": "0"}
"""New tables are not logged. On a slow disk their log would be as large as they are, beyond
`max_wal_size`, which is no strict limit."""
_HISTORY_BYTES_PER_S = 2 << 20
"""The rows of the history and of the log at 10 000 transactions per second."""


def find(name: str) -> str | None:
    """The newest version: Debian installs the server's programs by version, outside the PATH."""
    versions = Path("/usr/lib/postgresql").glob(f"*/bin/{name}")
    several = [path for path in versions if path.parts[-3].isdecimal()]
    newest = max(several, key=lambda path: int(path.parts[-3]), default=None)
    return str(newest) if newest else shutil.which(name)


def begin(values: Values, place: Place) -> Callable[[], Outcome]:
    """Create the cluster and its tables; start the server with empty caches."""
    server = _Server(place, values)
    server.make()
    with server.running(**_FILLING):
        server.call("pgbench", "-i", "-q", "-s", str(values["scale"]))
        server.call("psql", "-q", "-c", "CHECKPOINT")
    stack = contextlib.ExitStack()
    stack.enter_context(server.running())

    def measure() -> Outcome:
        with stack:
            return _measure(server, values, place.seed)

    return measure


def _measure(server: _Server, values: Values, seed: int) -> Outcome:
    threads = min(values["clients"], len(os.sched_getaffinity(0)))
    text = server.call(
        "pgbench",
        *("-c", str(values["clients"]), "-j", str(threads), "-T", str(values["duration_s"])),
        *("-l", f"--random-seed={seed % 2**31}"),
    )
    found = told("pgbench", _TPS, text)
    took_ns: list[int] = []
    for log in sorted(server.data.glob("pgbench_log.*")):
        # client_id transaction_no time script_no ...: times in us; other values mean a failure.
        columns = (
            line.split() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()
        )
        took_ns += [int(row[2]) * _US for row in columns if row[2].isdecimal()]
    return Outcome(float(found[1]), tuple(took_ns), {"pgbench.txt": text})


class _Server:
    """The cluster of one run."""

    def __init__(self, place: Place, values: Values) -> None:
        self._values = values
        self._site = Site(place, "PostgreSQL", user_of("postgres"))

    @property
    def data(self) -> Path:
        return self._site.data

    def make(self) -> None:
        """Create its data. RunError if its user cannot enter the directory."""
        self._site.make()
        words = ("-U", _ROLE, "--auth=trust", "--no-locale", "--encoding=UTF8", "--no-sync")
        self._site.run([_program("initdb"), "-D", str(self.data), *words])

    def running(self, **more: str) -> contextlib.AbstractContextManager[None]:
        """Started with `more` settings, and shut down properly at the end."""
        settings = {
            **more,
            "listen_addresses": "",
            "unix_socket_directories": ".",
            "shared_buffers": f"{self._values['shared_buffers_mb']}MB",
            "max_wal_size": f"{_WAL_MB}MB",
            "max_connections": str(self._values["clients"] + 10),
        }
        words = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [_program("postgres"), "-D", str(self.data), *words]
        # "Fast shutdown": disconnects clients.
        return self._site.running(command, self._is_up, signal.SIGINT)

    def call(self, name: str, *words: str) -> str:
        """A client's output."""
        return self._site.run([_program(name), "-h", HERE, "-U", _ROLE, *words, "postgres"])

    def _is_up(self) -> bool:
        with contextlib.suppress(RunError):
            self._site.run([_program("pg_isready"), "-q", "-h", HERE])
            return True
        return False


def _program(name: str) -> str:
    found = find(name)
    if found is None:
        raise RunError(f"{name}: has ended")
    return found


PROGRAM = Program(
    name="pgbench",
    summary="pgbench: read-write transactions on a private PostgreSQL server",
    unit="tps",
    higher_is_better=True,
    operation="a transaction",
    needs=dict.fromkeys(("initdb", "postgres", "pgbench", "psql", "pg_isready"), "postgresql"),
    parameters=(
        Parameter("scale", 10, 1, 100_000, "", "of 100 000 accounts each, about 15 MB"),
        Parameter("clients", 8, 1, 1000, "", "connections, each with one transaction at a time"),
        Parameter("duration_s", 30, 1, 86_400, "s", "of transactions"),
        Parameter("shared_buffers_mb", 128, 1, 1 << 20, "MB", "PostgreSQL's own cache"),
    ),
    begin=begin,
    room_bytes=lambda values: (
        values["scale"] * _SCALE_BYTES
        + values["duration_s"] * _HISTORY_BYTES_PER_S
        + _CLUSTER_BYTES
        + 2 * _WAL_MB * 1_000_000
    ),
    duration_s=lambda values: float(values["duration_s"]),
    other_user=True,
    find=find,
)
