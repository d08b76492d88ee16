"""The figures of a run that claims of studies can use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from blklab.base.catalogue import Entry
from blklab.domain import specs
from blklab.domain.experiment import Experiment
from blklab.domain.measurement import Measurement, measure
from blklab.domain.result import Figure, Result
from blklab.experiment.metrics import METRICS, Scope


def run(figure: Figure, took_ns: Sequence[int]) -> Measurement:
    experiment = Experiment(
        Entry("w", Path("w"), ""), specs.disk("950pro-256gb"), specs.scheduler("none"), 1
    )
    result = Result.of_program(figure, np.array(took_ns, np.int64), 10**9, {})
    return measure(experiment, result, repeat=0)


@pytest.mark.parametrize(
    ("name", "unit"), [("own_tps", "tps"), ("own_tpmc", "tpmC"), ("own_ops", "ops/s")]
)
def test_a_programs_own_figure_is_one_of_its_unit_only(name: str, unit: str) -> None:
    found = run(Figure(12.5, unit, higher_is_better=True), [1])
    scope = Scope("operation")
    assert METRICS[name].of(found, scope) == 12.5
    other = replace(found, figure=Figure(12.5, "MB/s", higher_is_better=True))
    with pytest.raises(KeyError):
        METRICS[name].of(other, scope)


def test_the_95th_percentile_is_that_of_the_latencies_within_a_bucket() -> None:
    took_ns = [1000 * number for number in range(1, 1001)]
    found = run(Figure(1.0, "ops/s", higher_is_better=True), took_ns)
    scope = Scope("operation")
    # A bucket of fio's is 1/64 wide.
    assert METRICS["p95_us"].of(found, scope) == pytest.approx(950, rel=1 / 64)
    between = METRICS["p50_us"].of(found, scope), METRICS["p99_us"].of(found, scope)
    assert between[0] < METRICS["p95_us"].of(found, scope) < between[1]
    with pytest.raises(KeyError):
        METRICS["p95_us"].of(found, Scope("read"))
