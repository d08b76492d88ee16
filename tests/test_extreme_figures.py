"""Any valid results file can be judged, shown, stored as JSON and drawn."""

from __future__ import annotations

import functools
import json
import math
import re
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from blklab import report
from blklab.base.plain import plain
from blklab.base.units import number_text
from blklab.cli import app, comparison, console
from blklab.domain import results_file
from blklab.domain.comparison import OBJECTIVES
from blklab.domain.job_figures import Service
from blklab.domain.measurement import Measurement
from blklab.domain.ranges import INT_MAX
from blklab.domain.result import Figure
from blklab.errors import InputError
from blklab.experiment.analyse import Analysis, analyse
from blklab.experiment.fairness import fairness
from blklab.experiment.statistics import Interval
from blklab.experiment.summary import summarise
from blklab.report import payload
from blklab.report.parts import digits, script_json
from blklab.study.words import figure
from tests import fake_core, plausible
from tests.test_comparison import described, measured
from tests.test_study_run import judged

RATE_MAX = 1e18
rates = st.floats(0.0, RATE_MAX)
latencies_ns = st.integers(0, INT_MAX)


@pytest.fixture(autouse=True)
def _no_warning_reaches_the_user() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@functools.cache
def runs() -> tuple[Measurement, ...]:
    return tuple(measured())


figures = st.tuples(rates, rates, st.sampled_from([1, 8, 400, INT_MAX]), rates, latencies_ns)
"""A run's bytes and a program's figure per second, I/Os, mean and percentiles of latency."""


