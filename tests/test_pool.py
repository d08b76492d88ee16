"""Parallel runs: their order, their failures, and leftovers."""

from __future__ import annotations

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
