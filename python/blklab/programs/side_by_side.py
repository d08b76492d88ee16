"""Runs the same work several times in parallel, one thread each, and times every operation."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain


def side_by_side(
    work: Callable[[int, list[int]], None], count: int
) -> tuple[float, tuple[int, ...]]:
    """The total time in seconds, and the nanoseconds of each operation.

    `work` receives its number, from 0, and a list to which it appends the time of each operation.
    After all have ended, the first error is raised.
    """
    took_ns: list[list[int]] = [[] for _ in range(count)]
    start_ns = time.perf_counter_ns()
    with ThreadPoolExecutor(count) as threads:
        ended = threads.map(work, range(count), took_ns)
    seconds = (time.perf_counter_ns() - start_ns) / 1e9
    # Reading the results raises their errors.
    list(ended)
    return seconds, tuple(chain.from_iterable(took_ns))
