"""The test for drift: how often it is wrong, and what it finds, in simulated series."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from blklab.domain.over_time import INTERVALS_LEAST, Floats, OverTime, PileUp, PileUps
from blklab.experiment.drift import Drift, drifts, slopes

SERIES = 1500
"""Series of each simulation: a rate of 5 % comes out within 1.1 points in 95 of 100 simulations."""


def correlated(rho: float, length: int, random: np.random.Generator) -> Floats:
    """`SERIES` series without a trend: each value is `rho` times the one before, and chance; their
    standard deviation is 1."""
    chance = random.standard_normal((length, SERIES)) * math.sqrt(1 - rho**2)
    values = np.empty((length, SERIES))
    values[0] = random.standard_normal(SERIES)
    for row in range(1, length):
        values[row] = rho * values[row - 1] + chance[row]
    return values.T


def percent_found(several: Floats) -> float:
    found = [slopes([series]) for series in several]
    return 100 * float(np.mean([one.low > 0 or one.high < 0 for one in found]))


def mann_kendall_percent(several: Floats) -> float:
    """The share of series in which the plain test finds a trend at 95 %."""
    length = several.shape[1]
    signs = [
        np.sign(several[:, row + 1 :] - several[:, [row]]).sum(axis=1) for row in range(length)
    ]
    score = np.sum(signs, axis=0)
    spread = math.sqrt(length * (length - 1) * (2 * length + 5) / 18)
    size = np.maximum(np.abs(score) - 1, 0) / spread
    return 100 * float(np.mean(size > NormalDist().inv_cdf(0.975)))


@pytest.mark.parametrize("rho", [0.0, 0.4, 0.8])
@pytest.mark.parametrize("length", [INTERVALS_LEAST, 300])
def test_five_in_a_hundred_series_without_a_trend_have_one(rho: float, length: int) -> None:
    several = correlated(rho, length, np.random.default_rng(7))
    assert 3.5 <= percent_found(several) <= 7.5


def test_plain_mann_kendall_finds_trends_in_correlated_series_without_one() -> None:
    random = np.random.default_rng(7)
    assert 3.5 <= mann_kendall_percent(correlated(0.0, 300, random)) <= 6.5
    assert mann_kendall_percent(correlated(0.8, 300, random)) > 40


@pytest.mark.parametrize(("rho", "size"), [(0.0, 1.0), (0.4, 1.5), (0.8, 3.0)])
def test_a_drift_of_the_documented_size_is_found(rho: float, size: float) -> None:
    """`size` in standard deviations of the intervals; docs/comparing.md names them."""
    length = 300
    several = correlated(rho, length, np.random.default_rng(7)) + np.linspace(0, size, length)
    assert percent_found(several) >= 90


def test_several_runs_show_what_one_does_not() -> None:
    length, size = 300, 1.5
    several = correlated(0.8, length, np.random.default_rng(7)) + np.linspace(0, size, length)
    together = [slopes(list(three)) for three in several[: SERIES // 3 * 3].reshape(-1, 3, length)]
    assert percent_found(several) < 60
    assert 100 * np.mean([one.low > 0 for one in together]) > 80


def course(bytes_each: Floats, p99_ns: Floats | None = None, ios: int = 400) -> OverTime:
    count = len(bytes_each)
    column = () if p99_ns is None else tuple(p99_ns.astype(int).tolist())
    return OverTime(
        interval_ns=10 * 10**9,
        intervals=count,
        operation="read",
        bytes=tuple(bytes_each.astype(int).tolist()),
        ios=(ios,) * count,
        mean_ns=(),
        p50_ns=column,
        p99_ns=column,
        p999_ns=column,
        queue_milli=(),
    )


def found(*runs: OverTime) -> dict[str, Drift]:
    return {one.figure: one for one in drifts(runs)}


def test_a_slope_is_in_percent_of_the_mean_for_an_hour() -> None:
    # An hour of 361 intervals, the first of which does not count: from 95 to 105.
    steps = np.concatenate([[0], 95 + 10 * (np.arange(360) + 0.5) / 360]) * 1e6
    noise = np.random.default_rng(3).normal(0, 1e5, 361)
    drift = found(course(steps + noise))["throughput"]
    assert drift.per_hour.estimate == pytest.approx(10, rel=0.01)
    assert drift.over_run.estimate == pytest.approx(10, rel=0.01)
    assert drift.per_hour.low < 10 < drift.per_hour.high
    assert drift.is_shown


def test_intervals_with_a_pile_up_do_not_count_unless_they_are_many() -> None:
    level = np.random.default_rng(3).normal(1e7, 1e5, 200)
    level[150:155] /= 20
    whole = course(level)
    steady = found(whole)["throughput"]
    assert not steady.is_known
    piled_up = PileUp(1500 * 10**9, 50 * 10**9, 90.0, 1e9)
    told = replace(whole, pile_ups=PileUps(10**9, 8.0, 1e6, (piled_up,), 1, 50 * 10**9))
    assert found(told)["throughput"].is_known
    half = replace(piled_up, duration_ns=500 * 10**9)
    many = replace(whole, pile_ups=PileUps(10**9, 8.0, 1e6, (half,), 1, 500 * 10**9))
    assert found(many)["throughput"] == steady


def test_a_change_too_small_to_matter_is_no_drift() -> None:
    steps = np.linspace(99.5, 100.5, 361) * 1e6
    noise = np.random.default_rng(3).normal(0, 1e4, 361)
    drift = found(course(steps + noise))["throughput"]
    assert drift.over_run.low > 0
    assert not drift.is_shown
    assert drift.is_known


def test_percentiles_need_enough_ios_in_nearly_all_intervals() -> None:
    level = np.random.default_rng(3).normal(1e7, 1e5, 200)
    assert set(found(course(level, level, ios=400))) == {"throughput", "p50", "p99"}
    assert set(found(course(level, level, ios=3000))) == {"throughput", "p50", "p99", "p99.9"}
    assert set(found(course(level, level, ios=100))) == {"throughput", "p50"}


def test_a_figure_that_one_run_lacks_has_no_drift() -> None:
    level = np.random.default_rng(3).normal(1e7, 1e5, 200)
    assert set(found(course(level, level), course(level))) == {"throughput"}
    assert drifts([]) == ()
