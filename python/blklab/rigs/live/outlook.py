"""The estimate before the first run: the time that all runs will take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from blklab.base.text import shown
from blklab.base.units import duration_text, size_text
from blklab.rigs.live import precondition, target
from blklab.rigs.live.beside_load import BesideLoad
from blklab.rigs.live.load import Load
from blklab.rigs.live.program import confined
from blklab.rigs.live.program_load import ProgramLoad
from blklab.rigs.live.replay_load import ReplayLoad

AnyLoad: TypeAlias = Load | ProgramLoad | ReplayLoad | BesideLoad
"""A workload on its target."""

_BETWEEN_S = 1.0
"""The overhead of a run besides fio's runtime: settings, cache, fio's own start."""


def sizes(loads: Sequence[AnyLoad]) -> list[int]:
    """Sizes of the test files that these workloads share, in bytes."""
    count = max(len(load.sizes) for load in loads)
    return [
        max(load.sizes[number] for load in loads if number < len(load.sizes))
        for number in range(count)
    ]


def announce(
    found: target.Target,
    loads: Sequence[AnyLoad],
    worn: precondition.Extents,
    tell: Callable[[str], None],
) -> None:
    """The expected time, as far as it is known in advance."""
    known = [load.ends_s for load in loads if load.ends_s is not None]
    total_s = sum(known) + _BETWEEN_S * len(loads)
    runs = f"{len(loads)} run{'s' * (len(loads) != 1)} on {shown(str(found.path))}"
    lasts = f"about {duration_text(total_s * 1e9)}"
    if len(known) < len(loads):
        lasts = f"{lasts} plus {len(loads) - len(known)} of them without a runtime"
    first = ""
    size = sum(sizes(loads)) if found.device is None else precondition.total_bytes(worn)
    if worn:
        how = "--no-precondition skips this"
        first = f", after {size_text(size)} of it have been overwritten ({how})"
    elif size:
        first = f", after {size_text(size)} of test files have been written"
    tell(f"{runs}: {lasts}{first}")
    if not confined():
        tell("a killed blklab may leave a program running: no PID namespaces for this user")
