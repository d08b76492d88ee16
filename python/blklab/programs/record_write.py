"""Writes a large file record by record, then fsync: an equivalent of IOzone's write test.

IOzone's `-i 0 -r RECORD -s SIZE -e` does the same: a new file, one `write` for each record, in
order, including the fsync. This program differs: data cannot be compressed, each writer has a
separate file, and the latency of each record is recorded.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable

from blklab.programs.place import Place, write_all
from blklab.programs.program import Outcome, Parameter, Program, Values
from blklab.programs.side_by_side import side_by_side

_KIB = 1024
_BLOCKS = 8
"""Records with different data, written in turn."""


def begin(values: Values, place: Place) -> Callable[[], Outcome]:
    """Draws the content before the measurement."""
    return lambda: _measure(values, place)


def _measure(values: Values, place: Place) -> Outcome:
    record = values["record_kib"] * _KIB
    count = max(values["size_mib"] * _KIB * _KIB // record, 1)
    draw = random.Random(place.seed)
    blocks = [draw.randbytes(record) for _ in range(_BLOCKS)]

    def write(number: int, took_ns: list[int]) -> None:
        _write(place.directory / str(number), blocks, count, took_ns)

    seconds, took_ns = side_by_side(write, values["writers"])
    written = record * count * values["writers"]
    return Outcome(written / seconds / 1e6, took_ns)


def _write(path: os.PathLike[str], blocks: list[bytes], count: int, took_ns: list[int]) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        for number in range(count):
            block = blocks[number % len(blocks)]
            start_ns = time.perf_counter_ns()
            write_all(handle, memoryview(block))
            took_ns.append(time.perf_counter_ns() - start_ns)
        os.fsync(handle)
    finally:
        os.close(handle)


PROGRAM = Program(
    name="record-write",
    summary="a large file written record by record, then fsync (as IOzone's write test)",
    unit="MB/s",
    higher_is_better=True,
    operation="writing a record into the page cache",
    needs={},
    parameters=(
        Parameter("size_mib", 1024, 1, 1 << 20, "MiB", "of each file"),
        Parameter("record_kib", 64, 1, 65536, "KiB", "of each write"),
        Parameter("writers", 1, 1, 64, "", "files in parallel, a thread each"),
    ),
    begin=begin,
    room_bytes=lambda values: values["writers"] * (values["size_mib"] + 1) * _KIB * _KIB,
)