def with_figures(
    told: list[tuple[float, float, int, float, int]], unit: str, higher: bool
) -> list[Measurement]:
    """Runs as they were, with other figures; of fio, or of a program if there is a `unit`."""
    return [
        replace(
            run,
            bytes_per_s=rate,
            ios_per_s=rate,
            latencies={
                "read": replace(
                    run.latencies["read"],
                    ios=ios,
                    mean_ns=min(mean_ns, INT_MAX),
                    percentiles_ns=(p99_ns // 2, p99_ns, p99_ns),
                )
            },
            figure=Figure(value, unit, higher) if unit else None,
        )
        for run, (rate, value, ios, mean_ns, p99_ns) in zip(runs(), told, strict=True)
    ]


def shown(analysis: Analysis, capsys: pytest.CaptureFixture[str]) -> str:
    comparison.show_cells(analysis, console.console(), requests=True)
    comparison.show_advice(analysis, console.console())
    return capsys.readouterr().out


def strict(text: str) -> Any:
    """As a browser parses it: no NaN, no Infinity."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


@given(
    st.lists(figures, min_size=32, max_size=32),
    st.sampled_from(["", "tps"]),
    st.booleans(),
    st.sampled_from(OBJECTIVES),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_any_figures_are_judged_and_put_into_words_and_pictures(
    told: list[tuple[float, float, int, float, int]],
    unit: str,
    higher: bool,
    objective: str,
    anytime: bool,
) -> None:
    several = with_figures(told, unit, higher)
    analysis = analyse(several, objective, anytime=anytime)
    strict(json.dumps(summarise(analysis)))
    results = results_file.Results(described(), tuple(several))
    strict(str(script_json(payload.build(results, analysis))))


def test_runs_a_million_times_apart_are_shown_without_infinities(
    capsys: pytest.CaptureFixture[str],
) -> None:
    apart = [
        replace(run, bytes_per_s=run.bytes_per_s * 1e6 ** (run.repeat * (run.scheduler == "none")))
        for run in runs()
        if run.repeat < 2
    ]
    setup = described() | {"repeats": 2}
    analysis = analyse(apart, "throughput")
    text = shown(analysis, capsys)
    page = report.render(results_file.Results(setup, tuple(apart)), analysis)
    visible = page[: page.index("<script")]
    assert "so few runs cannot show a difference" in text or "more than 1000 times" in text
    for one in (text, visible):
        assert not any(word in one for word in ("inf ", "inf%", "nan", "Infinity", "e+"))


def test_a_run_in_which_nothing_moved_has_no_spread(capsys: pytest.CaptureFixture[str]) -> None:
    still = [replace(run, bytes_per_s=run.bytes_per_s * bool(run.repeat)) for run in runs()]
    assert "inf" not in shown(analyse(still, "throughput"), capsys)


def test_thirty_two_schedulers_are_compared_and_shown_again(
    fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def far_apart(*asked: Any) -> plausible.MadeRun:
        scheduler, seed = asked[2].text, asked[4]
        times = 5.0 ** (zlib.crc32(f"{scheduler}{seed}".encode()) % 5)
        return plausible.run(seed, jobs=1, duration_ns=round(3e6 * times))

    monkeypatch.setattr(fake_core, "simulate", far_apart)
    words = ["compare", "--disk", "950pro-256gb", "--workload", "randread", "--repeats", "2"]
    for number in range(32):
        words += ["--scheduler", f"mq-deadline:fifo_batch={number + 1}"]
    for told in (words, ["results", "show", "1"], ["report", "1"], ["report", "reports/compare"]):
        done = CliRunner().invoke(app, told, catch_exceptions=False)
        assert done.exit_code == 0, done.output
    strict(CliRunner().invoke(app, ["results", "show", "1", "--json"]).stdout)
    strict(CliRunner().invoke(app, ["results", "diff", "1", "1", "--json"]).stdout)


def test_figures_of_a_picture_have_four_digits_however_small() -> None:
    assert digits([5e-324, 1.23456e-310, 1.23456e300, 0.0, math.inf, math.nan]) == [
        pytest.approx(0.0, abs=1e-300), pytest.approx(0.0, abs=1e-300),
        pytest.approx(1.235e300), 0.0, None, None,
    ]  # fmt: skip
    assert number_text(5e-324) == "0"


def test_a_time_without_service_has_no_shares() -> None:
    # Both have had their bytes before the second began; the kernel writes until the first ends.
    served = Service(
        ("a", "b"), (0, 100), (50, 60, 150, 160, 170), (0, 1, -1, 0, 1), (8, 8, 8, 0, 0)
    )
    assert fairness(served, {}) is None
    assert np.geterr()["invalid"] == "warn"


claims = st.sampled_from(
    [
        "ratio\nvalue = 2\ntolerance_percent = 5",
        "difference\nvalue = 1\ntolerance_percent = 5",
        "order",
        "single-run",
        "no-difference",
    ]
)
mb_s = st.floats(1e-290, RATE_MAX / 1e6)


@given(claims, st.lists(st.tuples(mb_s, mb_s), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_claims_about_any_figures_are_judged_and_kept(
    tmp_path_factory: pytest.TempPathFactory, claim: str, pairs: list[tuple[float, float]]
) -> None:
    none, kyber = ([pair[side] for pair in pairs] for side in (0, 1))
    kind, _, keys = claim.partition("\n")
    text = f'kind = "{kind}"\nschedulers = ["none", "kyber"]\n{keys}'
    rows = judged(tmp_path_factory.mktemp("study"), text, none=none, kyber=kyber)
    for row in rows:
        assert len(row.found) < 200 and not re.search(r"\binf\b|\bnan\b", row.found), row.found
    strict(json.dumps(plain(rows)))


def test_a_ratio_of_one_run_is_shown_without_an_interval(tmp_path: Path) -> None:
    claim = 'kind = "ratio"\nschedulers = ["none", "kyber"]\nvalue = 2\ntolerance_percent = 5'
    [row] = judged(tmp_path, claim, none=[200.0], kyber=[100.0])
    assert figure(row.measured) == "2 (interval not known)"
    assert figure(Interval(2.0, 1.5, math.inf)) == "2 (1.5 or more)"
    assert figure(Interval(2.0, 1.5, 3e17)) == "2 (1.5 to 300,000,000,000,000,000)"
    assert (number_text(math.inf), number_text(math.nan)) == ("-", "-")


def test_published_figures_are_of_a_size_that_can_be_averaged(tmp_path: Path) -> None:
    claim = 'kind = "figures"\ntolerance_percent = 10\nvalues = { none = [1.7e308, 1.7e308] }'
    with pytest.raises(InputError, match=r"expected a number above 0 \(1e-18 to 1e18\)"):
        judged(tmp_path, claim, none=[100.0])
