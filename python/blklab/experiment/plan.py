"""What is to be compared, and in which order it runs."""

from __future__ import annotations

import random

from blklab.domain import core
from blklab.domain.comparison import Planned, Setup
from blklab.domain.experiment import Experiment


def plan(setup: Setup) -> list[Planned]:
    """Every run once: repeat by repeat, each in a random order of its own.

    A block per repeat keeps what drifts over time (on rigs with a real clock) from favouring
    whoever ran early; the seed of a repeat is the same for all schedulers, which pairs them. So is
    the repeat's drawn disk, if disks are drawn.
    """
    order = random.Random(setup.seed)
    left_out = {(pair.disk, pair.scheduler) for pair in setup.left_out}
    runs = []
    for repeat in range(setup.repeats):
        seed = setup.seed + repeat
        disks = [core.drawn_disk(disk, seed) if setup.vary_disk else disk for disk in setup.disks]
        block = [
            Planned(
                disk,
                workload,
                scheduler,
                repeat,
                (disk_number, workload_number, scheduler_number, repeat),
                Experiment(
                    workload,
                    disks[disk_number],
                    scheduler,
                    seed,
                    setup.host,
                    setup.ignore_unsupported,
                ),
            )
            for disk_number, disk in enumerate(setup.disks)
            for workload_number, workload in enumerate(setup.workloads)
            for scheduler_number, scheduler in enumerate(setup.schedulers)
            if (disk.label, scheduler.label) not in left_out
        ]
        order.shuffle(block)
        runs += block
    return runs
