"""No figures, however far apart or few, make the statistics fail or contradict themselves."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blklab.experiment import statistics
from blklab.experiment.statistics import Interval

positive = st.floats(min_value=5e-324, max_value=sys.float_info.max, allow_nan=False)
counts = st.integers(1, 40)


@pytest.fixture(autouse=True)
def _no_warning_reaches_the_user() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def holds(interval: Interval) -> None:
    """Checks that the interval is ordered and has a positive estimate."""
    assert 0.0 <= interval.low <= interval.estimate <= interval.high
    assert 0.0 < interval.estimate < math.inf
    assert interval.visible >= 1.0


@st.composite
def schedulers(draw: st.DrawFn) -> dict[str, list[float]]:
    """Up to 64 schedulers with equally many runs: any figures, or figures some factor apart."""
    candidates, repeats = draw(st.integers(1, 64)), draw(counts)
    seed = draw(st.integers(0, 2**32 - 1))
    # Hypothesis chooses the shape; a few thousand figures one by one would be too many for it.
    random = np.random.default_rng(seed)
    spread, noise = draw(st.sampled_from([0.0, 1e-12, 0.1, 5.0, 340.0])), draw(positive)
    logs = random.uniform(-1.0, 1.0, (candidates, repeats)) * spread + math.log(noise)
    runs = np.exp(np.clip(logs, -744.0, 709.0)).tolist()
    extremes = draw(st.lists(positive, max_size=5))
    for place, extreme in enumerate(extremes):
        runs[place % candidates][place % repeats] = extreme
    return {str(number): values for number, values in enumerate(runs)}


@given(schedulers(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_decision_comes_of_any_positive_figures(
    runs: dict[str, list[float]], anytime: bool
) -> None:
    verdict = statistics.decide(runs, anytime=anytime)
    assert {verdict.best, *verdict.behind} == runs.keys()
    assert verdict.visible >= 1.0
    assert verdict.is_settled in (True, False)
    for gap in verdict.behind.values():
        holds(gap)


@given(
    st.lists(st.tuples(positive, positive), min_size=1, max_size=40),
    st.floats(0.5, 1 - 1e-9),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_a_ratio_of_any_positive_figures_has_an_ordered_interval(
    pairs: list[tuple[float, float]], level: float, anytime: bool
) -> None:
    ours, theirs = ([pair[side] for pair in pairs] for side in (0, 1))
    holds(statistics.ratio(ours, theirs, level, anytime=anytime))


@given(
    st.lists(positive, min_size=1, max_size=40),
    st.lists(positive, min_size=1, max_size=40),
    st.floats(0.5, 1 - 1e-9),
)
@settings(max_examples=300, deadline=None)
def test_a_ratio_of_independent_runs_has_an_ordered_interval(
    one: list[float], other: list[float], level: float
) -> None:
    holds(statistics.independent_ratio(one, other, level))


def test_many_schedulers_far_apart_are_decided() -> None:
    """With two runs each, Student's quantile for 32 schedulers is in the thousands."""
    random = np.random.default_rng(32)
    many = {str(n): np.exp(random.normal(0.0, 1.0, 2)).tolist() for n in range(32)}
    verdict = statistics.decide(many)
    assert verdict.winner is None
    assert any(math.isinf(gap.high) for gap in verdict.behind.values())
    apart = {str(n): [float(5**n), float(5**n) * 1.3] for n in range(12)}
    assert statistics.decide(apart).best == "11"


def test_the_quantile_is_as_large_as_a_thousand_schedulers_need() -> None:
    # With one degree of freedom, t is Cauchy's distribution: the tangent.
    probability = 1.0 - 0.025 / math.comb(1000, 2)
    expected = math.tan(math.pi * (probability - 0.5))
    assert expected > 1e6
    assert statistics.student_quantile(probability, 1) == pytest.approx(expected, rel=1e-3)


@given(st.floats(0.0, 1e6), st.integers(1, 40), st.integers(1, 64), st.booleans())
def test_the_detectable_difference_is_defined_for_any_spread(
    spread: float, count: int, candidates: int, anytime: bool
) -> None:
    assert statistics.visible(count, spread, candidates, anytime=anytime) >= statistics.MATTERS


@given(st.lists(positive, min_size=1, max_size=40))
def test_spread_and_median_are_defined_for_any_figures(values: list[float]) -> None:
    assert statistics.spread(values) >= 0.0
    interval, coverage = statistics.median_interval(values)
    assert interval.low <= interval.estimate <= interval.high
    assert 0.0 <= coverage <= 1.0


def test_the_median_of_thousands_of_runs_has_its_interval() -> None:
    """Binomial coefficients of so many are larger than a float can be."""
    interval, coverage = statistics.median_interval([float(value) for value in range(3000)])
    assert 0.95 <= coverage < 0.96
    # The normal approximation: 1500 -+ 1.96 sqrt(3000)/2.
    assert interval.low == pytest.approx(1500 - 53.7, abs=2)
    assert interval.high == pytest.approx(1499 + 53.7, abs=2)


def test_figures_that_are_no_pairs_have_no_paired_ratio() -> None:
    with pytest.raises(ValueError, match="need pairs, found 1 and 2"):
        statistics.ratio([1.0], [1.0, 2.0])
