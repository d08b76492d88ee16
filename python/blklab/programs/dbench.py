"""dbench: a file server with N clients. dbench repeats the file operations of a recorded session
(its own `client.txt`), once for each client, and reports the MB/s read and written, mostly in the
page cache; the flushes of the recording are executed.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from blklab.programs.place import Place, told
from blklab.programs.program import Outcome, Parameter, Program, Values

_THROUGHPUT = re.compile(r"^Throughput ([0-9.]+) MB/sec", re.MULTILINE)
_CLIENT_BYTES = 64 << 20
"""Twice the largest disk usage of one client's session."""


def begin(values: Values, place: Place) -> Callable[[], Outcome]:
    """dbench makes its files itself."""
    command = ["dbench", "-D", str(place.directory), "-t", str(values["duration_s"])]
    return lambda: _outcome(place.run([*command, str(values["clients"])]))


def _outcome(text: str) -> Outcome:
    found = told("dbench", _THROUGHPUT, text)
    return Outcome(float(found[1]), raw={"dbench.txt": text})


PROGRAM = Program(
    name="dbench",
    summary="dbench: a file server with N clients",
    unit="MB/s",
    higher_is_better=True,
    operation="",
    needs={"dbench": "dbench"},
    parameters=(
        Parameter("clients", 8, 1, 1024, "", "a process each"),
        Parameter("duration_s", 30, 2, 86_400, "s", "without the first fifth"),
    ),
    begin=begin,
    room_bytes=lambda values: values["clients"] * _CLIENT_BYTES,
    duration_s=lambda values: float(values["duration_s"]),
)
