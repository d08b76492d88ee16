"""The levels of a search: short runs, whole ones, further seeds."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import blklab
from blklab.api.confirm import recommended
from blklab.domain.experiment import SchedulerSpec
from blklab.domain.space import Knob, Space, spaces
from blklab.experiment.statistics import Interval, decide
from blklab.tuning import fidelity, goal
from blklab.tuning.answer import Confirmed
from blklab.tuning.bench import Score
from blklab.tuning.fidelity import SHARE, Fidelity, Levels
from blklab.tuning.scored import Scored
from blklab.tuning.search import Found, search
from blklab.tuning.tried import Tried
from tests.competing import recorded
from tests.test_tune import bench, tuned

GOALS = goal.parse("p99").goals
SPECS = [SchedulerSpec("bfq", (("slice_idle", str(number)),)) for number in range(20)]


def number(spec: SchedulerSpec) -> int:
    return int(dict(spec.settings)["slice_idle"])


def level(gain: Callable[[int], float]) -> fidelity.Scores:
    """Scores with one gain, which `gain` computes from the value of `slice_idle`."""

    def scores(specs: Sequence[SchedulerSpec]) -> list[Score | None]:
        return [Score(0.0, (gain(number(spec)),)) for spec in specs]

    return scores


def test_a_setting_that_was_only_lucky_is_not_the_best() -> None:
    scored = Scored(
        level(lambda n: 5.0 if n == 3 else n / 20),
        [level(lambda n: -1.0 if n == 3 else n / 20)] * 3,
        GOALS,
    )
    scored.of(SPECS)
    best = scored.best_of("bfq")
    assert number(best) == 19
    # The lucky one and the best have all seeds, others need none.
    assert [number(spec) for spec in SPECS if scored.is_full(spec)] == [3, 19]
    assert scored.first[SPECS[3]] == Score(0.0, (5.0,))


def test_settings_with_the_same_figures_share_the_seeds_of_one() -> None:
    asked: list[SchedulerSpec] = []

    def third(specs: Sequence[SchedulerSpec]) -> list[Score | None]:
        asked.extend(specs)
        return level(lambda n: 10.0 if n == 17 else 0.0)(specs)

    # By one seed 15 to 19 are alike, by two 17 is another one.
    second = level(lambda n: 2.5 if n == 17 else n // 5)
    scored = Scored(level(lambda n: float(n // 5)), [second, third], GOALS)
    scored.of(SPECS)
    assert scored.best_of("bfq") == SPECS[17]
    # Of those that are alike one has the third seed, and the others its score.
    assert [number(spec) for spec in asked] == [15, 17]
    assert [scored.key(SPECS[n])[1] for n in (15, 16, 18, 19)] == [(3.0 + 3.0) / 3] * 4


def test_every_setting_has_as_many_seeds_as_it_takes_for_the_same_order() -> None:
    alike = Scored(level(float), [level(lambda n: 2.0 * n)] * 4, GOALS)
    alike.of(SPECS)
    alike.judge_seeds()
    further = alike.further
    assert further is not None and (further.each, further.agreement) == (1, 1.0)
    other = Scored(level(lambda n: -n / 10), [level(float)] * 4, GOALS)
    other.of(SPECS)
    other.judge_seeds()
    further = other.further
    # Two seeds of five have the order of all.
    assert further is not None and (further.each, further.agreement) == (2, -1.0)
    new = SchedulerSpec("bfq", (("slice_idle", "40"),))
    other.of([new])
    assert other.key(new)[1] == pytest.approx((4 * 40 - 4.0) / 5)


def test_luck_of_the_reference_is_added_to_scores_with_few_seeds() -> None:
    scored = Scored(level(lambda n: n / 20 - 1.0), [level(lambda n: n / 20)], GOALS)
    scored.of(SPECS)
    scored.judge_seeds()
    assert all(scored.key(spec)[1] == pytest.approx(number(spec) / 20 - 0.5) for spec in SPECS)


def test_seeds_are_not_judged_by_settings_that_hardly_differ() -> None:
    scored = Scored(level(lambda n: float(n % 3)), [level(float)], GOALS)
    scored.of(SPECS)
    assert scored.judge_seeds() == {}
    assert scored.further is not None and scored.further.agreement is None


def test_short_runs_are_used_if_their_order_is_that_of_whole_runs() -> None:
    whole = dict(zip(SPECS, level(float)(SPECS), strict=True))
    for short, used in ((level(math.sqrt), True), (level(lambda n: float(n * 7 % 20)), False)):
        found = Fidelity(short)
        found.judge(whole)
        told = found.told(whole)
        assert found.used == used and told.agreement is not None
        assert (told.agreement >= fidelity.AGREES) == used
        assert (told.settings, told.spared, told.judged) == (16, 0, 16)


@given(st.lists(st.integers(0, 19), min_size=1, max_size=20, unique=True))
def test_the_best_third_by_short_runs_has_whole_ones(numbers: list[int]) -> None:
    short = Fidelity(level(float))
    specs = [SPECS[one] for one in numbers]
    kept = short.promising(specs)
    bar = sorted(numbers, reverse=True)[len(numbers) // 3]
    assert {number(spec) for spec in kept} == {one for one in numbers if one >= bar}
    assert short.cost == SHARE * len(numbers)


def test_a_short_run_is_the_beginning_of_the_whole_one() -> None:
    here = bench(Tried(None, print))
    spec = SchedulerSpec("mq-deadline")
    [whole], [short] = here.figures(spec), here.figures(spec, SHARE)
    assert short.duration_ns == round(SHARE * whole.duration_ns)
    assert here.scores([spec], SHARE) == [Score(0.0, (0.0,))]


def test_short_runs_spare_whole_ones_and_an_interrupted_search_ends_in_the_same_place(
    tmp_path: Path,
) -> None:
    [space] = spaces([SchedulerSpec("bfq")])

    def found_by(tried: Tried, ends_after: float = math.inf) -> tuple[Found, int]:
        here = bench(tried, ends_after)
        short = Fidelity(lambda specs: here.scores(specs, SHARE))
        found = search(here, [space], trials=30, seed=2, levels=Levels(short))
        return found, here.executor.count  # type: ignore[attr-defined]

    found, total = found_by(Tried(None, print))
    assert found.short is not None and found.short.used and found.short.spared > 5
    assert found.cost == found.trials + SHARE * found.short.settings
    path = tmp_path / "runs.jsonl"
    with pytest.raises(KeyboardInterrupt):
        found_by(Tried(path, print), ends_after=total // 2)
    again, left = found_by(Tried(path, print))
    assert again == found and left == total - total // 2


def test_where_the_default_is_at_the_end_of_its_range_the_next_value_is_screened() -> None:
    base = SchedulerSpec("mq-deadline")
    space = Space(
        base, (Knob("async_depth", (0, 4, 16, 64, 256), 0), Knob("fifo_batch", (1, 16, 64), 16))
    )
    asked: list[SchedulerSpec] = []
    here = bench(Tried(None, print))
    scores = here.scores

    def counted(specs: Sequence[SchedulerSpec], share: float | None = None) -> list[Score | None]:
        asked.extend(specs)
        return scores(specs, share)

    here.scores = counted  # type: ignore[method-assign]
    search(here, [space], trials=1, seed=1)
    assert {space.spec({"async_depth": value}) for value in (4, 256)} <= set(asked)


def test_a_run_of_a_recording_can_be_short_as_well(tmp_path: Path) -> None:
    load = recorded(tmp_path / "load.rec")
    found = blklab.tune(
        disk="su800-128gb",
        workloads=[load],
        objective="p99",
        schedulers=["bfq"],
        trials=10,
        repeats=2,
    )
    assert found.short is not None and found.short.share == SHARE
    assert found.further is not None and found.further.seeds == 1 + fidelity.SEEDS


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        ("duration(reader)", []),
        ("p99(reader) + throughput(writer)", []),
        ("p99(reader)", ["--whole-runs"]),
    ],
)
def test_no_short_runs_for_what_is_known_at_the_end_for_several_goals_or_if_asked(
    tmp_path: Path, objective: str, words: list[str]
) -> None:
    file = tmp_path / "load.fio"
    file.write_text(
        "[global]\ndirect=1\nsize=64m\n[reader]\nrw=randread\nbs=4k\nnumber_ios=400\n"
        "[writer]\nrw=randwrite\nbs=64k\nioengine=libaio\niodepth=32\nnumber_ios=400\n"
    )
    done = tuned(
        *("--disk", "su800-128gb", "--workload", file, "--objective", objective),
        *("--scheduler", "kyber", "--trials", "4", "--repeats", "2", *words),
        *("--out", tmp_path / "out", "--store", tmp_path / "store.db", "--json"),
    )
    found = json.loads(done.stdout)
    assert found["short"] is None and found["further"]["seeds"] == 1 + fidelity.SEEDS


def test_the_worth_of_the_levels_is_told(tmp_path: Path) -> None:
    file = tmp_path / "load.fio"
    file.write_text("[reader]\ndirect=1\nrw=randread\nsize=64m\nnumber_ios=400\n")
    done = tuned(
        *("--disk", "su800-128gb", "--workload", file, "--scheduler", "none", "--trials", "4"),
        *("--repeats", "2", "--out", tmp_path / "out", "--store", tmp_path / "store.db"),
    )
    flat = " ".join(done.stdout.split())
    assert "no short runs: too few settings of the screening differ to judge them by" in flat
    assert "each setting had 1 of 5 seeds" in flat


def test_a_gain_that_chance_may_have_made_does_not_hide_one_that_is_shown() -> None:
    gains = {
        "bfq:slice_idle=0": Interval(1.93, 0.34, 11.0),
        "kyber:nr_requests=4": Interval(1.36, 1.24, 1.49),
        "kyber": Interval(1.0, 1.0, 1.0),
    }
    figures = {name: [1.0, 1.1] for name in ("none", *gains)}
    confirmed = Confirmed(
        "sim", "disk", 10, decide(figures), gains, dict.fromkeys(figures, 0), None, None, None
    )
    defaults = tuple((SchedulerSpec(name), Score(0.0, (0.0,))) for name in ("none", "kyber"))
    found = Found((), defaults, (), {}, (), 4, False, None, None, 4.0)
    assert recommended(confirmed, found, "none") == "kyber:nr_requests=4"
