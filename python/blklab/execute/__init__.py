"""Run experiments, several at a time; each end is an event.

An `Executor` has one method and receives plain data (`blklab.domain.task`), so that each executor
runs the same tasks: `Local` in threads of this process, `cluster/` on the workers of Dask. On every
machine `carried_out` makes the rig and runs one task. A task's result is reduced where it runs, so
that only small data travel or wait for other tasks. `opened` gives the place that the user names.
"""

from blklab.execute.comparison import carry_out, take_over
from blklab.execute.interface import Ended, Executor, Failed, Found, KeptRun, Place
from blklab.execute.local import Local
from blklab.execute.one import carried_out
from blklab.execute.places import opened

__all__ = [
    "Ended",
    "Executor",
    "Failed",
    "Found",
    "KeptRun",
    "Local",
    "Place",
    "carried_out",
    "carry_out",
    "opened",
    "take_over",
]
