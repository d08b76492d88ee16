"""A private MariaDB server, for the programs that need one.

Its tables are created in the directory (mariadb-install-db), and it reads no configuration file. It
does not run as root: then the user `mysql` runs it, or `nobody` if that user does not exist. It
listens on a socket in its own directory, which other users cannot enter; a program with only TCP
gets a port of 127.0.0.1 and an account for one database and no files. Settings are MariaDB's
defaults (each commit is flushed to the disk, O_DIRECT for tables), except for the sizes of InnoDB's
buffer pool and log, and a pool that begins empty.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
from dataclasses import dataclass

from blklab.errors import RunError
from blklab.programs.place import Place
from blklab.programs.program import Parameter
from blklab.programs.server import HERE, Site, user_of

DATABASE = "blklab"
NEEDS = {
    "mariadb-install-db": "mariadb-server-core",
    "mariadbd": "mariadb-server-core",
    "mariadb": "mariadb-client-core",
}
"""Debian's packages that do not start a system server."""
ROOM_BYTES = 320 << 20
"""The size of an empty server: its log (96 MiB), its own tables, undo and temporary tables, and
their growth."""
BUFFER_POOL = Parameter(
    "buffer_pool_mib",
    64,
    6,
    1 << 20,
    "MiB",
    "InnoDB's own cache; with a smaller one the disk gets more I/O",
)

_SOCKET = "mariadb.sock"
_LOG_MIB = 96


def find(name: str) -> str | None:
    """The server's program is not in every user's PATH."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


@dataclass(frozen=True)
class Account:
    """The account for TCP connections, on 127.0.0.1."""

    port: int
    user: str
    password: str


class Server:
    """MariaDB in the directory of one run."""

    def __init__(
        self, place: Place, buffer_pool_mib: int, connections: int, *, tcp: bool = False
    ) -> None:
        self._site = Site(place, "MariaDB", user_of("mysql"))
        self._buffer_pool_mib = buffer_pool_mib
        self._connections = connections
        self.owner = self._site.user or _own_name()
        """This system user is the server's administrator, through the socket."""
        # Other users see it in the list of processes, but it only opens data that are discarded.
        self.account = Account(_free_port(), DATABASE, secrets.token_hex(16)) if tcp else None

    def make(self) -> None:
        """Create its empty data. RunError if its user cannot enter the directory."""
        self._site.make()
        # Only this account exists: the other method would admit every account by TCP.
        root = (
            "--auth-root-authentication-method=socket",
            f"--auth-root-socket-user={self.owner}",
        )
        # --force: the name of this machine need not be an address.
        words = ("--no-defaults", "--datadir=.", *root, "--skip-test-db", "--force")
        self.call("mariadb-install-db", *words)

    def running(self) -> contextlib.AbstractContextManager[None]:
        """Started with empty caches, and shut down properly at the end."""
        settings = {
            "datadir": ".",
            "socket": _SOCKET,
            "pid-file": "mariadb.pid",
            "innodb-buffer-pool-size": f"{self._buffer_pool_mib}M",
            "innodb-log-file-size": f"{_LOG_MIB}M",
            "innodb-buffer-pool-dump-at-shutdown": "OFF",
            "innodb-buffer-pool-load-at-startup": "OFF",
            "max-connections": str(self._connections + 10),
            "secure-file-priv": ".",
        }
        words = [f"--{name}={value}" for name, value in settings.items()]
        if self.account:
            words += ["--bind-address=127.0.0.1", f"--port={self.account.port}"]
        else:
            words.append("--skip-networking")
        command = [_program("mariadbd"), "--no-defaults", *words, "--skip-name-resolve"]
        return self._site.running(command, self._is_up, signal.SIGTERM)

    def make_database(self) -> None:
        """Create the empty database `DATABASE`, and the account that may use it by TCP."""
        self._sql(f"CREATE DATABASE {DATABASE}")
        if self.account:
            account = f"'{self.account.user}'@'127.0.0.1'"
            self._sql(f"CREATE USER {account} IDENTIFIED BY '{self.account.password}'")
            self._sql(f"GRANT ALL ON {DATABASE}.* TO {account}")

    def call(self, name: str, *words: str) -> str:
        """The output of a program, run as the server's user in its directory."""
        return self._site.run([_program(name), *words])

    @property
    def socket(self) -> str:
        """Its path, for a program in its directory."""
        return f"{HERE}/{_SOCKET}"

    def _sql(self, text: str) -> None:
        words = ("--no-defaults", f"--socket={self.socket}", f"--user={self.owner}")
        self.call("mariadb", *words, "-e", text)

    def _is_up(self) -> bool:
        with contextlib.suppress(RunError):
            self._sql("SELECT 1")
            return True
        return False


def _own_name() -> str:
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        raise RunError(f"the user {number}, which would run MariaDB, has no name") from None


def _program(name: str) -> str:
    found = find(name)
    if found is None:
        raise RunError(f"{name}: has ended")
    return found


def _free_port() -> int:
    """A free port; if another process takes it meanwhile, the server's last message says so."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port
