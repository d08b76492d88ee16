"""Progress and remaining time: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from blklab.base.steps import Steps
from blklab.cli.console import console

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress, TaskID

    from blklab import Rig

_LINE_EVERY_S = 5.0
_STEP_LINE_EVERY_S = 10.0
_SHORT_S = 1.0
"""Shorter work shows no progress."""


@contextmanager
def progress(total: int | None, what: str) -> Iterator[Callable[[Any], None]]:
    """Yields a function to call after each of `total` runs (None: unknown number). Writes to stderr
    only."""
    if sys.stderr.isatty():
        with _bar(total, what) as tick:
            yield tick
    else:
        print(f"{total} runs: {what}" if total else what, file=sys.stderr)
        yield _lines(total)


@contextmanager
def watching(rig: Rig) -> Iterator[None]:
    """Shows the progress of a single run on a terminal, and clears it at the end."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.live import Live

    start_s = time.monotonic()
    shown = Live(
        get_renderable=lambda: _position(rig, time.monotonic() - start_s),
        console=console(stderr=True),
        transient=True,
        refresh_per_second=4,
    )
    with shown:
        yield


def _position(rig: Rig, took_s: float) -> RenderableType:
    """One line; nothing while the run is young."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    now_s, end_s = rig.position()
    clock = "" if rig.name == "live" else " of virtual time"
    if took_s < _SHORT_S:
        return ""
    if now_s == 0:
        return f"running for {took_s:.0f} s"
    if end_s is None:
        return f"{now_s:.1f} s{clock}"
    left_s = took_s / now_s * max(end_s - now_s, 0)
    line = Table.grid(padding=(0, 1))
    line.add_row(
        ProgressBar(end_s, min(now_s, end_s), width=20),
        f"{now_s:.1f} of {end_s:.1f} s{clock}, about {left_s:.0f} s left",
    )
    return line


@contextmanager
def _bar(total: int | None, what: str) -> Iterator[Callable[[Any], None]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(20),
        MofNCompleteColumn(),
        Remaining(),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda _: bar.advance(task)


def _lines(total: int | None) -> Callable[[Any], None]:
    start_s = last_s = time.monotonic()
    done = 0

    def tick(_: Any) -> None:
        nonlocal done, last_s
        done += 1
        now_s = time.monotonic()
        if now_s - last_s >= _LINE_EVERY_S and done != total:
            last_s = now_s
            if total is None:
                print(f"{done} runs in {now_s - start_s:.0f} s", file=sys.stderr)
                return
            left_s = (now_s - start_s) / done * (total - done)
            print(f"{done}/{total} runs, about {left_s:.0f} s left", file=sys.stderr)

    return tick


@contextmanager
def building() -> Iterator[Steps]:
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
    """The current step and its speed."""

    def begin(self, what: str, total: int | None = None, unit: str = "") -> None:
        self.what, self.total, self.unit = what, total, unit
        self.start_s = time.monotonic()
        self.first: int | None = None

    def left_text(self, done: int) -> str:
        """``312 of about 990 files, about 95 s left``; without a time if there is no basis for
        one."""
        if self.first is None:
            # Work done before this step began is no measure of its speed.
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
        if time.monotonic() - self.last_s >= _STEP_LINE_EVERY_S:
            self.last_s = time.monotonic()
            self.note(f"{self.what}: {self.left_text(done)}")

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)
