"""Creates a tree of small files like a kernel's sources: an equivalent of Compile Bench.

Compile Bench's first test writes trees with the names and sizes of a kernel's files, and reports
MB/s. This program differs: sizes follow the distribution of Linux 7.3's sources (61 739 files, half
of them below 3.5 kB, in 5 610 directories), names are numbers, and the time includes `syncfs`,
unless `synced` is 0: then most of it may be left in the page cache, as Compile Bench does. The same
seed makes the same tree.
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from bisect import bisect
from collections.abc import Callable
from pathlib import Path

from blklab.errors import RunError
from blklab.programs.place import Place, write_all
from blklab.programs.program import Outcome, Parameter, Program, Values
from blklab.programs.side_by_side import side_by_side

# Measured: sizes of the regular files of Linux 7.3, in bytes, at these shares of all files.
_SHARES = (*(number / 20 for number in range(20)), 0.99, 0.999, 1.0)
_SIZES = (0, 188, 367, 580, 845, 1130, 1443, 1802, 2258, 2819, 3490, 4325, 5395, 6677, 8293, 10477,
          13591, 18316, 26500, 44291, 106079, 318524, 2456864)  # fmt: skip
_FILES_PER_DIRECTORY = 11
"""61 739 in 5 610."""
_MEAN_BYTES = 12_700
"""Mean of the drawn sizes, which are interpolated linearly between the shares."""
_BLOCK_BYTES = 4096


def sizes(count: int, seed: str) -> list[int]:
    """The sizes of `count` files, in bytes."""
    draw = random.Random(seed)
    return [_size(draw.random()) for _ in range(count)]


def _size(share: float) -> int:
    above = min(bisect(_SHARES, share), len(_SHARES) - 1)
    (low, high), (start, end) = _SHARES[above - 1 : above + 1], _SIZES[above - 1 : above + 1]
    return round(start + (end - start) * (share - low) / (high - low))


def begin(values: Values, place: Place) -> Callable[[], Outcome]:
    """Draws the content before the measurement."""
    trees = [sizes(values["files"], f"{place.seed} {number}") for number in range(values["trees"])]
    data = random.Random(place.seed).randbytes(max(map(max, trees)) + 1)
    synced = bool(values["synced"])
    return lambda: _measure(trees, data, place.directory, synced=synced)


def _measure(trees: list[list[int]], data: bytes, directory: Path, *, synced: bool) -> Outcome:
    def create(number: int, took_ns: list[int]) -> None:
        _create(directory / str(number), trees[number], memoryview(data), took_ns)

    seconds, took_ns = side_by_side(create, len(trees))
    if synced:
        seconds += _synced(directory)
    return Outcome(sum(map(sum, trees)) / seconds / 1e6, took_ns)


def _synced(directory: Path) -> float:
    """The seconds that it took."""
    start_ns = time.perf_counter_ns()
    # Syncs only this file system; Python has no call for it.
    done = subprocess.run(["sync", "--file-system", directory], check=False, capture_output=True)
    seconds = (time.perf_counter_ns() - start_ns) / 1e9
    if done.returncode != 0:
        raise RunError("sync: some data have not reached the disk")
    return seconds


def _create(tree: Path, files: list[int], data: memoryview, took_ns: list[int]) -> None:
    tree.mkdir()
    for number, size in enumerate(files):
        directory = tree / str(number // _FILES_PER_DIRECTORY)
        if number % _FILES_PER_DIRECTORY == 0:
            directory.mkdir()
        start_ns = time.perf_counter_ns()
        handle = os.open(directory / str(number), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            write_all(handle, data[:size])
        finally:
            os.close(handle)
        took_ns.append(time.perf_counter_ns() - start_ns)


PROGRAM = Program(
    name="kernel-tree",
    summary="a tree of small files like a kernel's sources is created (as Compile Bench)",
    unit="MB/s",
    higher_is_better=True,
    operation="creating a file in the page cache",
    needs={"sync": "coreutils"},
    parameters=(
        Parameter("files", 20_000, 1, 1_000_000, "", "of each tree"),
        Parameter("trees", 1, 1, 64, "", "in parallel, a thread each"),
        Parameter("synced", 1, 0, 1, "", "0: the time ends before the data are on the disk"),
    ),
    begin=begin,
    # Half a block is lost per file, an inode and a name are needed; twice that, and one large file.
    room_bytes=lambda values: (
        values["trees"] * (values["files"] * 2 * (_MEAN_BYTES + _BLOCK_BYTES) + 2 * _SIZES[-1])
    ),
)
