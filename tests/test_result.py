"""The typed result: its content, its text, its conversions."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blklab.domain.histogram import Histogram, fio_bucket, fio_bucket_value
from blklab.domain.result import Result
from tests import plausible

latencies = st.lists(st.integers(0, 2**50), min_size=1, max_size=300)


def _histogram(values: list[int]) -> Histogram:
    return plausible.histogram(np.array(values, dtype=np.int64))


@given(latencies, st.floats(0.01, 100.0))
def test_a_percentile_is_the_first_value_that_covers_the_share(
    values: list[int], percent: float
) -> None:
    found = _histogram(values).percentile(percent)
    at_or_below = sum(value <= found for value in values)
    below = sum(value < found for value in values)
    assert at_or_below >= percent / 100 * len(values) - 1e-6
    assert below < percent / 100 * len(values) + 1e-6


@given(latencies, latencies)
def test_merging_is_counting_both(one: list[int], other: list[int]) -> None:
    merged = Histogram.merged([_histogram(one), Histogram.empty(), _histogram(other)])
    both = _histogram(one + other)
    assert merged.value_ns.tolist() == both.value_ns.tolist()
    assert merged.count.tolist() == both.count.tolist()


@given(latencies)
def test_folding_into_fios_buckets_keeps_every_io_and_errs_by_less_than_one_percent(
    values: list[int],
) -> None:
    histogram = _histogram(values)
    folded = histogram.folded()
    assert folded.total == histogram.total
    assert (np.diff(folded.value_ns) > 0).all()
    nearest = folded.value_ns[
        np.searchsorted(fio_bucket(folded.value_ns), fio_bucket(histogram.value_ns))
    ]
    # Above 2**34 ns fio has one last bucket.
    inside = histogram.value_ns < 2**34
    error = np.abs(nearest - histogram.value_ns)[inside]
    assert (error <= np.maximum(histogram.value_ns[inside] / 128, 0.5)).all()


@given(st.integers(0, 2**34))
def test_a_bucket_prints_a_value_that_lies_in_it(value: int) -> None:
    bucket = fio_bucket(np.array([value]))
    assert fio_bucket(fio_bucket_value(bucket)).tolist() == bucket.tolist()


@pytest.mark.parametrize(("percent", "expected"), [(50, 10), (50.5, 20), (99, 20), (99.5, 30)])
def test_a_percentile_that_ends_with_a_bucket_is_that_buckets(
    percent: float, expected: int
) -> None:
    histogram = Histogram(np.array([10, 20, 30]), np.array([50, 49, 1]))
    assert histogram.percentile(percent) == expected


def test_an_empty_histogram_has_no_percentiles() -> None:
    with pytest.raises(ValueError, match="empty"):
        Histogram.empty().percentile(50)
    assert Histogram.merged([]).total == 0


def test_a_run_becomes_a_result_without_copying_columns() -> None:
    made = plausible.run()
    result = Result.from_run(made)
    assert result.jobs[1].name == "writer"
    assert result.jobs[0].read.clat.count == 400
    assert result.jobs[0].read.clat_hist.total == 400
    assert result.series.interval_ns == 50_000_000
    assert result.overview.stride == 4
    assert result.histogram("write").total == 400
    assert not result.detail.sector.flags.owndata
    assert result.disk.read_merges == 3


@pytest.mark.parametrize("to", ["to_arrow", "to_pandas", "to_polars"])
def test_tables_convert_with_all_columns_and_values(to: str) -> None:
    pytest.importorskip({"to_arrow": "pyarrow"}.get(to, to.removeprefix("to_")))
    result = plausible.result()
    for table in (result.series, result.overview, result.jobs[0].read.clat_hist):
        converted: Any = getattr(table, to)()
        for name, values in table.columns().items():
            assert np.asarray(converted[name]).tolist() == values.tolist()


def test_a_series_has_no_column_for_missing_measurements() -> None:
    made = plausible.run()
    for name in ("read_bytes", "write_bytes"):
        made.data[f"series.{name}"] = np.zeros(0, np.int64)
    series = Result.from_run(made).series
    assert repr(series) == "Series(60 x 50 ms)"
    columns = series.columns()
    assert "read_bytes" not in columns and "write_bytes" not in columns
    assert {len(column) for column in columns.values()} == {60}
    assert columns["start_ns"][-1] == 59 * 50_000_000


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.startswith("polars"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr("blklab.domain.tables.import_module", refuse)
    with pytest.raises(ImportError, match=r"pip install 'blklab\[polars\]'"):
        plausible.result().series.to_polars()


def test_notebooks_show_a_table_with_names_escaped() -> None:
    result = plausible.result(names=("<script>alert(1)</script>",))
    page = result._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "MB/s" in repr(result)
