"""A process that borrows a disk's settings for a moment, to be killed while it does.

    python -m tests.live_helper DISK [DISK...]

Sets what is borrowed, over and over, until it is told to end; says ``ready`` when it begins.
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
    """Borrow them again and again; one that is lent out already is an error."""
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
