"""Parallel runs: their order, their failures, and leftovers."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

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

    def done(found: Sequence[int]) -> None:
        told.extend(found)
        if 20 in found:
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
    pool.run_all(lambda _: pool.side_by_side(), range(tasks), threads, found.extend, pytest.fail)
    assert found == [expected] * tasks
    assert pool.side_by_side() == 1


def test_nothing_to_do_is_done() -> None:
    told: list[object] = []
    pool.run_all(pytest.fail, [], 2, told.append, pytest.fail)
    assert told == []


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


_IN_THE_POOL = """
import signal, threading
from blklab.base import pool

class Interrupted(pool.SimpleQueue):
    def get(self, timeout):
        signal.raise_signal(signal.SIGINT)
        return super().get(timeout=timeout)

pool.SimpleQueue = Interrupted
cancelled = threading.Event()
try:
    pool.run_all(lambda _: cancelled.wait(), [0, 1], 2, print, cancelled.set)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_while_the_pool_waits_ends_its_tasks() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _IN_THE_POOL],
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.stdout, done.returncode) == ("interrupted\n", 0), done.stderr


def test_results_that_have_come_meanwhile_are_told_together_and_in_order() -> None:
    last_began = threading.Event()
    told: list[list[int]] = []

    def one(task: int) -> int:
        if task == 3:
            last_began.set()
        return task

    def done(found: Sequence[int]) -> None:
        if not told:
            # With one thread, results up to that of task 2 are there when task 3 begins.
            assert last_began.wait(10)
        told.append(list(found))

    pool.run_all(one, [1, 2, 3], 1, done, pytest.fail)
    assert [number for some in told for number in some] == [1, 2, 3]
    assert len(told) < 3


def test_results_before_a_failure_are_told() -> None:
    bad_began = threading.Event()
    told: list[int] = []

    def one(task: int) -> int:
        if task == 2:
            bad_began.set()
            raise ValueError("bad")
        return task

    def done(found: Sequence[int]) -> None:
        assert bad_began.wait(10)
        told.extend(found)

    with pytest.raises(ValueError, match="bad"):
        pool.run_all(one, [0, 1, 2, 3, 4], 1, done, lambda: None)
    assert told == [0, 1]


def test_no_more_tasks_are_taken_than_can_begin_soon() -> None:
    taken: list[int] = []
    told: list[int] = []

    class Tasks(Sequence[int]):
        def __len__(self) -> int:
            return 1000

        def __getitem__(self, place: Any) -> Any:
            if place >= len(self):
                raise IndexError
            taken.append(place)
            return place

    def done(found: Sequence[int]) -> None:
        assert len(taken) <= len(told) + 2 * 8
        told.extend(found)

    pool.run_all(lambda task: task, Tasks(), 2, done, pytest.fail)
    assert sorted(told) == taken == list(range(1000))
