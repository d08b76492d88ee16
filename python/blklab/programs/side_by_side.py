"""The same work several times at once, a thread each, every operation timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain


def side_by_side(
    work: Callable[[int, list[int]], None], count: int
) -> tuple[float, tuple[int, ...]]:
    """Seconds that all took, and the nanoseconds of each operation.

    `work` gets its number, from 0 on, and a list to which it adds what each of its operations took.
    What the first of them raises is raised, when all have ended.
    """
    took_ns: list[list[int]] = [[] for _ in range(count)]
    start_ns = time.perf_counter_ns()
    with ThreadPoolExecutor(count) as threads:
        ended = threads.map(work, range(count), took_ns)
    seconds = (time.perf_counter_ns() - start_ns) / 1e9
    # Asking for what they gave raises what they raised.
    list(ended)
    return seconds, tuple(chain.from_iterable(took_ns))
