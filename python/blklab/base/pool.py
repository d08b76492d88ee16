"""Parallel runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from threading import Event, local
from typing import TypeVar

from blklab.base import signals

# The polling interval of the waiting thread, so that Ctrl-C takes effect quickly.
_LOOK_UP_S = 0.2

Task = TypeVar("Task")
Found = TypeVar("Found")


_HERE = local()


class _NotBegunError(Exception):
    """Another task failed before."""


def run_all(
    one: Callable[[Task], Found],
    tasks: Sequence[Task],
    threads: int,
    done: Callable[[Found], None],
    cancel: Callable[[], None],
) -> None:
    """Run `one` with each task, in the order of `tasks`.

    `done` is called with each result, in this thread, when its task ends; no other reference is
    kept. Threads are enough: a rig does not hold the interpreter's lock while it runs. If a task
    fails or the user interrupts, the error is raised after `cancel`, which must make the running
    tasks end soon. After a failure no further task starts, and nothing runs when this returns.
    """
    threads = max(1, min(threads, len(tasks)))
    pool = ThreadPoolExecutor(
        threads,
        thread_name_prefix="blklab",
        initializer=lambda: setattr(_HERE, "threads", threads),
    )
    failed = Event()

    def unless_failed(task: Task) -> Found:
        if failed.is_set():
            raise _NotBegunError
        try:
            return one(task)
        except BaseException:
            failed.set()
            raise

    try:
        with signals.postponed() as take_effect:
            place = {pool.submit(unless_failed, task): number for number, task in enumerate(tasks)}
            waiting: set[Future[Found]] = set(place)
            while waiting:
                ended, waiting = wait(waiting, _LOOK_UP_S, FIRST_COMPLETED)
                # Tasks that succeeded beside a failed one are done too.
                order = sorted(ended, key=lambda one: (one.exception() is not None, place[one]))
                for future in order:
                    # The failed task may end a moment later.
                    if not isinstance(future.exception(), _NotBegunError):
                        done(future.result())
                    del place[future]
                take_effect()
    except BaseException:
        # In this order: a cancelled task makes room for another task.
        pool.shutdown(wait=False, cancel_futures=True)
        cancel()
        raise
    finally:
        pool.shutdown(wait=True)


def side_by_side() -> int:
    """The number of tasks that may run in parallel, this thread's included."""
    return getattr(_HERE, "threads", 1)
