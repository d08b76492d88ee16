"""Parallel runs: their order, their failures, and leftovers."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from blklab.base import pool


def test_each_is_told_as_it_ends() -> None:
    second_ended = threading.Event()

    def one(task: int) -> int:
        if task == 1:
            # Cannot end before the second, which has to run beside it.
            assert second_ended.wait(10)
        return 10 * task

    told: list[int] = []

    def done(found: int) -> None:
        told.append(found)
        if found == 20:
            second_ended.set()

    pool.run_all(one, [1, 2, 3], 2, done, pytest.fail)
    assert sorted(told) == [10, 20, 30] and told[0] != 10


def test_a_failure_ends_what_runs_and_begins_nothing_more() -> None:
    ended, begun = threading.Event(), []

    def one(task: str) -> None:
        begun.append(task)
        if task == "bad":
            raise ValueError("bad")
        # Runs until it is told to end.
        assert ended.wait(10)

    with pytest.raises(ValueError, match="bad"):
        pool.run_all(one, ["long", "bad", *["later"] * 50], 2, lambda _: None, ended.set)
    assert ended.is_set()
    assert "later" not in begun


@pytest.mark.parametrize(("tasks", "threads", "expected"), [(5, 3, 3), (2, 8, 2), (1, 4, 1)])
def test_each_knows_how_many_run_beside_it(tasks: int, threads: int, expected: int) -> None:
    found: list[int] = []
    pool.run_all(lambda _: pool.side_by_side(), range(tasks), threads, found.append, pytest.fail)
    assert found == [expected] * tasks
    assert pool.side_by_side() == 1


def test_nothing_to_do_is_done() -> None:
    pool.run_all(pytest.fail, [], 2, pytest.fail, pytest.fail)


class _Interrupts:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_inside_a_destructor_is_not_lost() -> None:
    cancelled = threading.Event()

    def one(task: int) -> None:
        # The second one runs until the interrupt has taken effect.
        assert task == 0 or cancelled.wait(10)

    with pytest.raises(KeyboardInterrupt):
        pool.run_all(one, [0, 1], 1, lambda _: _drop(_Interrupts()), cancelled.set)
    assert cancelled.is_set()


def _drop(_interrupts: _Interrupts) -> None:
    """The caller's last reference ends with the call."""


_BETWEEN_LOCKS = """
import signal, threading
from concurrent.futures import _base
from blklab.base import pool

class Interrupted(_base._AcquireFutures):
    def __enter__(self):
        self.futures[0]._condition.acquire()
        signal.raise_signal(signal.SIGINT)
        for future in self.futures[1:]:
            future._condition.acquire()

_base._AcquireFutures = Interrupted
cancelled = threading.Event()
try:
    pool.run_all(lambda _: cancelled.wait(), [0, 1], 2, print, cancelled.set)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_between_two_locks_of_the_pool_leaves_none_held() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _BETWEEN_LOCKS],
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    # Tasks that ended by themselves before the cancelling are told, as True.
    assert done.stdout.endswith("interrupted\n"), done.stderr
    assert done.returncode == 0
