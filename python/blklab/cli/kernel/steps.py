"""How far a build is: a line that changes on a terminal, lines now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from blklab.cli.console import console
from blklab.rigs.kernel.steps import Steps

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_LINE_EVERY_S = 10.0


@contextmanager
def shown() -> Iterator[Steps]:
    """Steps that are printed on stderr."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        *(SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(20)),
        *(TextColumn("{task.fields[left]}", markup=False), TimeElapsedColumn()),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        yield _Bar(bar)


class _Counted(Steps):
    """Knows what the step is and how fast it goes."""

    def begin(self, what: str, total: int | None = None, unit: str = "") -> None:
        self.what, self.total, self.unit = what, total, unit
        self.start_s = time.monotonic()
        self.first: int | None = None

    def left_text(self, done: int) -> str:
        """``312 of about 990 files, about 95 s left``; no guess where there is no ground."""
        if self.first is None:
            # What was done before this step began says nothing of its speed.
            self.first = done
        if self.unit == "bytes":
            text = f"{done / 1e6:.0f} of {(self.total or 0) / 1e6:.0f} MB"
        elif self.total is None:
            return f"{done} {self.unit}"
        else:
            text = f"{done} of about {max(done, self.total)} {self.unit}"
        if self.total is None or done <= self.first or done >= self.total:
            return text
        took_s = time.monotonic() - self.start_s
        return f"{text}, about {took_s / (done - self.first) * (self.total - done):.0f} s left"


class _Bar(_Counted):
    def __init__(self, bar: Progress) -> None:
        self.bar = bar
        self.task: TaskID | None = None

    def begin(self, what: str, total: int | None = None, unit: str = "") -> None:
        super().begin(what, total, unit)
        if self.task is not None:
            self.bar.remove_task(self.task)
        self.task = self.bar.add_task(what, total=total, left="")

    def reached(self, done: int) -> None:
        if self.task is not None:
            self.bar.update(self.task, completed=done, left=self.left_text(done))

    def note(self, text: str) -> None:
        self.bar.console.print(text)


class _Lines(_Counted):
    last_s = 0.0

    def begin(self, what: str, total: int | None = None, unit: str = "") -> None:
        super().begin(what, total, unit)
        self.last_s = self.start_s
        self.note(what)

    def reached(self, done: int) -> None:
        if self.first is None:
            self.first = done
        if time.monotonic() - self.last_s >= _LINE_EVERY_S:
            self.last_s = time.monotonic()
            self.note(f"{self.what}: {self.left_text(done)}")

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)
