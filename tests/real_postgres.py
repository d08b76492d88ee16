"""A PostgreSQL server for the tests: in a temporary directory, run by an unprivileged user."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_DEBIAN = Path("/usr/lib/postgresql")


def program(name: str) -> str | None:
    """Debian keeps the server's programs off the path."""
    found = shutil.which(name)
    places = sorted(_DEBIAN.glob(f"*/bin/{name}"))
    return found or (str(places[-1]) if places else None)


def missing() -> str:
    """The reason why a server is impossible here; empty if it is possible."""
    if program("initdb") is None or program("pg_ctl") is None:
        return "needs PostgreSQL: apt-get install postgresql"
    if os.getuid() == 0 and shutil.which("setpriv") is None:
        return "needs setpriv: PostgreSQL does not run as root"
    return ""


@contextmanager
def server() -> Iterator[Path]:
    """The directory of its socket; it listens nowhere else."""
    directory = Path(tempfile.mkdtemp(prefix="blklab-pg-"))
    data, log = directory / "data", directory / "log"
    become: list[str] = []
    if os.getuid() == 0:
        user = _unprivileged()
        os.chown(directory, user.pw_uid, user.pw_gid)
        become = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]

    def call(name: str, *arguments: str) -> None:
        done = subprocess.run(
            [*become, str(program(name)), "-D", str(data), *arguments],
            cwd=directory,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout

    try:
        call("initdb", "-A", "trust", "-U", "blklab", "--no-sync")
        options = f"-c listen_addresses= -c fsync=off -k {directory}"
        call("pg_ctl", "-w", "-l", str(log), "-o", options, "start")
        try:
            yield directory
        finally:
            call("pg_ctl", "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def new_database(directory: Path) -> str:
    """The URL of an empty database of the server."""
    import psycopg

    name = f"t{uuid.uuid4().hex}"
    with psycopg.connect(
        f"host={directory} user=blklab dbname=postgres", autocommit=True
    ) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return f"postgresql+psycopg://blklab@/{name}?host={directory}"


def _unprivileged() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return pwd.getpwuid(65534)
