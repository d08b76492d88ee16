"""Inserts rows into an SQLite database, each in a separate transaction.

A typical workload of desktops and phones: a commit is a few small writes, each followed by fsync.
Well-known comparisons measure it this way (Phoronix's SQLite test). The table has an index, unless
`indexed` is 0; `synchronous` is FULL, SQLite's default. Each copy has a separate database file and
inserts in parallel. The SQLite version is that of this Python.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable

from blklab.errors import RunError
from blklab.programs.place import Place
from blklab.programs.program import Outcome, Parameter, Program, Values
from blklab.programs.side_by_side import side_by_side

_INDEX_VALUES = 1 << 30
_ROW_EXTRA_BYTES = 200
"""The size of a row in the table and the index with half-empty pages; a conservative estimate."""
_FIXED_BYTES = 8 << 20
"""SQLite's log grows to 4 MiB before a checkpoint; a rollback journal is not larger."""


def begin(values: Values, place: Place) -> Callable[[], Outcome]:
    """Make the databases."""
    files = [str(place.directory / f"{number}.db") for number in range(values["copies"])]
    for file in files:
        with _opened(file) as database:
            database.execute(f"PRAGMA journal_mode={'WAL' if values['wal'] else 'DELETE'}")
            database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, key INTEGER, row BLOB)")
            if values["indexed"]:
                database.execute("CREATE INDEX of_key ON t (key)")
        database.close()
    return lambda: _measure(values, place.seed, files)


def _measure(values: Values, seed: int, files: list[str]) -> Outcome:
    def insert(number: int, took_ns: list[int]) -> None:
        draw = random.Random(f"{seed} {number}")
        try:
            database = _opened(files[number])
            for _ in range(values["insertions"]):
                row = (draw.randrange(_INDEX_VALUES), draw.randbytes(values["row_bytes"]))
                start_ns = time.perf_counter_ns()
                database.execute("INSERT INTO t (key, row) VALUES (?, ?)", row)
                took_ns.append(time.perf_counter_ns() - start_ns)
            database.close()
        except sqlite3.Error as error:
            raise RunError(f"SQLite: {error}") from error

    seconds, took_ns = side_by_side(insert, len(files))
    return Outcome(len(took_ns) / seconds, took_ns)


def _opened(file: str) -> sqlite3.Connection:
    # Without a transaction from the module, each statement is one.
    database = sqlite3.connect(file, isolation_level=None)
    database.execute("PRAGMA synchronous=FULL")
    return database


PROGRAM = Program(
    name="sqlite",
    summary="SQLite: insertions, each in a separate transaction",
    unit="rows/s",
    higher_is_better=True,
    operation="an insertion",
    needs={},
    parameters=(
        Parameter("insertions", 1000, 1, 1_000_000, "", "of each copy"),
        Parameter("copies", 1, 1, 64, "", "databases in parallel, a thread each"),
        Parameter("row_bytes", 100, 1, 1_000_000, "bytes", "of incompressible data per row"),
        Parameter("indexed", 1, 0, 1, "", "0: no index on the other column"),
        Parameter("wal", 0, 0, 1, "", "1: a write-ahead log, instead of a rollback journal"),
    ),
    begin=begin,
    room_bytes=lambda values: (
        values["copies"]
        * (2 * values["insertions"] * (values["row_bytes"] + _ROW_EXTRA_BYTES) + _FIXED_BYTES)
    ),
)
