"""Signals end work in order, and other handlers and ignored signals do not change."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading

import pytest

from blklab import start
from blklab.base.signals import ENDING, Signals, postponed
from blklab.cli import rights
from blklab.errors import INTERRUPTED_TEXT


def _ends_a_process(number: int) -> bool:
    """Whether the signal ends a process by default: tried on a sleeping process."""
    with subprocess.Popen(["sleep", "60"]) as sleeping:
        sleeping.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            sleeping.wait(0.2)
        ended = sleeping.poll() is not None
        sleeping.kill()
    return ended


def test_every_signal_that_ends_a_process_is_caught_but_those_of_its_own_faults() -> None:
    faults = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}
    missed = {number for number in signal.valid_signals() - ENDING if _ends_a_process(number)}
    assert missed == faults | {signal.SIGKILL}


def test_handled_and_ignored_signals_stay_so_and_all_handlers_are_restored() -> None:
    def theirs(*_: object) -> None:
        arrived.append(1)

    arrived: list[int] = []
    before = {number: signal.getsignal(number) for number in signal.valid_signals()}
    signal.signal(signal.SIGUSR1, theirs)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals.guarding() as guard:
            os.kill(os.getpid(), signal.SIGUSR1)
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGTSTP)
        assert (arrived, guard.ended) == ([1], False)
        assert signal.getsignal(signal.SIGUSR1) is theirs
    finally:
        signal.signal(signal.SIGUSR1, before[signal.SIGUSR1])
        signal.signal(signal.SIGHUP, before[signal.SIGHUP])
    assert {number: signal.getsignal(number) for number in signal.valid_signals()} == before


class _Loading:
    """Stands for a class of a library; a signal arrives while it is defined."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __set_name__(self, owner: type, name: str) -> None:
        os.kill(os.getpid(), self.number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGRTMIN + 1])
def test_a_signal_in_the_middle_of_loading_a_library_ends_as_at_any_other_moment(
    number: int,
) -> None:
    expected = KeyboardInterrupt if number == signal.SIGINT else SystemExit
    with pytest.raises(expected) as left_by, Signals.guarding():
        type("Library", (), {"entries": _Loading(number)})
    if isinstance(left_by.value, SystemExit):
        assert left_by.value.code == 128 + number


def test_another_error_is_not_taken_for_the_end() -> None:
    with pytest.raises(OSError, match="could not be put back"), Signals.guarding():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except SystemExit:
            raise OSError("could not be put back")  # noqa: B904


def test_ctrl_c_while_the_command_loads_a_library_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def loads() -> None:
        type("Library", (), {"entries": _Loading(signal.SIGINT)})

    monkeypatch.setattr("blklab.cli.main", loads)
    # The command's own process gives up its rights; this one needs them.
    monkeypatch.setattr(rights.Program, "is_blklab", rights.Program.is_blklab)
    with pytest.raises(SystemExit) as left_by:
        start.main()
    assert (left_by.value.code, capsys.readouterr().err) == (130, f"blklab: {INTERRUPTED_TEXT}\n")


def test_a_second_signal_does_not_disturb_the_end_after_the_first(signals: Signals) -> None:
    done = []
    with pytest.raises(SystemExit) as left_by, signals.undoing(lambda: done.append("undone")):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGQUIT)
            done.append("closed")
            os.kill(os.getpid(), signal.SIGINT)
    assert done == ["closed", "undone"]
    assert left_by.value.code == 128 + signal.SIGTERM


def test_postponed_signals_take_effect_when_asked_and_at_the_end(signals: Signals) -> None:
    before = {number: signal.getsignal(number) for number in signal.valid_signals()}
    reached = []
    with pytest.raises(SystemExit) as left_by, postponed() as take_effect:
        os.kill(os.getpid(), signal.SIGTERM)
        reached.append("after the signal")
        take_effect()
        reached.append("never")
    assert (reached, left_by.value.code) == (["after the signal"], 128 + signal.SIGTERM)
    signals.ended = False
    with pytest.raises(KeyboardInterrupt), postponed():
        os.kill(os.getpid(), signal.SIGINT)
        reached.append("to the end")
    assert reached == ["after the signal", "to the end"]
    assert {number: signal.getsignal(number) for number in signal.valid_signals()} == before


def test_a_thread_postpones_nothing_and_changes_no_handler() -> None:
    handler, seen = signal.getsignal(signal.SIGINT), []

    def elsewhere() -> None:
        with postponed() as take_effect:
            seen.append(signal.getsignal(signal.SIGINT))
            take_effect()

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [handler]
