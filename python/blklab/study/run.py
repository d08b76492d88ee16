"""Run what was planned; each part gives the results of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from blklab.compare import store
from blklab.compare.describe import describe
from blklab.compare.execute import execute
from blklab.compare.measurement import Measurement
from blklab.compare.plan import plan
from blklab.rigs import Rig
from blklab.rigs import rig as rig_of
from blklab.study import kernels
from blklab.study.outcome import Outcome
from blklab.study.plan import PlannedPart


def run(
    planned: Sequence[PlannedPart],
    built: Sequence[kernels.BuiltKernel],
    jobs: int,
    done: Callable[[Measurement], None],
    tell: Callable[[str], None],
) -> list[Outcome]:
    """Part after part, `jobs` runs at a time; `done` is called after each run, `tell` with lines
    for a person.

    `built` are the kernels that the parts on the kernel rig need.

    BlklabError if anything fails; all disks, loads and schedulers are checked before the first.
    """
    places = [_place(part, built) if part.setup else None for part in planned]
    described = [
        describe(part.setup, place) if part.setup and place else None
        for part, place in zip(planned, places, strict=True)
    ]
    outcomes = []
    for part, place, setup in zip(planned, places, described, strict=True):
        results = None
        if part.setup is not None and place is not None and setup is not None:
            runs = plan(part.setup)
            with place.prepared([one.experiment for one in runs], tell):
                measured = execute(runs, place, jobs, done)
            results = store.Results(setup, tuple(measured))
        outcomes.append(Outcome(part.part.name, part.rig, results, part.skipped))
    return outcomes


def _place(part: PlannedPart, built: Sequence[kernels.BuiltKernel]) -> Rig:
    if part.rig != "kernel":
        return rig_of(part.rig)
    used = kernels.needed([part])
    return kernels.rig([kernel for kernel in built if kernel.order.name in used])
