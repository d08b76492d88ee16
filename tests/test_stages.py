"""Queue time and service time: summarised, stored, shown."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blklab import fio
from blklab.cli import comparison
from blklab.cli.console import console
from blklab.domain.measurement import Measurement
from blklab.domain.result import Result, Trace
from blklab.domain.stages import PERCENTILES, Spread, Stages, middle, stages, times
from blklab.experiment.analyse import Analysis, analyse
from blklab.experiment.summary import summarise
from blklab.fio.status import report
from tests import plausible


def followed(queued: list[int], issued: list[int], completed: list[int], op: list[int]) -> Result:
    """A result whose overview, one in four, has these requests."""
    whole = Result.from_run(plausible.run())
    none, rows = np.zeros(0, np.int64), np.arange(len(op), dtype=np.int64)
    columns = [np.array(column, np.int64) for column in (queued, issued, completed, op)]
    trace = Trace(4, columns[0], columns[1], none, columns[2], rows, rows, columns[3], rows)
    return replace(whole, overview=trace)


REQUESTS = followed([0, 0, 5, 9], [0, 10, 25, 9], [100, 40, 35, 19], [0, 1, 1, 2])
UNFOLLOWED = followed([], [], [], [])


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=3000))
def test_a_spread_is_that_of_the_definition(values: list[int]) -> None:
    took = np.array(values, np.int64)
    found = Spread.of(took)
    assert (found.min_ns, found.max_ns) == (min(values), max(values))
    assert found.mean_ns == pytest.approx(sum(values) / len(values))
    several = len(values) > 1
    assert found.stddev_ns == pytest.approx(np.std(values, ddof=1) if several else 0.0)
    for share, value in zip(PERCENTILES, found.percentiles_ns, strict=True):
        assert value in values
        assert (took <= value).sum() * 100 >= share * len(values)
        assert (took < value).sum() * 100 < share * len(values)


def test_each_operation_has_its_time_in_the_queue_and_at_the_disk() -> None:
    found = stages(REQUESTS)
    assert {name: (of.requests, of.one_in) for name, of in found.items()} == {
        "read": (1, 4),
        "write": (2, 4),
        "flush": (1, 4),
    }
    assert (found["read"].queue.mean_ns, found["read"].disk.mean_ns) == (0.0, 100.0)
    assert (found["write"].queue.mean_ns, found["write"].disk.mean_ns) == (15.0, 20.0)
    assert found["write"].disk.stddev_ns == pytest.approx(200**0.5)
    assert times(REQUESTS)["write"].queue_ns.tolist() == [10, 20]
    assert stages(UNFOLLOWED) == {}


def test_of_several_runs_each_figure_is_the_median() -> None:
    several = [
        Stages(10, one_in, Spread(1, 9, mean, 2.0, (1, 2, 3)), Spread(0, 5, 4.0, mean, (4, 5, 6)))
        for one_in, mean in ((1, 5.0), (2, 7.0), (1, 30.0))
    ]
    assert middle(several) == Stages(
        30, 2, Spread(1, 9, 7.0, 2.0, (1, 2, 3)), Spread(0, 5, 4.0, 7.0, (4, 5, 6))
    )


def analysis(*runs: tuple[str, Result]) -> Analysis:
    counters = {"read_ios": 5, "write_ios": 0}
    return analyse(
        [
            Measurement("sda", "job", name, 0, 0, 1, 5e6, 5, {}, counters, None, stages=stages(one))
            for name, one in runs
        ],
        "throughput",
    )


def test_a_comparison_has_them_in_table_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = analysis(("bfq", REQUESTS), ("none", UNFOLLOWED))
    rows = {row["scheduler"]: row["requests"] for row in summarise(found)["cells"][0]["ranking"]}
    assert rows["none"] == {}
    assert rows["bfq"]["write"] == {
        "count": 2,
        "one_in": 4,
        "queue_ns": {"min": 10, "max": 20, "mean": 15.0, "stddev": pytest.approx(50**0.5),
                     "percentiles": {"50": 10, "99": 20, "99.9": 20}},
        "disk_ns": {"min": 10, "max": 30, "mean": 20.0, "stddev": pytest.approx(200**0.5),
                    "percentiles": {"50": 10, "99": 30, "99.9": 30}},
    }  # fmt: skip
    json.dumps(rows)
    comparison.show_cells(found, console(), requests=True)
    told = capsys.readouterr().out
    assert [" ".join(line.split()) for line in told.splitlines() if " write " in line] == [
        # Of two requests, even the median is marked.
        "bfq write 15 ns ~20 ns 20 ns ~10 ns ~30 ns ~30 ns 14.1 ns"
    ]
    comparison.show_cells(found, console(), requests=False)
    comparison.show_cells(analysis(("none", UNFOLLOWED)), console(), requests=True)
    assert "Requests" not in capsys.readouterr().out


def test_fios_formats_have_them_where_asked_for() -> None:
    silent, told = report(REQUESTS, "sda"), report(REQUESTS, "sda", requests=True)
    assert "queue" not in fio.render(silent, ("normal",)).replace("in_queue", "")
    assert "requests" not in json.loads(fio.render(silent, ("json",)))
    found = json.loads(fio.render(told, ("json+",)))["requests"]
    assert found.keys() == {"one_in", "read", "write", "flush"}
    write = found["write"]["queue_ns"]
    assert (write["min"], write["max"], write["mean"], write["N"]) == (10, 20, 15.0, 2)
    assert (write["percentile"]["50.000000"], write["bins"]) == (10, {"10": 1, "20": 1})
    text = fio.render(told, ("normal",))
    assert "\nRequests of the disk (one in 4):\n  read: requests=1\n" in text
    assert "    disk (nsec): min=10, max=30, avg=20.00, stdev=14.14\n" in text
