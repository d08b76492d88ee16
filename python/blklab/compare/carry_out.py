"""Run a plan, or what is left of it, and keep every run as soon as it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from blklab.compare.execute import execute
from blklab.domain.comparison import Planned
from blklab.domain.events import Finished, Keeper
from blklab.domain.measurement import Measurement
from blklab.rigs import Rig


def carry_out(
    runs: Sequence[Planned], rig: Rig, threads: int, done: Callable[[Any], None], keeper: Keeper
) -> list[Measurement]:
    """As `execute`, without the runs that `keeper` has kept before; with their figures."""
    number = {id(planned): index for index, planned in enumerate(runs)}

    def ended(finished: Finished) -> None:
        keeper.keep(number[id(finished.planned)], finished)
        done(finished)

    left = [planned for planned in runs if number[id(planned)] not in keeper.kept]
    measured = execute(left, rig, threads, ended)
    by_place = dict(zip(sorted(planned.place for planned in left), measured, strict=True))
    by_place |= {runs[index].place: kept for index, kept in keeper.kept.items()}
    return [by_place[place] for place in sorted(by_place)]
