"""`hdparm -tT`: a device read in order.

`-t` measures some three seconds of reads from the device's beginning through the page cache, which
hdparm empties first; that is the figure. `-T`, cached reads, measures the memory, not the
scheduler; it is only stored in hdparm's output. hdparm's MB is 2^20 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from blklab.programs.place import Place, told
from blklab.programs.program import Outcome, Program, Values

_BUFFERED = re.compile(r"buffered disk reads:.*=\s*([0-9.]+)\s*(kB|MB|GB)/s")
_MIB = {"kB": 1 / 1024, "MB": 1.0, "GB": 1024.0}


def begin(_: Values, place: Place) -> Callable[[], Outcome]:
    """Needs no preparation."""
    return lambda: _outcome(place.run(["hdparm", "-tT", str(place.device)]))


def _outcome(text: str) -> Outcome:
    found = told("hdparm", _BUFFERED, text)
    return Outcome(float(found[1]) * _MIB[found[2]], raw={"hdparm.txt": text})


PROGRAM = Program(
    name="hdparm",
    summary="hdparm -tT: a device read in order, through the page cache",
    unit="MiB/s",
    higher_is_better=True,
    operation="",
    needs={"hdparm": "hdparm"},
    parameters=(),
    begin=begin,
    duration_s=lambda _: 7.0,
    on_device=True,
    ends_by_cpu=True,
)
