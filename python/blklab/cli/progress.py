"""How far it is and how long it will take: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_LINE_EVERY_S = 5.0


@contextmanager
def progress(total: int, what: str) -> Iterator[Callable[[Any], None]]:
    """Yields what is to be called after each of `total` runs. Writes to stderr only."""
    if sys.stderr.isatty():
        with _bar(total, what) as tick:
            yield tick
    else:
        print(f"{total} runs: {what}", file=sys.stderr)
        yield _lines(total)


@contextmanager
def _bar(total: int, what: str) -> Iterator[Callable[[Any], None]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    from blklab.cli.console import console

    columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(), Remaining())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda _: bar.advance(task)


def _lines(total: int) -> Callable[[Any], None]:
    start_s = last_s = time.monotonic()
    done = 0

    def tick(_: Any) -> None:
        nonlocal done, last_s
        done += 1
        now_s = time.monotonic()
        if now_s - last_s >= _LINE_EVERY_S and done < total:
            last_s = now_s
            left_s = (now_s - start_s) / done * (total - done)
            print(f"{done}/{total} runs, about {left_s:.0f} s left", file=sys.stderr)

    return tick
