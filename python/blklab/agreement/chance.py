"""The effect of chance: the simulator against itself, on a disk that is slower by almost nothing.

On a hard disk a command that comes some nanoseconds later may miss its sector and wait for a whole
revolution; after that, other requests are queued together. So two runs without a relevant
difference have different figures, and no simulator can agree better with a kernel than with itself.
"""

from __future__ import annotations

from dataclasses import replace

from blklab.domain import core
from blklab.domain.experiment import Disk

_SLOWER = {"hdd": ("read_overhead_us", 1), "ssd": ("command_us", 0.01)}
"""The times that are longer, and by how much: a ten thousandth of a read."""


def disturbed(disk: Disk) -> Disk:
    """The same disk with commands that take a little longer."""
    model = core.disk_model(disk)
    key, more = _SLOWER[model.kind]
    [now] = [row.value for row in model.parameters if row.key == key]
    others = tuple(change for change in disk.overrides if change[0] != key)
    return replace(disk, overrides=(*others, (key, f"{float(now) + more:g}")))
