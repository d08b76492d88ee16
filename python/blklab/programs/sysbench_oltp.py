"""sysbench's oltp_read_write transactions on a private MariaDB server.

The tables are created and filled, and the server is restarted with empty caches; then sysbench's
threads run transactions, each of 14 selections, two updates, a deletion and an insertion. Rows are
chosen uniformly. sysbench's default prefers a few rows, which would soon be in memory, so that the
disk would not matter. The figure is its transactions per second; latencies come from its histogram,
with a resolution of 2 %. The tables should be several times as large as the server's cache;
otherwise the disk only receives writes.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable

from blklab.programs import mariadb
from blklab.programs.place import Place, told
from blklab.programs.program import Outcome, Parameter, Program, Values

_TPS = re.compile(r"^\s*transactions:\s+\d+\s+\(([0-9.]+) per sec\.\)", re.MULTILINE)
_HISTOGRAM = re.compile(r"^\s*([0-9]+\.[0-9]+) \|\**\s+([0-9]+)\s*$", re.MULTILINE)
"""A line of the histogram: a value in ms, a bar, and a count."""
_MS = 1_000_000
# A row is some 190 bytes and its index entry 10; pages that fill in random order are half empty.
_ROW_BYTES = 500
_GROWTH_BYTES_PER_S = 1 << 20


def begin(values: Values, place: Place) -> Callable[[], Outcome]:
    """Create the server and its tables; start it with empty caches."""
    server = mariadb.Server(place, values["buffer_pool_mib"], values["threads"])
    server.make()
    options = [
        "oltp_read_write",
        *("--db-driver=mysql", f"--mysql-socket={server.socket}"),
        *(f"--mysql-user={server.owner}", f"--mysql-db={mariadb.DATABASE}"),
        *(f"--tables={values['tables']}", f"--table-size={values['rows']}"),
        "--rand-type=uniform",
        # 32 bits; 0 would mean the time of day.
        f"--rand-seed={place.seed % (2**31 - 1) + 1}",
    ]
    with server.running():
        server.make_database()
        server.call("sysbench", *options, f"--threads={min(values['tables'], 4)}", "prepare")
    stack = contextlib.ExitStack()
    stack.enter_context(server.running())
    run = (f"--threads={values['threads']}", f"--time={values['duration_s']}")

    def measure() -> Outcome:
        with stack:
            text = server.call(
                "sysbench", *options, *run, "--percentile=99", "--histogram=on", "run"
            )
        return _outcome(text)

    return measure


def _outcome(text: str) -> Outcome:
    took_ns: list[int] = []
    for value_ms, count in _HISTOGRAM.findall(text):
        took_ns += [round(float(value_ms) * _MS)] * int(count)
    return Outcome(float(told("sysbench", _TPS, text)[1]), tuple(took_ns), {"sysbench.txt": text})


PROGRAM = Program(
    name="sysbench-oltp",
    summary="sysbench oltp_read_write: transactions on a private MariaDB server",
    unit="tps",
    higher_is_better=True,
    operation="a transaction",
    needs={"sysbench": "sysbench"} | mariadb.NEEDS,
    parameters=(
        Parameter("tables", 4, 1, 1000, "", "of equal size"),
        Parameter("rows", 250_000, 1, 100_000_000, "", "of each table, about 0.2 KB each"),
        Parameter("threads", 8, 1, 1000, "", "connections, each with one transaction at a time"),
        Parameter("duration_s", 30, 1, 86_400, "s", "of transactions"),
        mariadb.BUFFER_POOL,
    ),
    begin=begin,
    room_bytes=lambda values: (
        values["tables"] * values["rows"] * _ROW_BYTES
        + values["duration_s"] * _GROWTH_BYTES_PER_S
        + mariadb.ROOM_BYTES
    ),
    duration_s=lambda values: float(values["duration_s"]),
    spins=True,
    other_user=True,
    find=mariadb.find,
)
