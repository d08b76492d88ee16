"""pgbench's read-write transactions (TPC-B's) on a PostgreSQL server of our own.

A cluster is made in the directory (initdb), filled (`pgbench -i`), stopped and started again, so
that nothing is in its memory; then `pgbench -T` runs. The figure is its tps without the time to
connect; latencies are those of its log, one of each transaction. PostgreSQL does not run as root:
then the user `postgres` runs it, or `nobody` where there is none. It listens on a socket in its own
directory only. Settings are PostgreSQL's defaults, but for `shared_buffers` and a `max_wal_size`
of 128 MB, which bounds the room that it takes.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from blklab.errors import RunError
from blklab.programs.place import Place, last_line
from blklab.programs.program import Outcome, Parameter, Program, Values

_TPS = re.compile(r"^tps = ([0-9.]+) ", re.MULTILINE)
_HERE = "/proc/self/cwd"
"""The path of a socket has 107 bytes at most, that of a directory any number."""
_START_S = 60.0
_POLL_S = 0.02
_US = 1000
_ROLE = "blklab"
# 100 000 accounts are some 13 MB, and their index 2 MB; updates leave old rows behind.
_SCALE_BYTES = 20 << 20
_CLUSTER_BYTES = 64 << 20
_WAL_MB = 128
_HISTORY_BYTES_PER_S = 2 << 20
"""Rows of the history and of the log, of 10 000 transactions a second."""


def find(name: str) -> str | None:
    """Debian keeps the server's programs out of the PATH, by version: the newest."""
    versions = Path("/usr/lib/postgresql").glob(f"*/bin/{name}")
    several = [path for path in versions if path.parts[-3].isdecimal()]
    newest = max(several, key=lambda path: int(path.parts[-3]), default=None)
    return str(newest) if newest else shutil.which(name)


def begin(values: Values, place: Place) -> Callable[[], Outcome]:
    """Make the cluster and its tables; start the server with nothing in its memory."""
    server = _Server(place, values)
    server.make()
    with server.running():
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
    found = _TPS.search(text)
    if found is None:
        raise RunError(f"pgbench: {last_line(text, 0)}")
    took_ns: list[int] = []
    for log in sorted(server.data.glob("pgbench_log.*")):
        # client_id transaction_no time script_no ...: times in us; else what has failed.
        columns = (line.split() for line in log.read_text().splitlines())
        took_ns += [int(row[2]) * _US for row in columns if row[2].isdecimal()]
    return Outcome(float(found[1]), tuple(took_ns), {"pgbench.txt": text})


class _Server:
    """A cluster of one run."""

    def __init__(self, place: Place, values: Values) -> None:
        self._place = place
        self._values = values
        self.data = place.directory / "data"
        self._log = place.directory / "server.log"
        self._user = _user()

    def make(self) -> None:
        """Lay it out. RunError if its user cannot get there."""
        self.data.mkdir(mode=0o700)
        if self._user:
            shutil.chown(self.data, self._user)
            try:
                self._place.run(["test", "-w", str(self.data)], self._user)
            except RunError:
                raise RunError(
                    f"the user {self._user}, who runs PostgreSQL, has no way into the directory: "
                    "name one that others may pass through to (chmod o+x)"
                ) from None
        words = ("-U", _ROLE, "--auth=trust", "--no-locale", "--encoding=UTF8", "--no-sync")
        self._run("initdb", "-D", str(self.data), *words)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Started, and stopped in order at the end."""
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": ".",
            "shared_buffers": f"{self._values['shared_buffers_mb']}MB",
            "max_wal_size": f"{_WAL_MB}MB",
            "max_connections": str(self._values["clients"] + 10),
        }
        words = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [_program("postgres"), "-D", str(self.data), *words]
        process = self._place.start(command, self._log, self._user, self.data)
        try:
            self._wait(process)
            yield
        finally:
            # "Fast shutdown": who is connected is sent away.
            process.send_signal(signal.SIGINT)
            process.wait()

    def call(self, name: str, *words: str) -> str:
        """A client's output."""
        return self._run(name, "-h", _HERE, "-U", _ROLE, *words, "postgres")

    def _run(self, name: str, *words: str) -> str:
        return self._place.run([_program(name), *words], self._user, self.data)

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        """Until it takes connections."""
        end_s = time.monotonic() + _START_S
        while True:
            with contextlib.suppress(RunError):
                self._run("pg_isready", "-q", "-h", _HERE)
                return
            if process.poll() is not None or time.monotonic() > end_s:
                text = self._log.read_text(errors="replace")
                raise RunError(f"postgres: {last_line(text, process.returncode or 0)}")
            time.sleep(_POLL_S)


def _program(name: str) -> str:
    found = find(name)
    if found is None:
        raise RunError(f"{name}: has gone")
    return found


def _user() -> str | None:
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


PROGRAM = Program(
    name="pgbench",
    summary="pgbench: read-write transactions on a PostgreSQL server of its own",
    unit="tps",
    higher_is_better=True,
    operation="a transaction",
    needs=dict.fromkeys(("initdb", "postgres", "pgbench", "psql", "pg_isready"), "postgresql"),
    parameters=(
        Parameter("scale", 10, 1, 100_000, "", "of 100 000 accounts each, about 15 MB"),
        Parameter("clients", 8, 1, 1000, "", "connections, a transaction after the other each"),
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
