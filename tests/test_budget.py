"""A comparison that stops when the answer is known, or when its time is spent."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from blklab.cli import app
from blklab.domain.events import Nowhere
from blklab.domain.experiment import Experiment
from blklab.domain.measurement import Measurement
from blklab.domain.result import Result
from blklab.domain.setup import SetupData
from blklab.errors import InputError
from blklab.execute import Local
from blklab.experiment import budget
from tests import plausible
from tests.test_cli import failing
from tests.test_comparison import Plausible, setup


class Clock:
    """A clock that advances only with runs."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Noisy(Plausible):
    """Every run takes `run_s`, and has the rate that `rate` gives for its scheduler."""

    def __init__(self, clock: Clock, run_s: float, rate: Callable[[str], float]) -> None:
        super().__init__()
        self._clock, self._run_s, self._rate = clock, run_s, rate

    def run(self, experiment: Experiment) -> Result:
        self._clock.now_s += self._run_s
        rate = self._rate(experiment.scheduler.label)
        return plausible.result(
            experiment.seed, mean_ns=1e7 / rate, duration_ns=round(3e9 / rate), syncs=5
        )


def within(
    budget_s: float, rate: Callable[[str], float], run_s: float = 1.0
) -> tuple[tuple[Measurement, ...], dict[str, Any]]:
    """All runs, and the end."""
    clock = Clock()
    repeats = budget.blocks(replace(setup(), host={}))
    rig = Noisy(clock, run_s, rate)
    results = budget.execute_within(
        repeats,
        rig,
        budget_s,
        "throughput",
        Local(1, rig),
        lambda _: None,
        Nowhere(""),
        cast(SetupData, {"rig": "plausible"}),
        clock=clock,
    )
    assert results.anytime and results.setup["rig"] == "plausible"
    stopping = cast(dict[str, Any], results.setup["stopping"])
    assert results.setup["repeats"] == stopping["repeats"]
    return results.runs, stopping


def chance(spread: float) -> Callable[[str], float]:
    """Runs that differ by chance only."""
    draw = random.Random(3)
    return lambda _: float(2.0 ** draw.gauss(0.0, spread))


def test_a_clear_answer_ends_it_early() -> None:
    measured, stopped = within(1e6, lambda scheduler: 2.0 if scheduler == "none" else 1.0)
    assert (stopped["why"], 3 <= stopped["repeats"] <= 6) == ("the answer is known", True)
    # 2 disks x 2 loads x 2 schedulers, each with all repeats, in the order for people.
    assert len(measured) == 8 * stopped["repeats"]
    assert [run.repeat for run in measured[: stopped["repeats"]]] == list(range(stopped["repeats"]))


def test_equal_ones_end_it_when_they_are_known_to_be_equal() -> None:
    _, stopped = within(1e6, chance(0.005))
    assert stopped["why"] == "the answer is known"


def test_the_budget_ends_it_and_leaves_time_for_no_repeat_that_would_not_fit() -> None:
    measured, stopped = within(60.0, chance(0.5))
    # A repeat has 8 runs of 1 s: the eighth repeat would end at 64 s.
    assert (stopped["why"], stopped["repeats"]) == ("the budget is spent", 7)
    assert len(measured) == 8 * 7


def test_one_repeat_there_always_is() -> None:
    assert within(0.5, chance(0.5))[1]["repeats"] == 1


def test_the_order_is_that_of_a_comparison_without_a_budget() -> None:
    blocks = budget.blocks(setup())
    from blklab.domain.comparison import plan

    assert [run.place for block in blocks[:4] for run in block] == [
        run.place for run in plan(setup())
    ]


def test_the_outlook_states_the_detectable_difference_or_that_there_is_none() -> None:
    told = budget.outlook(5, 2, anytime=False)
    assert told == (
        "5 repeats show a difference of 3.6 % if runs of the same differ by 2%, of 19.2 % if runs "
        "of the same differ by 10%"
    )
    assert budget.outlook(1, 2, anytime=False) == "1 repeat shows no difference, however large"
    assert budget.outlook(3, 2, anytime=True) == "3 repeats show no difference, however large"


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90.0), ("90s", 90.0), ("1.5m", 90.0), ("2h", 7200.0)]
)
def test_times_are_as_people_write_them(text: str, seconds: float) -> None:
    assert budget.seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "0", "-3m", "ten", "nan", "inf", "5x"])
def test_a_budget_that_is_no_time_is_one_line(text: str) -> None:
    with pytest.raises(
        InputError, match=r"--budget: expected a time such as 90s, .*, at most 365d, found"
    ):
        budget.seconds(text)


def test_the_command_prints_the_detectable_difference_and_the_reason_of_its_end(fake: Path) -> None:
    words = ["compare", "--budget", "30s", "--workload", "randread", "--disk", "950pro-256gb"]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert "repeated until the answer is known, for 30 s at most\n" in done.stderr
    assert "10 repeats show a difference of 5.2 % if" in done.stderr
    assert "Stopped: " in done.stdout and "the budget was 30 s." in done.stdout
    page = Path("reports/compare/report.html").read_text()
    assert "a confidence sequence" in page
    kept = json.loads(Path("reports/compare/results.json").read_text())
    assert kept["setup"]["stopping"]["repeats"] == kept["setup"]["repeats"]
    runs = kept["setup"]["repeats"] * 4
    shown = CliRunner().invoke(app, ["results", "show", "1"], catch_exceptions=False).stdout
    assert f"1: complete, {runs} of {runs} runs" in shown
    # It cannot be resumed: the number of repeats is not known.
    refused = CliRunner().invoke(app, ["compare", "--resume", "1"])
    assert "comparison 1 cannot be resumed: it had a budget of 30s" in str(refused.exception)
    again = CliRunner().invoke(app, ["report", "reports/compare"], catch_exceptions=False)
    assert again.exit_code == 0
    assert "a confidence sequence" in Path("reports/compare/report.html").read_text()


def test_a_number_of_repeats_and_a_budget_contradict_each_other(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, text = failing(capfd, monkeypatch, "compare", "--budget", "30s", "--repeats", "3")
    assert code == 2
    assert text == "blklab: --repeats: not with --budget, which decides the number of repeats\n"
