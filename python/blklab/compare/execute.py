"""Run a plan on all cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from blklab.compare.measurement import Measurement, measure
from blklab.compare.plan import Planned
from blklab.errors import BlklabError, RunError
from blklab.rigs import Rig

# How often the waiting thread looks up, so that Ctrl-C is noticed at once.
_LOOK_UP_S = 0.2


def execute(
    runs: Sequence[Planned], rig: Rig, threads: int, done: Callable[[Measurement], None]
) -> list[Measurement]:
    """Run everything; `done` is called after each, in this thread.

    Sorted by the plan's `place`, whatever the order in which they ran and ended.

    Threads are enough: a rig does not hold the interpreter's lock while it runs.
    BlklabError if a run fails, KeyboardInterrupt if the user says so; either way nothing
    runs any more when this returns.
    """
    pool = ThreadPoolExecutor(threads, thread_name_prefix="blklab")
    by_place = sorted(runs, key=lambda planned: planned.place)
    try:
        submitted = {planned.place: pool.submit(_one, planned, rig) for planned in runs}
        futures = [submitted[planned.place] for planned in by_place]
        waiting: set[Future[Measurement]] = set(futures)
        while waiting:
            ended, waiting = wait(waiting, _LOOK_UP_S, FIRST_COMPLETED)
            for future in ended:
                done(future.result())
        return [future.result() for future in futures]
    except BaseException:
        rig.cancel()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _one(planned: Planned, rig: Rig) -> Measurement:
    try:
        return measure(planned, rig.run(planned.experiment))
    except (BlklabError, KeyboardInterrupt):
        raise
    except MemoryError as error:
        raise RunError(f"{_what(planned)}: out of memory; try fewer --jobs") from error
    except Exception as error:
        raise RunError(f"{_what(planned)}: {error or type(error).__name__}") from error


def _what(planned: Planned) -> str:
    return f"{planned.workload.name} on {planned.disk.label} under {planned.scheduler}"
