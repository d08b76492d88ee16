"""Ctrl-C, SIGTERM and SIGHUP end the work in order, and not in the middle of undoing it."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """Raises KeyboardInterrupt for Ctrl-C and SystemExit (128 + number) for the others."""

    def __init__(self) -> None:
        self._deferring = False
        self._pending: int | None = None

    def _arrived(self, number: int, _frame: FrameType | None) -> None:
        if self._deferring:
            self._pending = number
        else:
            _end(number)

    def hold(self) -> None:
        """From now on a signal takes effect only behind `release`."""
        self._deferring = True

    def release(self) -> None:
        """What came meanwhile takes effect now."""
        self._deferring = False
        if self._pending is not None:
            number, self._pending = self._pending, None
            _end(number)

    @contextlib.contextmanager
    def undoing(self, undo: Callable[[], None]) -> Iterator[None]:
        """`undo` runs whole at the end of the ``with``, however it ends."""
        try:
            yield
        finally:
            # A signal may come in the middle of one call. Then it does not come in the other.
            try:
                self.hold()
            finally:
                self.hold()
                try:
                    undo()
                finally:
                    self.release()

    @staticmethod
    @contextlib.contextmanager
    def guarding() -> Iterator[Signals]:
        """Signals come here while inside. In another thread than the main one they do not: Python
        gives them to the main thread only."""
        signals = Signals()
        if threading.current_thread() is not threading.main_thread():
            yield signals
            return
        before = {}
        for number in _ENDING:
            # What is ignored, as SIGHUP under nohup, stays so.
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, signals._arrived)
        try:
            yield signals
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _end(number: int) -> None:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)
