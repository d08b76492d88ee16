"""Any signal that would end the process ends its work in order, and never in the middle of an undo.

Not caught are SIGKILL, which cannot be caught, and the signals of a fault in the program's own
memory (SIGSEGV, SIGBUS, SIGFPE, SIGILL), after which Python cannot continue: the next start undoes
their leftovers. Ctrl-Z has no effect meanwhile: a stopped process would keep its changes for as
long as it is stopped, while the measured programs continue.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

_ASKED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals with which users and the system end a process."""
_FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}
_STOPPING = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
_IGNORED_BY_DEFAULT = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH}
ENDING = frozenset(
    signal.valid_signals() - _FAULTS - _STOPPING - _IGNORED_BY_DEFAULT - {signal.SIGKILL}
)
"""All signals that end a process by default and can be caught."""


class Signals:
    """Raises KeyboardInterrupt for Ctrl-C and SystemExit (128 + number) for the others: only once,
    because a second one would interrupt the ending itself."""

    def __init__(self) -> None:
        self._deferring = False
        self._pending: int | None = None
        self.ended = False
        """Whether one has been raised."""

    def _arrived(self, number: int, _frame: FrameType | None) -> None:
        if self._deferring:
            self._pending = number
        else:
            self._end(number)

    def _end(self, number: int) -> None:
        if self.ended:
            return
        self.ended = True
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)

    def hold(self) -> None:
        """From now on a signal takes effect only after `release`."""
        self._deferring = True

    def release(self) -> None:
        """Signals received meanwhile take effect now."""
        self._deferring = False
        if self._pending is not None:
            number, self._pending = self._pending, None
            self._end(number)

    @contextlib.contextmanager
    def undoing(self, undo: Callable[[], None]) -> Iterator[None]:
        """`undo` runs whole at the end of the ``with``, however it ends."""
        try:
            yield
        finally:
            # A signal may arrive in the middle of one call; then none arrives in the other.
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
        """Handles signals while inside.

        Only in the main thread, because Python delivers signals only there. Ignored signals, such
        as SIGHUP under nohup, stay ignored; rare signals with a handler keep it. An end that
        arrives as the cause of another error leaves as itself.
        """
        signals = Signals()
        if threading.current_thread() is not threading.main_thread():
            yield signals
            return
        before = {}
        try:
            for number in (*ENDING, signal.SIGTSTP):
                handler = signal.getsignal(number)
                if handler is signal.SIG_DFL or (
                    number in _ASKED and handler not in (signal.SIG_IGN, None)
                ):
                    before[number] = handler
                    ours = _go_on if number == signal.SIGTSTP else signals._arrived
                    signal.signal(number, ours)
            yield signals
        except Exception as error:
            if ending := ending_within(error):
                raise ending from None
            raise
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def ending_within(error: BaseException) -> KeyboardInterrupt | SystemExit | None:
    """The end that caused an error.

    A signal may arrive anywhere, also in the middle of a class that a library defines while it is
    loaded: Python before 3.12 raises RuntimeError for whatever `__set_name__` raises.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, (KeyboardInterrupt, SystemExit)):
            return cause
        cause = cause.__cause__
    return None


@contextlib.contextmanager
def postponed() -> Iterator[Callable[[], None]]:
    """Inside, a signal takes effect only when the given function is called, or at the end.

    Python runs a handler between any two instructions. What it raises is lost inside a destructor
    or a callback of a weak reference, and between two locks that belong together the first one
    stays held for ever. Signals without a handler of Python's are not affected. Does nothing
    outside the main thread, where no handler runs.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    before = {int(number): signal.getsignal(number) for number in ENDING}
    handlers = {number: handler for number, handler in before.items() if callable(handler)}
    arrived: list[int] = []

    def take_effect() -> None:
        while arrived:
            number = arrived.pop(0)
            handlers[number](number, None)

    try:
        for number in handlers:
            signal.signal(number, lambda number, _frame: arrived.append(number))
        yield take_effect
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        take_effect()


def _go_on(_number: int, _frame: FrameType | None) -> None:
    """Not `SIG_IGN`, which the programs that are started would inherit."""
