"""What is said before the first run: how long all of them will take."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from blklab.base.text import shown
from blklab.base.units import duration_text, size_text
from blklab.rigs.live import precondition, target
from blklab.rigs.live.load import Load
from blklab.rigs.live.program import confined
from blklab.rigs.live.program_load import ProgramLoad

_BETWEEN_S = 1.0
"""What a run costs beside fio's runtime: settings, cache, fio's own start."""


def sizes(loads: Sequence[Load | ProgramLoad]) -> list[int]:
    """Of the test files that these loads have in common, in bytes."""
    count = max(len(load.sizes) for load in loads)
    return [
        max(load.sizes[number] for load in loads if number < len(load.sizes))
        for number in range(count)
    ]


def announce(
    found: target.Target,
    loads: Sequence[Load | ProgramLoad],
    worn: precondition.Extents,
    tell: Callable[[str], None],
) -> None:
    """How long it will take, as far as that can be known beforehand."""
    known = [load.ends_s for load in loads if load.ends_s is not None]
    total_s = sum(known) + _BETWEEN_S * len(loads)
    runs = f"{len(loads)} run{'s' * (len(loads) != 1)} on {shown(str(found.path))}"
    lasts = f"about {duration_text(total_s * 1e9)}"
    if len(known) < len(loads):
        lasts = f"{lasts} and what {len(loads) - len(known)} of them need that have no runtime"
    first = ""
    size = sum(sizes(loads)) if found.device is None else precondition.total_bytes(worn)
    if worn:
        how = "--no-precondition leaves that out"
        first = f", after {size_text(size)} of it have been written over ({how})"
    elif size:
        first = f", after {size_text(size)} of test files have been written"
    tell(f"{runs}: {lasts}{first}")
    if not confined():
        tell("a killed blklab may leave a program running: no PID namespaces for this user")
