"""Parallel runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, local
from typing import TypeVar

from blklab.base import signals

# The polling interval of the waiting thread, so that Ctrl-C takes effect quickly.
_LOOK_UP_S = 0.2
_AHEAD = 8
"""Tasks for each thread that are queued or run: what runs ends without waiting for this thread."""

Task = TypeVar("Task")
Found = TypeVar("Found")


_HERE = local()


class _NotBegunError(Exception):
    """Another task failed before."""


def run_all(
    one: Callable[[Task], Found],
    tasks: Sequence[Task],
    threads: int,
    done: Callable[[Sequence[Found]], None],
    cancel: Callable[[], None],
) -> None:
    """Run `one` with each task, in the order of `tasks`.

    `done` is called in this thread with the results that have come meanwhile, at least one; no
    other reference is kept. Threads are enough: a rig does not hold the interpreter's lock while
    it runs. If a task fails or the user interrupts, the error is raised after `cancel`, which must
    make the running tasks end soon. After a failure no further task starts, and nothing runs when
    this returns.
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

    arrived: SimpleQueue[Future[Found]] = SimpleQueue()
    left = iter(tasks)
    running = 0
    try:
        with signals.postponed() as take_effect:
            while True:
                while running < threads * _AHEAD:
                    try:
                        task = next(left)
                    except StopIteration:
                        break
                    pool.submit(unless_failed, task).add_done_callback(arrived.put)
                    running += 1
                if not running:
                    break
                ended = _all(arrived)
                running -= len(ended)
                _tell(ended, done)
                take_effect()
    except BaseException:
        # In this order: a cancelled task makes room for another task.
        pool.shutdown(wait=False, cancel_futures=True)
        cancel()
        raise
    finally:
        pool.shutdown(wait=True)


def _all(arrived: SimpleQueue[Future[Found]]) -> list[Future[Found]]:
    """All that have ended; waits a moment for the first."""
    found: list[Future[Found]] = []
    with suppress(Empty):
        found.append(arrived.get(timeout=_LOOK_UP_S))
        while True:
            found.append(arrived.get_nowait())
    return found


def _tell(ended: Sequence[Future[Found]], done: Callable[[Sequence[Found]], None]) -> None:
    """Tasks that succeeded beside a failed one are done too; then the failure is raised."""
    found = [future.result() for future in ended if future.exception() is None]
    if found:
        done(found)
    errors = [error for future in ended if (error := future.exception()) is not None]
    for error in errors:
        # The failed task may end a moment later.
        if not isinstance(error, _NotBegunError):
            raise error


def side_by_side() -> int:
    """The number of tasks that may run in parallel, this thread's included."""
    return getattr(_HERE, "threads", 1)
