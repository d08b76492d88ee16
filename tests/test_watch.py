"""`blklab watch` in virtual time: kinds of load, evidence, decisions, and what they cost beside the
best fixed scheduler in hindsight. The simulator is the truth."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

import blklab
from blklab.api.watch_evidence import of_recording
from blklab.domain import core
from blklab.domain.experiment import Disk
from blklab.domain.summaries import DiskCounters
from blklab.rigs import find_disk
from blklab.rigs.sim import SimRig
from blklab.watching import kept
from blklab.watching.decide import Rules, Watcher
from blklab.watching.evidence import Evidence, Figures, gain, is_proven
from blklab.watching.kinds import KINDS, Seen, seen
from blklab.watching.load import Load, load
from blklab.watching.words import advice_line
from tests.watched import (
    IDLE,
    INTERVAL_S,
    SCHEDULERS,
    Course,
    Phase,
    course,
    interval,
    random_phases,
)

HDD, SSD = "desktop-5900rpm", "su800-128gb"
STANDING = [kind.workload for kind in KINDS.values() if kind.workload is not None]
"""The workloads that stand for kinds."""

READS = Load(1000, 100.0, 0.0, 0.0, 4096.0, 0.0, 1.0, 0.0, 1.0)
WRITES = Load(1000, 0.0, 100.0, 0.0, 0.0, 1 << 20, 0.0, 8.0, 1.0)
NOTHING = Load(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
BOTH = ("none", "bfq")


def evidence(best: str, *, times: float = 2.0, proven: bool = True) -> Evidence:
    """One of `BOTH` is so many times better than the other."""
    costs = {name: 1.0 if name == best else times for name in BOTH}
    figures = {name: Figures(1e6 * cost, 1e6 / cost) for name, cost in costs.items()}
    return Evidence("a test", figures, (costs,), (best,) if proven else BOTH)


class Disk2:
    """A disk of two loads that obeys its watcher: bfq is best for reads, none for writes."""

    def __init__(self, **rules: object) -> None:
        self.watcher = Watcher(replace(Rules(BOTH), **rules))  # type: ignore[arg-type]
        self.watcher.learn(seen(READS), evidence("bfq"))
        self.watcher.learn(seen(WRITES), evidence("none"))
        self.now_s, self.scheduler = 0.0, "none"
        self.changes: list[float] = []

    def does(self, what: Load, intervals: int) -> None:
        for _ in range(intervals):
            self.now_s += INTERVAL_S
            found = self.watcher.observe(self.now_s, what, self.scheduler)
            if found.set_now:
                # Twice as good for one load, less for a mix of both.
                is_mix = found.evidence is None
                assert found.better is not None
                assert 1.1 <= found.gain < 2 if is_mix else found.gain == pytest.approx(2)
                self.scheduler = found.better
                self.watcher.changed(self.now_s)
                self.changes.append(self.now_s)


# Kinds


@pytest.mark.parametrize("disk", [HDD, SSD])
@pytest.mark.parametrize("kind", [kind for kind in KINDS.values() if kind.workload is not None],
                         ids=lambda kind: kind.name)  # fmt: skip
def test_a_workload_has_the_kind_that_it_stands_for_under_every_scheduler(
    disk: str, kind: blklab.watching.kinds.Kind
) -> None:
    assert kind.workload is not None
    found = {seen(interval(disk, kind.workload, name, 1).load).kind.name for name in SCHEDULERS}
    assert found == {kind.name}


def test_a_database_on_a_disk_without_a_volatile_cache_is_a_mix_of_small_requests() -> None:
    disk = find_disk(SimRig(), "sas-10k")
    assert isinstance(disk, Disk)
    assert not core.disk_model(disk).limits.volatile_write_cache
    assert seen(interval("sas-10k", "oltp", "none", 1).load).kind.name == "mixed"


@pytest.mark.parametrize(
    ("changes", "name", "text"),
    [
        ({"busy": 0.004}, "idle", "busy 0.4 % of the time"),
        ({"reads_per_s": 1.0}, "idle", "busy 100.0 % of the time"),
        ({"requests": 19}, "not-known", "only 19 requests"),
        ({"read_bytes": 40960.0}, "not-known",
         "100 reads/s of 40 KiB, 1 in flight: requests between 32 KiB and 64 KiB are neither small "
         "nor large"),
        ({}, "small-reads", "100 reads/s of 4 KiB, 1 in flight"),
    ],
)  # fmt: skip
def test_idle_and_not_known_are_possible_answers(
    changes: dict[str, float], name: str, text: str
) -> None:
    found = seen(replace(READS, **changes))  # type: ignore[arg-type]
    assert (found.kind.name, found.figures) == (name, text)


@hypothesis.given(
    st.builds(
        Load,
        st.integers(0, 10**9),
        *[st.floats(0, 1e9)] * 3,
        *[st.floats(0, 1e9)] * 2,
        *[st.floats(0, 1e6)] * 2,
        st.floats(0, 1),
    )
)
def test_every_load_has_a_kind_and_an_explanation(any_load: Load) -> None:
    found = seen(any_load)
    assert found.kind.name in KINDS
    assert found.figures


def test_a_load_does_not_depend_on_the_length_of_its_interval() -> None:
    ran = blklab.simulate("randrw-70", disk=HDD)
    twice = DiskCounters(**{name: 2 * value for name, value in vars(ran.disk).items()})
    short, long = load(ran.disk, ran.duration_ns), load(twice, 2 * ran.duration_ns)
    assert replace(long, requests=short.requests) == short
    assert short.reads_in_flight + short.writes_in_flight == pytest.approx(16, rel=0.02)


# Evidence


def test_the_gain_under_several_loads_is_the_geometric_mean_by_weight() -> None:
    parts = [(3.0, evidence("bfq", times=2.0)), (1.0, evidence("none", times=4.0))]
    assert gain(parts, "bfq", "none") == pytest.approx((2**3 / 4) ** 0.25)
    assert gain(parts, "none", "bfq") == pytest.approx((4 / 2**3) ** 0.25)
    assert math.isnan(gain(parts, "kyber", "none"))
    assert math.isnan(gain([], "bfq", "none"))


def test_a_difference_is_proven_in_no_load_the_other_way_round() -> None:
    ours, theirs = (1.0, evidence("bfq")), (1.0, evidence("none"))
    unknown = (1.0, evidence("bfq", proven=False))
    assert is_proven([ours], "bfq", "none")
    assert is_proven([ours, unknown], "bfq", "none")
    assert not is_proven([ours, theirs], "bfq", "none")
    assert not is_proven([unknown], "bfq", "none")


def test_a_stored_comparison_is_evidence_and_another_disk_or_workload_is_not(
    tmp_path: Path,
) -> None:
    store = str(tmp_path / "results.db")
    told: list[str] = []
    wanted = kept.Wanted("streams", BOTH, "throughput", "an id", HDD, False)
    assert kept.find(wanted, store, told.append) is None
    ran = blklab.compare(
        disks=[HDD], workloads=["streams"], schedulers=SCHEDULERS, repeats=3, vary_disk=False,
        keep=True, store=store,
    )  # fmt: skip
    found = kept.find(wanted, store, told.append)
    assert found is not None and found.best == ("bfq",)
    assert found.source == f"comparison {ran.kept}, streams on {HDD}"
    assert found.cases[0]["none"] > 4
    for other in (
        replace(wanted, workload="seqread"),
        replace(wanted, model=SSD),
        replace(wanted, schedulers=("none", "bfq:slice_idle=0")),
        # It does not hold on drawn disks.
        replace(wanted, drawn=True),
    ):
        assert kept.find(other, store, told.append) is None
    latency = kept.find(replace(wanted, objective="latency"), store, told.append)
    assert latency is not None and latency.best and "bfq" not in latency.best
    assert told == []


def test_a_scheduler_that_is_ahead_on_some_drawn_disks_only_counts_as_equal() -> None:
    ran = blklab.compare(
        disks=[HDD], workloads=["desktop"], schedulers=BOTH, repeats=5, vary_disk=True
    )
    wanted = kept.Wanted("desktop", BOTH, "latency", "", HDD, True)
    found = kept.of_results(ran.results, HDD, wanted, "a test")
    assert found is not None
    assert found.best == ("bfq", "none") and set(found.cases[0].values()) == {1.0}


# Decisions


def test_a_change_pays_after_a_load_has_lasted_for_some_intervals() -> None:
    disk = Disk2(steady=3)
    disk.does(READS, 2)
    assert disk.scheduler == "none"
    disk.does(READS, 1)
    assert (disk.scheduler, disk.changes) == ("bfq", [30.0])


def test_pauses_interrupt_no_load() -> None:
    disk = Disk2(steady=3)
    for _ in range(3):
        disk.does(READS, 1)
        disk.does(NOTHING, 5)
    assert disk.scheduler == "bfq"


def test_no_change_comes_within_ten_minutes_of_another() -> None:
    disk = Disk2()
    disk.does(READS, 3)
    disk.does(WRITES, 59)
    assert (disk.scheduler, len(disk.changes)) == ("bfq", 1)
    disk.does(WRITES, 1)
    assert disk.changes == [30.0, 630.0]


def test_the_decision_says_why_it_waits_and_on_what_it_rests() -> None:
    disk = Disk2()
    disk.does(READS, 3)
    disk.watcher.changed(disk.now_s)
    found = disk.watcher.observe(40.0, READS, "none")
    assert (found.better, found.set_now) == ("bfq", False)
    assert advice_line(found) == (
        "bfq would be 2 times better; the last change was less than 600 s ago: none p99 2 ms and "
        "0.5 MB/s, bfq p99 1 ms and 1 MB/s (a test)"
    )


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (evidence("bfq", times=1.09), "no scheduler is better by 10 %"),
        (
            evidence("bfq", times=1.19, proven=False),
            "bfq may be 1.19 times better, which is not proven",
        ),
        (evidence("none"), "no scheduler is better by 10 %"),
        (Evidence("", {}, (), why_none="it depends"), "it depends"),
        (Evidence("", {}, ({"bfq": 1.0},)), "nothing is known of none"),
    ],
)
def test_a_gain_that_is_too_small_or_not_known_changes_nothing(
    given: Evidence, reason: str
) -> None:
    watcher = Watcher(Rules(BOTH, steady=1))
    watcher.learn(seen(READS), given)
    found = watcher.observe(10.0, READS, "none")
    assert (found.better, found.set_now, found.reason) == (None, False, reason)


def test_only_schedulers_that_may_be_set_are_named() -> None:
    watcher = Watcher(Rules(("none",), steady=1))
    watcher.learn(seen(READS), evidence("bfq"))
    assert watcher.observe(10.0, READS, "none").better is None


def test_evidence_is_asked_for_once_and_again_after_it_is_forgotten() -> None:
    watcher = Watcher(Rules(BOTH, steady=1))
    found = watcher.observe(10.0, READS, "none")
    assert found.needs_evidence
    watcher.learn(found.seen, evidence("bfq"))
    assert watcher.again(10.0, found).better == "bfq"
    assert not watcher.observe(20.0, READS, "none").needs_evidence
    watcher.forget(found.seen.key)
    assert watcher.observe(30.0, READS, "none").needs_evidence


@pytest.mark.parametrize("minutes", [1, 2, 5, 6, 8, 9])
def test_a_load_that_alternates_faster_than_the_scheduler_may_change_does_not_flap(
    minutes: int,
) -> None:
    disk = Disk2()
    # Three minutes in four are reads, so bfq is best for the mix.
    for _ in range(round(24 * 60 / minutes / 2)):
        disk.does(READS, round(minutes * 9))
        disk.does(WRITES, round(minutes * 3))
    assert disk.scheduler == "bfq"
    assert len(disk.changes) <= 4, disk.changes
    assert disk.changes[-1] <= 3600


def test_a_load_that_lasts_longer_gets_its_own_scheduler_each_time() -> None:
    disk = Disk2()
    for _ in range(5):
        disk.does(READS, 180)
        assert disk.scheduler == "bfq"
        disk.does(WRITES, 180)
        assert disk.scheduler == "none"
    assert len(disk.changes) == 10


@hypothesis.given(
    st.lists(st.tuples(st.sampled_from([READS, WRITES, NOTHING]), st.integers(1, 200)), max_size=40)
)
@hypothesis.settings(deadline=None)
def test_changes_are_ten_minutes_apart_whatever_the_disk_does(
    phases: list[tuple[Load, int]],
) -> None:
    disk = Disk2()
    for what, intervals in phases:
        disk.does(what, intervals)
    gaps = [b - a for a, b in itertools.pairwise(disk.changes)]
    assert all(gap >= 600 for gap in gaps)


def test_memory_is_bounded() -> None:
    disk = Disk2()
    disk.does(READS, 10_000)
    assert len(disk.watcher._intervals) <= 3 * 600 / INTERVAL_S + 1


# Regret


def watched(disk: str, workloads: list[str], objective: str, seeds: range, hours: float,
            given: dict[str, Evidence]) -> list[Course]:  # fmt: skip
    """Courses of random sequences of these loads, each from a random first scheduler."""
    found = []
    for seed in seeds:
        chance = random.Random(seed)
        phases = random_phases(chance, workloads, hours * 3600)
        rules = Rules(SCHEDULERS, objective)
        found.append(course(disk, phases, rules, chance.choice(SCHEDULERS), given))
    return found


@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_the_regret_beside_the_best_fixed_scheduler_is_below_five_percent(objective: str) -> None:
    every = watched(HDD, STANDING, objective, range(12), 16, {})
    assert max(one.regret for one in every) < 0.05
    # Fixed schedulers differ by more, or there would be nothing to choose.
    assert max(one.worst_fixed for one in every) > 0.2
    assert sum(len(one.changes) for one in every) > 5
    for one in every:
        times = [time_s for time_s, _ in one.changes]
        assert all(b - a >= 600 for a, b in itertools.pairwise(times))


def test_where_loads_want_different_schedulers_the_watch_beats_every_fixed_one() -> None:
    two = ["streams", "readers-vs-writer"]
    every = watched(HDD, two, "throughput", range(6), 24, {})
    assert all(one.regret < 0.02 for one in every)
    assert sorted(one.regret for one in every)[3] < -0.03


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Evidence]:
    """Samples of loads for which the workload of their kind does not stand, replayed."""
    place = tmp_path_factory.mktemp("samples")
    found = {}
    for number, workload in enumerate(
        ["randrw-60:numjobs=64", "streams:numjobs=3", "readers-vs-writer:numjobs=4", "oltp:bs=16k"]
    ):
        out = place / f"{number}.rec"
        longer = f"{workload},runtime=30"
        blklab.record_run(longer, out, disk=HDD, scheduler="mq-deadline")
        found[workload] = of_recording(out, HDD, SCHEDULERS, "latency", "a sample", draws=0)
    return found


def test_samples_serve_loads_for_which_no_workload_stands(samples: dict[str, Evidence]) -> None:
    every = watched(HDD, list(samples), "latency", range(6), 16, samples)
    without = watched(HDD, list(samples), "latency", range(6), 16, {})
    assert max(one.regret for one in every) < 0.05, [one.regret for one in every]
    assert max(one.regret for one in without) > 0.05


def test_an_idle_disk_is_left_as_it_is() -> None:
    one = course(HDD, [Phase(IDLE, 7200)], Rules(SCHEDULERS), "bfq", {})
    assert not one.changes
    assert {found.seen.kind.name for found in one.decisions} == {"idle"}
    assert not any(found.needs_evidence for found in one.decisions)


def test_a_key_names_the_kind_and_the_shade() -> None:
    assert seen(READS) == Seen(
        KINDS["small-reads"], "1 in flight, reads of 4 KiB", "100 reads/s of 4 KiB, 1 in flight"
    )
    assert (
        seen(replace(READS, reads_in_flight=3.5)).key == "small-reads/4 in flight, reads of 4 KiB"
    )
