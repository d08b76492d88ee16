"""A process that borrows a disk's settings again and again, until it is killed.

    python -m tests.live_helper DISK [DISK...]

Sets and restores the settings in a loop until it is asked to end; prints ``ready`` at the start.
"""

from __future__ import annotations

import itertools
import random
import sys

from blklab.base.journal import Journal, default_directory
from blklab.base.signals import Signals
from blklab.host.devices import queue
from blklab.rigs.live.borrowed import borrowing

_CHANGES = (
    ("none", {"read_ahead_kb": "64"}),
    ("mq-deadline", {"fifo_batch": "3", "nr_requests": "32"}),
    ("kyber", {"read_lat_nsec": "1000000"}),
    ("bfq", {"slice_idle": "0", "read_ahead_kb": "1024"}),
)


def main(names: list[str]) -> None:
    """Borrows them again and again; a disk that is borrowed already is an error."""
    journal, chance = Journal(default_directory()), random.Random()
    told: list[str] = []
    print("ready", flush=True)
    for _ in itertools.count():
        with (
            Signals.guarding() as signals,
            borrowing([queue.named(name) for name in names], journal, signals, told) as borrowed,
        ):
            for scheduler, changed in chance.sample(_CHANGES, 2):
                borrowed.use(scheduler, changed)
        print(*told, sep="\n", end="", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
