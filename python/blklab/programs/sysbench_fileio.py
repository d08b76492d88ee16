"""sysbench's fileio test: random reads and writes of 16 KiB, three to two, with fsync now and then.

sysbench creates the files, then its threads access them through the page cache and fsync all files
after each 100 requests (its defaults). The figure is reads plus writes per second; its latencies
are only stored in its output.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from blklab.programs.place import Place, told
from blklab.programs.program import Outcome, Parameter, Program, Values

_RATES = tuple(
    re.compile(rf"^\s*{what}/s:\s+([0-9.]+)", re.MULTILINE) for what in ("reads", "writes")
)
_MIB = 1 << 20


def begin(values: Values, place: Place) -> Callable[[], Outcome]:
    """Creates its files."""
    files = [f"--file-num={values['files']}", f"--file-total-size={values['size_mib']}M"]
    place.run(["sysbench", "fileio", *files, "prepare"])
    options = [
        "--file-test-mode=rndrw",
        f"--threads={values['threads']}",
        f"--time={values['duration_s']}",
        # 32 bits; 0 would mean the time of day.
        f"--rand-seed={place.seed % (2**31 - 1) + 1}",
    ]
    return lambda: _outcome(place.run(["sysbench", "fileio", *files, *options, "run"]))


def _outcome(text: str) -> Outcome:
    value = sum(float(told("sysbench", rate, text)[1]) for rate in _RATES)
    return Outcome(value, raw={"sysbench.txt": text})


PROGRAM = Program(
    name="sysbench-fileio",
    summary="sysbench fileio: random reads and writes through the page cache",
    unit="I/Os per s",
    higher_is_better=True,
    operation="",
    needs={"sysbench": "sysbench"},
    parameters=(
        Parameter("size_mib", 2048, 1, 1 << 24, "MiB", "of all files together"),
        Parameter("files", 128, 1, 10_000, "", "of equal size"),
        Parameter("threads", 8, 1, 1024, "", "each with one request at a time"),
        Parameter("duration_s", 30, 1, 86_400, "s", "of requests"),
    ),
    begin=begin,
    room_bytes=lambda values: (values["size_mib"] + values["files"]) * _MIB,
    duration_s=lambda values: float(values["duration_s"]),
)
