"""TPC-C's transactions, issued by go-tpc, on a private MariaDB server.

Warehouses are filled, and the server is restarted with empty caches; then each of go-tpc's threads
runs one transaction after the other, without TPC-C's keying and think times. The figure is its
tpmC, new orders per minute. It is not a result by the rules of the TPC, and not comparable with
one. go-tpc reports latencies with one digit only; they are stored in its output. It draws its own
seed each time. go-tpc supports only TCP: the server listens on a port of 127.0.0.1, for an account
of one database and no files. go-tpc runs as you, the server as its user.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Callable

from blklab.base import homes
from blklab.errors import InputError, RunError
from blklab.programs import mariadb
from blklab.programs.place import Place, last_line, told
from blklab.programs.program import Outcome, Parameter, Program, Values

INSTALL = "go install github.com/pingcap/go-tpc/cmd/go-tpc@v1.0.12"
_FILL_THREADS = 2
"""With 8, guests of the kernel rig did not come to an end on a fast disk: MariaDB computed without
progress while the tables were filled, where CPU work takes no time."""
# A failed insertion is skipped; go-tpc reports it only after a second try.
_TELL_FAILURES = ("--retry-count=1", "--retry-interval=0s")
_FAILURE = re.compile(r"^exec statement error: (.*?)(?:, try again later\.*)?$", re.MULTILINE)
_TPMC = re.compile(r"^tpmC: ([0-9.]+), tpmTotal: ", re.MULTILINE)
_ENDED = re.compile(r"^\[Summary\] (\w+) - ", re.MULTILINE)
"""A kind of transaction of which at least one ended; go-tpc has no figure without new orders."""
# 100 MB after filling, and half-empty pages that transactions split.
_WAREHOUSE_BYTES = 200 << 20
_GROWTH_BYTES_PER_S = 2 << 20
"""The orders at 50 000 tpmC, some 2 KB each."""


def find(name: str) -> str | None:
    """`go install` puts it into a directory that is not in every user's PATH."""
    if found := mariadb.find(name):
        return found
    with contextlib.suppress(InputError):
        return shutil.which(name, path=str(homes.expanded("~/go/bin")))
    return None


def begin(values: Values, place: Place) -> Callable[[], Outcome]:
    """Create the server and fill the warehouses; start it with empty caches."""
    server = mariadb.Server(place, values["buffer_pool_mib"], values["threads"], tcp=True)
    server.make()
    options = [_go_tpc(), "tpcc", *_login(server), f"--warehouses={values['warehouses']}"]
    with server.running():
        server.make_database()
        # Its check of the filled tables takes MariaDB minutes.
        fill = ("--no-check", f"--threads={min(values['threads'], _FILL_THREADS)}", *_TELL_FAILURES)
        _check_filled(place.run([*options, "prepare", *fill]))
    stack = contextlib.ExitStack()
    stack.enter_context(server.running())
    # Deadlocked transactions are rolled back, which TPC-C allows, and are not counted.
    run = ("--ignore-error", f"--threads={values['threads']}", f"--time={values['duration_s']}s")

    def measure() -> Outcome:
        with stack:
            return _outcome(place.run([*options, "run", *run]))

    return measure


def _check_filled(text: str) -> None:
    if found := _FAILURE.search(text):
        raise RunError(f"go-tpc: {last_line(found[1], 0)}")


def _outcome(text: str) -> Outcome:
    if "NEW_ORDER" not in (ended := _ENDED.findall(text)) and ended:
        raise RunError(
            "go-tpc: no new order ended in the given time: a longer one by duration_s=..."
        )
    return Outcome(float(told("go-tpc", _TPMC, text)[1]), raw={"go-tpc.txt": text})


def _login(server: mariadb.Server) -> list[str]:
    account = server.account
    assert account is not None
    return [
        *("--host=127.0.0.1", f"--port={account.port}", f"--db={mariadb.DATABASE}"),
        *(f"--user={account.user}", f"--password={account.password}"),
    ]


def _go_tpc() -> str:
    found = find("go-tpc")
    if found is None:
        raise RunError("go-tpc: has ended")
    return found


PROGRAM = Program(
    name="tpcc",
    summary="TPC-C's transactions (go-tpc) on a private MariaDB server",
    unit="tpmC",
    higher_is_better=True,
    operation="",
    needs={"go-tpc": INSTALL} | mariadb.NEEDS,
    parameters=(
        Parameter("warehouses", 2, 1, 10_000, "", "of about 100 MB each"),
        Parameter("threads", 8, 1, 1000, "", "connections, each with one transaction at a time"),
        Parameter("duration_s", 60, 1, 86_400, "s", "of transactions"),
        mariadb.BUFFER_POOL,
    ),
    begin=begin,
    room_bytes=lambda values: (
        values["warehouses"] * _WAREHOUSE_BYTES
        + values["duration_s"] * _GROWTH_BYTES_PER_S
        + mariadb.ROOM_BYTES
    ),
    duration_s=lambda values: float(values["duration_s"]),
    spins=True,
    tcp=True,
    other_user=True,
    find=find,
)
