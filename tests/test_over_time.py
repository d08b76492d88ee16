"""The course of a run over time: its intervals, and pile-ups planted at known times."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

import blklab
from blklab.domain import specs
from blklab.domain.check_runs import measured
from blklab.domain.experiment import Experiment
from blklab.domain.histogram import Ints
from blklab.domain.measurement import from_json, measure
from blklab.domain.over_time import (
    INTERVALS_LEAST,
    INTERVALS_MOST,
    Floats,
    PileUps,
    over_time,
    pile_ups,
)
from blklab.domain.result import Levels, PercentileSeries, Result, Series
from blklab.experiment.analyse import analyse
from blklab.experiment.stability import stability
from blklab.experiment.summary import summarise
from blklab.experiment.words import over_time_sentence, over_time_texts

SECOND = 10**9
TENTH = SECOND // 10

STEADY = """
[global]
direct=1
runtime=70
time_based
norandommap
[mix]
rw=randread
bs=4k
size=16g
numjobs=4
group_reporting
"""
BURST = """
[burst]
rw=randread
bs=64k
size=1g
iodepth=64
ioengine=libaio
startdelay=40
runtime=6
"""

EXPERIMENT = Experiment(
    specs.workload("seqread"), specs.disk("sas-10k"), specs.scheduler("deadline"), 1
)


def found(ios: Floats, wait_ns: Floats, queue: Floats | None, interval_ns: int = TENTH) -> PileUps:
    made = pile_ups(interval_ns, ios, ios * wait_ns, queue)
    assert made is not None
    return made


def seconds(made: PileUps) -> list[tuple[float, float]]:
    return [(one.start_ns / SECOND, one.duration_ns / SECOND) for one in made.found]


def level(value: float, *raised: tuple[float, float, float], count: int = 1200) -> Floats:
    """Intervals of 100 ms at `value`, times `by` from one second to another."""
    column = np.full(count, float(value))
    for start, end, by in raised:
        column[int(start * 10) : int(end * 10)] *= by
    return column


def test_pile_ups_are_found_where_they_were_planted() -> None:
    wait = level(5e6, (30, 33, 4.0), (70, 71, 10.0))
    made = found(level(20), wait, level(8))
    assert seconds(made) == [(30, 3), (70, 1)]
    assert (made.count, made.longest_ns, made.window_ns) == (2, 3 * SECOND, SECOND)
    assert (made.usual_queue, made.usual_latency_ns) == (8, 5e6)
    assert made.found[1].latency_ns == pytest.approx(50e6)


def test_a_run_without_pile_ups_has_none() -> None:
    random = np.random.default_rng(5)
    wait = 5e6 * random.lognormal(0, 0.5, 1200)
    made = found(level(20), wait, random.poisson(8, 1200).astype(float))
    assert (made.count, made.longest_ns, made.found) == (0, 0, ())


def test_less_than_the_stated_multiple_or_time_is_no_pile_up() -> None:
    assert found(level(20), level(5e6, (30, 40, 2.9)), level(8)).count == 0
    # A tenth of a second at ten times: the window of a second is at 1.9 times.
    assert found(level(20), level(5e6, (30, 30.1, 10.0)), level(8)).count == 0


def test_pile_ups_that_touch_are_one() -> None:
    """The queue is long first, then latencies."""
    made = found(level(20), level(5e6, (33, 36, 5.0)), level(8, (30, 33, 5.0)))
    assert seconds(made) == [(30, 6)]
    assert made.found[0].queue == 40
    apart = found(level(20), level(5e6, (34, 36, 5.0)), level(8, (30, 33, 5.0)))
    assert seconds(apart) == [(30, 3), (34, 2)]


def test_a_queue_of_less_than_four_is_no_pile_up() -> None:
    assert found(level(20), level(5e6), level(0.1, (30, 35, 30.0))).count == 0
    assert found(level(20), level(5e6), level(0.1, (30, 35, 40.0))).count == 1


def test_a_standstill_is_part_of_the_pile_up_whose_latencies_it_causes() -> None:
    """For five seconds nothing completes, then all that waited does."""
    ios, wait = level(20), level(5e6)
    ios[300:350] = 0
    wait[350:360] = 3e9
    assert seconds(found(ios, wait, level(8))) == [(30, 6)]
    idle = level(8, (30, 35, 0.0))
    assert seconds(found(ios, wait, idle)) == [(35, 1)]


def test_without_a_queue_latencies_decide_and_the_other_way_round() -> None:
    assert seconds(found(level(20), level(5e6, (30, 33, 4.0)), None)) == [(30, 3)]
    only_queue = pile_ups(TENTH, None, None, level(8, (30, 33, 4.0)))
    assert only_queue is not None
    assert seconds(only_queue) == [(30, 3)]
    assert pile_ups(TENTH, None, None, None) is None


def test_windows_grow_until_their_mean_is_that_of_several_ios() -> None:
    assert found(level(0.3), level(5e6), None).window_ns == 4 * SECOND
    assert found(level(20), level(5e6), None, interval_ns=3 * SECOND).window_ns == 3 * SECOND


@pytest.fixture(scope="module")
def steady() -> Result:
    return blklab.simulate(STEADY, disk="sas-10k", scheduler="deadline")


@pytest.fixture(scope="module")
def burst() -> Result:
    return blklab.simulate(STEADY + BURST, disk="sas-10k", scheduler="deadline")


def test_a_burst_of_a_simulated_run_is_a_pile_up(steady: Result, burst: Result) -> None:
    calm, made = over_time(steady), over_time(burst)
    assert calm is not None and calm.pile_ups is not None
    assert made is not None and made.pile_ups is not None
    assert calm.pile_ups.count == 0
    (one,) = made.pile_ups.found
    assert (one.start_ns, made.pile_ups.count) == (40 * SECOND, 1)
    # Its I/Os are issued for 6 s; the last ones of them are served afterwards.
    assert 6 * SECOND <= one.duration_ns <= 8 * SECOND
    assert one.queue > 60


def test_intervals_add_up_to_the_run(steady: Result) -> None:
    made = over_time(steady)
    assert made is not None
    whole = steady.duration_ns // made.interval_ns
    assert INTERVALS_LEAST <= whole <= INTERVALS_MOST
    columns = (made.bytes, made.ios, made.mean_ns, made.p50_ns, made.p99_ns, made.queue_milli)
    assert {len(column) for column in columns} == {whole}
    moved = sum(job.read.bytes for job in steady.jobs)
    assert sum(made.bytes) == pytest.approx(moved, rel=2 / whole)
    # Four processes always have one read each in the queue.
    assert np.mean(made.queue_milli) == pytest.approx(4000, rel=0.02)
    p50 = float(steady.histogram("read").percentiles([50.0])[0])
    assert np.median(made.p50_ns) == pytest.approx(p50, rel=0.06)


def test_levels_and_percentiles_count_what_the_series_counts(burst: Result) -> None:
    levels, percentiles, series = burst.levels, burst.percentiles, burst.series
    ios = series.read_ios.sum() + series.write_ios.sum()
    assert levels.ios.sum() == ios == percentiles.read_ios.sum() + percentiles.write_ios.sum()
    waits = series.read_clat_sum_ns.sum() + series.write_clat_sum_ns.sum()
    assert levels.clat_sum_ns.sum() == waits
    assert percentiles.bytes.sum() == series.read_bytes.sum() + series.write_bytes.sum()
    area = (series.waiting_milli + series.in_flight_milli).sum() * series.interval_ns
    width = levels.start_ns[1]
    assert levels.depth_milli.sum() * width == pytest.approx(area, rel=0.001)


def empty(kind: type[Levels] | type[PercentileSeries]) -> dict[str, Ints]:
    none = np.zeros(0, np.int64)
    return dict.fromkeys(kind.__dataclass_fields__, none)


def test_a_rig_with_nothing_but_a_series_has_the_same_pile_ups(burst: Result) -> None:
    bare = replace(
        burst,
        levels=Levels(**empty(Levels)),
        percentiles=PercentileSeries(**empty(PercentileSeries)),
    )
    made, whole = over_time(bare), over_time(burst)
    assert made is not None and made.pile_ups is not None
    assert whole is not None and whole.pile_ups is not None
    assert made.p99_ns == ()
    assert made.pile_ups.count == whole.pile_ups.count == 1
    off = made.pile_ups.found[0].start_ns - whole.pile_ups.found[0].start_ns
    assert abs(off) <= made.pile_ups.window_ns
    assert sum(made.bytes) == pytest.approx(sum(whole.bytes), rel=0.02)


def test_a_run_of_less_than_a_minute_or_without_a_series_has_no_course(steady: Result) -> None:
    assert over_time(replace(steady, duration_ns=59 * SECOND)) is None
    none = np.zeros(0, np.int64)
    series = Series(SECOND, **dict.fromkeys(list(Series.__dataclass_fields__)[1:], none))
    bare = replace(
        steady,
        series=series,
        levels=Levels(**empty(Levels)),
        percentiles=PercentileSeries(**empty(PercentileSeries)),
    )
    assert over_time(bare) is None


def test_a_course_is_stored_with_its_run_and_read_back(burst: Result) -> None:
    run = measure(EXPERIMENT, burst, repeat=0)
    assert run.over_time is not None
    document = json.loads(json.dumps(asdict(run)))
    assert from_json(document) == run
    # Versions before had no course.
    del document["over_time"]
    assert from_json(document).over_time is None


def test_a_course_from_a_file_has_columns_of_its_length(burst: Result) -> None:
    made = over_time(burst)
    assert made is not None
    run = measure(EXPERIMENT, burst, repeat=0)
    assert list(measured(run)) == []
    wrong = replace(run, over_time=replace(made, p99_ns=made.p99_ns[1:]))
    assert list(measured(wrong)) == ["over_time.p99_ns: not as long as there are intervals"]


def test_json_has_the_course_of_long_runs(burst: Result) -> None:
    runs = [measure(EXPERIMENT, burst, repeat=0)]
    [row] = summarise(analyse(runs, "both"))["cells"][0]["ranking"]
    told = row["over_time"]
    assert told["pile_ups"][0]["count"] == 1
    assert {one["figure"] for one in told["drifts"]} >= {"throughput", "mean"}
    assert "1 pile-up, at 40 s (" in told["text"]
    short = [replace(runs[0], over_time=None)]
    assert summarise(analyse(short, "both"))["cells"][0]["ranking"][0]["over_time"] is None


def test_the_verdict_says_when_requests_piled_up(steady: Result, burst: Result) -> None:
    calm, made = (stability([over_time(run)]) for run in (steady, burst))
    assert calm is not None and made is not None
    assert over_time_sentence(calm).endswith("; no pile-ups")
    assert "; 1 pile-up, at 40 s (" in over_time_sentence(made)
    assert over_time_texts(calm)[2:] == ["0", "-"]
    assert over_time_texts(made)[2] == "1"
    assert stability([over_time(steady), None]) is None
