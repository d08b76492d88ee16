"""Run a plan, or what is left of it, on all cores; a `Keeper` is told the end of each run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from blklab.base import pool
from blklab.domain.comparison import Planned
from blklab.domain.events import Finished, Keeper
from blklab.domain.measurement import Measurement, measure
from blklab.errors import BlklabError, RunError
from blklab.rigs import Rig


def execute(
    runs: Sequence[Planned], rig: Rig, threads: int, done: Callable[[Finished], None]
) -> list[Measurement]:
    """Run everything, which `rig` is prepared for; `done` is called after each, in this thread.

    Sorted by the plan's `place`, whatever the order in which they ran and ended.
    BlklabError if a run fails, KeyboardInterrupt if the user says so.
    """
    threads = min(threads, rig.at_once)
    found = pool.run_all(lambda planned: _one(planned, rig), runs, threads, done, rig.cancel)
    by_place = sorted(zip(runs, found, strict=True), key=lambda pair: pair[0].place)
    return [finished.measurement for _, finished in by_place]


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


def _one(planned: Planned, rig: Rig) -> Finished:
    begun_at = datetime.now(UTC)
    try:
        result = rig.run(planned.experiment)
        return Finished(
            planned,
            measure(planned, result),
            begun_at,
            datetime.now(UTC),
            result.raw,
            result.device_before,
            result.device_after,
        )
    except (BlklabError, KeyboardInterrupt):
        raise
    except MemoryError as error:
        raise RunError(f"{_what(planned)}: out of memory; try fewer --jobs") from error
    except Exception as error:
        raise RunError(f"{_what(planned)}: {error or type(error).__name__}") from error


def _what(planned: Planned) -> str:
    return f"{planned.workload.name} on {planned.disk.label} under {planned.scheduler}"
