"""Run a planned study; each part gives the results of a comparison, and of a simulation beside
it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blklab.domain import results_file
from blklab.domain.comparison import plan
from blklab.domain.events import Keeper, Nowhere
from blklab.domain.experiment import RigSpec
from blklab.domain.setup import SetupData
from blklab.execute import Place, carry_out, take_over
from blklab.experiment.describe import describe
from blklab.rigs import Rig
from blklab.rigs import rig as rig_of
from blklab.study import kernels, simulated
from blklab.study.model import Outcome
from blklab.study.plan import PlannedPart


@dataclass(frozen=True)
class Ready:
    """A part with everything to run it; without a rig if the whole part is left out."""

    planned: PlannedPart
    rig: Rig | None
    described: SetupData | None


def ready(planned: Sequence[PlannedPart], built: Sequence[kernels.BuiltKernel]) -> list[Ready]:
    """Checks all disks, workloads and schedulers; `built` are the kernels for parts on the kernel
    rig. InputError."""
    found = []
    for part in planned:
        place = _place(part, built) if part.setup else None
        described = None
        if part.setup and place:
            place.put_right()
            described = describe(part.setup, place)
        found.append(Ready(part, place, described))
    return found


def run(
    parts: Sequence[Ready],
    where: Place,
    done: Callable[[Any], None],
    keepers: Callable[[], Mapping[str, Keeper]],
    tell: Callable[[str], None],
) -> list[Outcome]:
    """Run part after part. `done` is called after each run, and the part's
    keeper, which `keepers` returns before the first run, stores it; `tell` receives notes for the
    user. BlklabError if a run fails."""
    outcomes = []
    for part in parts:
        name, results = part.planned.part.name, None
        if part.planned.setup is not None and part.rig is not None and part.described is not None:
            runs = plan(part.planned.setup)
            with part.rig.prepared([planned.experiment for planned in runs], tell):
                keeper = keepers().get(name) or Nowhere("")
                if where.takes_over:
                    take_over(runs, part.rig, keeper)
                measured = carry_out(runs, part.rig, where.executor(part.rig), done, keeper)
            results = results_file.Results(part.described, tuple(measured))
        beside = None
        if results:
            beside = simulated.run(part.planned, part.rig, where.max_parallel, done)
        planned = part.planned
        outcomes.append(Outcome(name, planned.rig, results, planned.skipped, beside, planned.scale))
    return outcomes


def _place(part: PlannedPart, built: Sequence[kernels.BuiltKernel]) -> Rig:
    if part.rig != "kernel":
        return rig_of(RigSpec.of_options(part.rig, part.options))
    used = kernels.needed([part])
    of_part = [kernel for kernel in built if kernel.order.name in used]
    return kernels.rig(of_part, kernels.default_of(part))
