"""Intervals cover what they claim; a winner is named when there is one, and rarely otherwise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blklab.experiment import statistics
from blklab.experiment.statistics import Interval, Verdict

figures = st.lists(st.floats(1e-3, 1e9), min_size=2, max_size=30)


def test_student_quantiles_are_those_of_the_tables() -> None:
    # Abramowitz and Stegun, table 26.10.
    tables = {(0.975, 1): 12.706, (0.975, 4): 2.776, (0.975, 5): 2.571, (0.995, 4): 4.604}
    for (probability, degrees), expected in tables.items():
        found = statistics.student_quantile(probability, degrees)
        assert found == pytest.approx(expected, abs=6e-4)
    assert statistics.student_quantile(0.5, 7) == pytest.approx(0.0, abs=1e-9)


def _coverage(pairs: int, level: float, tail: str) -> float:
    """Share of intervals that hold the true ratio 1.1."""
    random = np.random.default_rng(2024)
    hits, trials = 0, 500
    for _ in range(trials):
        common = random.normal(0.0, 0.3, pairs)
        if tail == "normal":
            noise = random.normal(0.0, 0.05, pairs)
        else:
            noise = random.laplace(0.0, 0.05, pairs)
        other = np.exp(common)
        interval = statistics.ratio((other * 1.1 * np.exp(noise)).tolist(), other.tolist(), level)
        hits += interval.low <= 1.1 <= interval.high
    return hits / trials


@pytest.mark.parametrize("pairs", [3, 5, 12, 40])
@pytest.mark.parametrize("tail", ["normal", "laplace"])
@pytest.mark.parametrize("level", [0.95, 0.99])
def test_intervals_cover_the_true_ratio_as_often_as_they_claim(
    pairs: int, tail: str, level: float
) -> None:
    # 500 trials: three standard errors at 95 % are 2.9 %.
    assert _coverage(pairs, level, tail) >= level - 0.029


@pytest.mark.parametrize(("ours", "theirs"), [(3, 3), (3, 12), (5, 5), (5, 40), (12, 12), (40, 15)])
@pytest.mark.parametrize("tail", ["normal", "laplace"])
def test_intervals_of_independent_runs_cover_the_true_ratio_as_often_as_they_claim(
    ours: int, theirs: int, tail: str
) -> None:
    """Also where one side is noisier than the other."""
    random = np.random.default_rng(2025)
    draw = random.normal if tail == "normal" else random.laplace
    hits, trials = 0, 500
    for _ in range(trials):
        one, other = np.exp(draw(0.0, 0.05, ours)), np.exp(draw(0.0, 0.2, theirs))
        interval = statistics.independent_ratio((one * 1.1).tolist(), other.tolist())
        assert interval.low <= interval.estimate <= interval.high
        hits += interval.low <= 1.1 <= interval.high
    assert hits / trials >= 0.95 - 0.029


def test_independent_runs_that_show_nothing_say_so() -> None:
    one = statistics.independent_ratio([2.0], [1.0, 1.1])
    assert (one.low, one.high) == (0.0, math.inf)
    assert one.estimate == pytest.approx(1.907, abs=1e-3)
    same = statistics.independent_ratio([2.0, 2.0], [1.0, 1.0])
    assert [same.low, same.high] == pytest.approx([2.0, 2.0])
    for wrong in ([], [0.0, 1.0], [math.inf, 1.0]):
        with pytest.raises(ValueError, match="positive figures"):
            statistics.independent_ratio(wrong, [1.0, 1.0])


def test_the_interval_of_three_runs_is_that_of_students_t() -> None:
    found = statistics.ratio(np.exp([-1.0, 0.0, 1.0]).tolist(), [1.0, 1.0, 1.0])
    # The standard deviation is 1; of two degrees of freedom the quantile is 4.303.
    assert math.log(found.high) == pytest.approx(4.303 / math.sqrt(3), abs=1e-3)
    assert math.log(found.low) == pytest.approx(-4.303 / math.sqrt(3), abs=1e-3)


def test_independent_runs_of_equal_spread_have_the_degrees_of_both() -> None:
    one, other = (np.exp([middle - 1.0, middle, middle + 1.0]) for middle in (0.5, 0.0))
    found = statistics.independent_ratio(one.tolist(), other.tolist())
    # Two variances of 1, of three runs each: four degrees of freedom, whose quantile is 2.776.
    reach = 2.776 * math.sqrt(1 / 3 + 1 / 3)
    assert math.log(found.low) == pytest.approx(0.5 - reach, abs=1e-3)
    assert math.log(found.high) == pytest.approx(0.5 + reach, abs=1e-3)


def test_a_turned_ratio_has_its_ends_exchanged() -> None:
    gap = Interval(2.0, 1.25, 4.0)
    assert statistics.turned(gap) == Interval(0.5, 0.25, 0.8)
    assert statistics.turned(statistics.turned(gap)) == gap
    assert statistics.turned(Interval(2.0, 0.0, 4.0)) == Interval(0.5, 0.25, math.inf)


def test_a_bootstrap_of_five_runs_cannot_cover_what_three_schedulers_need() -> None:
    level = 1 - 0.05 / 3
    random = np.random.default_rng(7)
    samples = random.normal(0.0, 1.0, (600, 5))
    hits = {"bootstrap": 0, "t": 0}
    for sample in samples:
        for name, method in (("bootstrap", statistics._bootstrap), ("t", statistics._t)):
            _, low, high = method(sample, level)
            hits[name] += low <= 0.0 <= high
    assert hits["bootstrap"] / 600 < level - 0.015
    assert hits["t"] / 600 >= level - 0.019


@pytest.mark.parametrize("candidates", [2, 3, 6])
def test_equal_schedulers_are_told_apart_in_at_most_five_percent(candidates: int) -> None:
    random = np.random.default_rng(11)
    false = 0
    for _ in range(600):
        runs = {str(i): np.exp(random.normal(0.0, 0.1, 5)).tolist() for i in range(candidates)}
        false += len(statistics.decide(runs).leads) < candidates
    assert false / 600 <= 0.05 + 0.027


def test_intervals_of_several_are_as_wide_as_all_their_pairs_together_need() -> None:
    random = np.random.default_rng(3)
    runs = {name: np.exp(random.normal(0.0, 0.1, 5)).tolist() for name in "abcd"}
    verdict = statistics.decide(runs)
    # Four have six pairs.
    for name, gap in verdict.behind.items():
        assert gap == statistics.ratio(runs[verdict.best], runs[name], 1 - 0.05 / 6)


def test_a_clear_winner_is_named() -> None:
    runs = {"a": [110.0, 111.0, 109.0], "b": [100.0, 101.0, 99.5], "c": [50.0, 51.0, 49.0]}
    verdict = statistics.decide(runs)
    assert verdict.winner == "a"
    assert verdict.behind["b"].estimate == pytest.approx(1.1, abs=0.01)


def test_pairing_by_seed_finds_differences_smaller_than_the_spread_of_seeds() -> None:
    seeds = [100.0, 300.0, 50.0, 800.0, 20.0]
    noise = [1.05, 1.06, 1.055, 1.052, 1.058]
    better = [s * n for s, n in zip(seeds, noise, strict=True)]
    assert statistics.decide({"a": seeds, "b": better}).winner == "b"


def test_bit_identical_runs_are_a_tie() -> None:
    verdict = statistics.decide({"a": [7.0, 8.0, 9.0], "b": [7.0, 8.0, 9.0]})
    assert verdict.winner is None
    assert set(verdict.leads) == {"a", "b"}
    assert verdict.visible == 1.0


def test_a_real_difference_that_is_too_small_names_no_winner() -> None:
    verdict = statistics.decide({"a": [101.0] * 5, "b": [100.0] * 5})
    assert verdict.winner is None
    assert verdict.behind["b"].low > 1.0


def test_two_may_lead_together_before_a_third() -> None:
    verdict = statistics.decide(
        {"a": [100.0, 102.0, 101.0], "b": [101.0, 101.0, 101.0], "c": [50.0, 51.0, 50.0]}
    )
    assert verdict.winner is None
    assert set(verdict.leads) == {"a", "b"}


def test_one_run_shows_nothing() -> None:
    verdict = statistics.decide({"a": [200.0], "b": [100.0]})
    assert verdict.winner is None
    assert math.isinf(verdict.visible)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_figures_that_have_no_ratio_are_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        statistics.ratio([wrong, 1.0], [1.0, 1.0])


@given(figures, st.floats(0.01, 100.0))
def test_the_interval_holds_its_estimate_and_scales_with_the_figures(
    values: list[float], factor: float
) -> None:
    one = statistics.ratio([v * factor for v in values], values)
    assert one.low <= one.estimate * (1 + 1e-9)
    assert one.estimate <= one.high * (1 + 1e-9)
    assert one.estimate == pytest.approx(factor, rel=1e-6)


@given(figures)
def test_the_median_is_within_its_interval_and_five_runs_state_their_coverage(
    values: list[float],
) -> None:
    interval, coverage = statistics.median_interval(values)
    assert interval.low <= interval.estimate <= interval.high
    if len(values) >= 6:
        assert coverage >= 0.95
    if len(values) == 5:
        assert coverage == pytest.approx(0.9375)


@pytest.mark.parametrize(
    ("values", "median", "low", "high", "covered"),
    [
        ([3.0], 3.0, 3.0, 3.0, 0.0),
        ([1.0, 2.0, 4.0, 100.0], 3.0, 1.0, 100.0, 1 - 2 / 16),
        # Of nine, the second and the eighth: 1 + 9 of 512 combinations are on either side.
        ([9.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0, 5.0], 5.0, 2.0, 8.0, 1 - 20 / 512),
    ],
)
def test_a_median_and_its_interval_are_those_of_the_definition(
    values: list[float], median: float, low: float, high: float, covered: float
) -> None:
    assert statistics.median_interval(values) == (Interval(median, low, high), covered)


def test_the_order_interval_covers_the_median_as_often_as_it_says() -> None:
    random = np.random.default_rng(5)
    for count in (5, 9, 20):
        hits = 0
        for _ in range(800):
            interval, coverage = statistics.median_interval(random.exponential(1.0, count).tolist())
            hits += interval.low <= math.log(2) <= interval.high
        assert hits / 800 == pytest.approx(coverage, abs=0.03)


def _misled(candidates: int, repeats: int, *, anytime: bool, noise: str = "normal") -> float:
    """Share of comparisons of equal schedulers in which one that looks after every repeat sees
    some of them behind, sooner or later."""
    random = np.random.default_rng(17)
    trials, misled = 250, 0
    for _ in range(trials):
        draws = getattr(random, noise)(0.0, 0.1, (candidates, repeats))
        runs = np.exp(draws)
        misled += any(
            len(
                statistics.decide(
                    {str(i): run[:count].tolist() for i, run in enumerate(runs)}, anytime=anytime
                ).leads
            )
            < candidates
            for count in range(2, repeats + 1)
        )
    return misled / trials


@pytest.mark.parametrize("noise", ["normal", "laplace", "logistic"])
@pytest.mark.parametrize("candidates", [2, 4])
def test_checks_after_every_repeat_mislead_in_at_most_five_percent(
    candidates: int, noise: str
) -> None:
    # Two standard errors of 250 trials at 5 % are 2.8 %.
    assert _misled(candidates, 40, anytime=True, noise=noise) <= 0.05 + 0.028


def test_with_intervals_for_one_look_he_would_be_misled_far_more_often() -> None:
    assert _misled(2, 11, anytime=False) > 0.11


def test_intervals_that_hold_at_any_time_are_wider_and_agree_with_the_bayes_factor() -> None:
    for count in (5, 10, 30):
        t = statistics.anytime_quantile(count, 0.95)
        assert t > 1.4 * statistics.student_quantile(0.975, count - 1)
        wider = 1 + count * statistics.ANYTIME_SCALE**2
        factor = (1 + t**2 / (count - 1)) / (1 + t**2 / (wider * (count - 1)))
        assert wider**-0.5 * factor ** (count / 2) == pytest.approx(20.0)
    assert math.isinf(statistics.anytime_quantile(1, 0.95))


def test_a_few_runs_that_happen_to_be_alike_prove_nothing_under_peeking() -> None:
    two = {"a": [110.0, 110.0], "b": [100.0, 100.0]}
    assert statistics.decide(two).winner == "a"
    assert statistics.decide(two, anytime=True).winner is None
    many = {name: values * 4 for name, values in two.items()}
    assert statistics.decide(many, anytime=True).winner == "a"


def test_it_is_settled_when_every_one_is_behind_or_as_good() -> None:
    def settled(**runs: list[float]) -> bool:
        return statistics.decide(runs, anytime=True).is_settled

    close = [100.0, 100.1, 99.9, 100.05, 99.95, 100.0, 100.02, 99.98]
    same = list(reversed(close))
    far = [value / 2 for value in close]
    noisy = [100.0, 130.0, 80.0, 140.0, 70.0, 100.0, 95.0, 120.0]
    assert settled(a=close, b=far)
    assert settled(a=close, b=same)
    assert settled(a=close, b=same, c=far)
    assert not settled(a=close, b=noisy)
    assert not settled(a=close[:2], b=far[:2])


@pytest.mark.parametrize(
    ("low", "high", "settled"),
    [(0.99, 1.01, True), (0.99, 1.5, False), (0.5, 1.01, False), (0.5, 1.5, False)],
)
def test_a_tie_is_settled_when_no_relevant_difference_is_possible(
    low: float, high: float, settled: bool
) -> None:
    tie = Verdict("a", ("a", "b"), {"b": Interval(1.0, low, high)}, high)
    assert tie.is_settled == settled


def test_the_detectable_difference_matches_the_intervals_of_such_runs() -> None:
    random = np.random.default_rng(5)
    for anytime in (False, True):
        widths = []
        for _ in range(400):
            one, other = np.exp(random.normal(0.0, 0.05, (2, 8)))
            interval = statistics.ratio(one.tolist(), other.tolist(), anytime=anytime)
            widths.append(math.log(interval.high / interval.estimate))
        expected = math.log(statistics.visible(8, 0.05, 2, anytime=anytime))
        assert np.sqrt(np.mean(np.square(widths))) == pytest.approx(expected, rel=0.06)
    assert math.isinf(statistics.visible(1, 0.05, 2))
    assert statistics.visible(1000, 1e-6, 2) == statistics.MATTERS
