"""Few samples decide nothing: no percentile of too few samples, no rate finer than an I/O."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blklab.experiment.samples import needed, resolution, too_few


@pytest.mark.parametrize(
    ("percent", "least"),
    # Hahn, Meeker and Escobar, "Statistical Intervals", 2017: the smallest n at 95 %.
    [(50.0, 6), (90.0, 29), (95.0, 59), (99.0, 299), (99.9, 2995), (1.0, 299)],
)
def test_a_percentile_needs_as_many_samples_as_the_tables_say(percent: float, least: int) -> None:
    assert needed(percent) == least


@given(st.floats(0.01, 99.99), st.floats(0.5, 0.999))
def test_fewer_would_have_no_interval(percent: float, level: float) -> None:
    q, count = percent / 100, needed(percent, level)
    assert 1 - q**count - (1 - q) ** count >= level
    assert count == 1 or 1 - q ** (count - 1) - (1 - q) ** (count - 1) < level


@pytest.mark.parametrize("wrong", [0.0, 100.0, -1.0])
def test_the_least_and_the_largest_are_no_percentiles(wrong: float) -> None:
    with pytest.raises(ValueError, match="not a percentile"):
        needed(wrong)


@pytest.mark.parametrize("percent", [50.0, 99.0])
def test_the_range_of_that_many_holds_the_true_percentile_as_often_as_it_should(
    percent: float,
) -> None:
    random, trials = np.random.default_rng(9), 2000
    true = -np.log(1 - percent / 100)

    def share(count: int) -> float:
        drawn = random.exponential(1.0, (trials, count))
        return float(np.mean((drawn.min(axis=1) <= true) & (true <= drawn.max(axis=1))))

    # Three standard errors of 2000 trials at 95 % are 1.5 %.
    assert share(needed(percent)) >= 0.95 - 0.015
    assert share(needed(percent) // 2) < 0.95 - 0.015


def test_it_is_said_how_many_there_are_and_how_many_are_needed() -> None:
    assert too_few(99.0, 8, "reads") == (
        "p99 of reads not ranked: 8 reads per run, at least 299 are needed; use a longer runtime"
    )
    assert "1 fsync per run" in too_few(99.9, 1, "fsyncs")
    assert too_few(99.0, 298, "reads") and not too_few(99.0, 299, "reads")
    assert resolution(8) == 1.125
