"""Benchmarks fail if and only if something became slower."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import against
import figures
import instructions

DATA = Path(__file__).parents[1] / "docs/data"


def figure(values: tuple[float, ...], goal: float | None, *, more: bool = True) -> figures.Figure:
    return figures.Figure("a rate", "I/O/s", goal, more, values)


@pytest.mark.parametrize(
    ("values", "goal", "more", "code"),
    [
        ((5.1, 5.2, 9.0), 5.0, True, 0),
        ((4.6, 4.6, 4.6), 5.0, True, 0),
        ((4.4, 4.4, 9.0), 5.0, True, 1),
        ((109.0,), 100.0, False, 0),
        ((111.0,), 100.0, False, 1),
        ((0.0,), None, True, 0),
    ],
)
def test_a_goal_that_is_missed_by_more_than_the_slack_is_an_error(
    values: tuple[float, ...],
    goal: float | None,
    more: bool,
    code: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = figure(values, goal, more=more)
    assert figures.exit_code([figure((1.0,), None), found]) == code
    assert capsys.readouterr().err.count("lost: ") == code


def ratio(*values: float, least: float = 1 - against.LOSS, limit: float = 1.0) -> against.Ratio:
    return against.Ratio("bfq", values, least, limit)


@pytest.mark.parametrize(
    ("found", "lost"),
    [
        (ratio(1.0, 0.99, 1.01, 1.0, 0.98, 1.0, 1.02, 1.0, 1.0), False),
        # Slower, but by less than what counts.
        (ratio(*[0.98] * 9), False),
        (ratio(*[0.95] * 9), True),
        # It may as well be faster: not sure.
        (ratio(0.7, 0.9, 0.95, 0.95, 0.95, 1.01, 1.1, 1.1, 1.2), False),
        (ratio(*[0.4] * 9, least=0.5, limit=0.5), True),
    ],
)
def test_a_ratio_that_is_surely_too_small_has_lost(
    found: against.Ratio, lost: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert against.verdict([ratio(1.0), found]) == lost
    assert ("LOST" in capsys.readouterr().out) == lost


@pytest.mark.parametrize(("here", "lost"), [(1029.0, False), (1031.0, True), (500.0, False)])
def test_an_io_that_takes_too_many_instructions_more_has_lost(
    here: float, lost: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    cost = instructions.Cost(("bfq", instructions.FAST), 1000.0, here)
    assert instructions.verdict([cost]) == lost
    assert ("LOST" in capsys.readouterr().out) == lost


def test_every_scheduler_is_counted_on_a_fast_and_a_slow_disk_and_through_a_page_cache() -> None:
    assert ("cfq", instructions.SLOW) in instructions.cases()
    assert instructions.cases("kyber") == [
        ("kyber", instructions.FAST),
        ("kyber", instructions.SLOW),
        ("kyber", instructions.CACHED),
    ]
    assert not instructions.cases("nfq")
    assert {name for name, _ in instructions.cases(known=["none", "bfq"])} == {"none", "bfq"}
    here = Path(__file__).parents[1] / "python"
    assert instructions.cases(known=instructions.known_in(here)) == instructions.cases()


@pytest.mark.skipif(not shutil.which("valgrind"), reason=instructions.NO_VALGRIND)
def test_instructions_of_an_io_are_the_same_at_each_count_and_more_with_a_scheduler() -> None:
    several = [(name, instructions.FAST) for name in ("none", "bfq", "none")]
    tree = Path(__file__).parents[1] / "python"
    none, bfq, again = instructions.counted(tree, several, (400, 1200))
    assert 1000 < none < bfq < 100_000
    assert again == pytest.approx(none, rel=0.01)


def test_no_verdict_is_kept_with_figures(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    figures.keep(file, 3, {}, [figure((4.0,), 5.0)], {})
    [row] = json.loads(file.read_text())["figures"]
    assert set(row) == {"what", "unit", "goal", "more_is_better", "values", "median"}
    for name in ("bench", "processes", "kernel-rig", "live-rig"):
        assert '"met"' not in (DATA / f"{name}.json").read_text()
