"""`blklab tune`: the space, the objective, the search, and what becomes of an interrupted one."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import blklab
from blklab.base.catalogue import Entry
from blklab.domain import specs
from blklab.domain.experiment import SchedulerSpec
from blklab.domain.space import Knob, Space, spaces
from blklab.domain.task import Task
from blklab.errors import InputError
from blklab.execute import Ended, Failed, Local
from blklab.experiment.statistics import kendall_tau
from blklab.rigs.sim import SimRig
from blklab.tuning import goal
from blklab.tuning.bench import Bench, Question
from blklab.tuning.search import search
from blklab.tuning.tried import Run, Tried, of_search
from tests.competing import recorded

BLKLAB = str(Path(sys.executable).with_name("blklab"))
JOB = """[global]
direct=1
size=64m
runtime=400ms
time_based
[reader]
rw=randread
bs=4k
[writer]
rw=randwrite
bs=64k
ioengine=libaio
iodepth=32
"""


def job(text: str = JOB) -> Entry:
    return Entry("load", Path("load.fio"), text)


def tuned(*words: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [BLKLAB, "tune", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done


class Counting:
    """Runs tasks like `Local`, and counts them; after `ends_after` of them it is interrupted."""

    def __init__(self, rig: SimRig, ends_after: float = math.inf) -> None:
        self.rig, self.count, self.ends_after = rig, 0, ends_after

    def run(
        self,
        tasks: Sequence[Task],
        ended: Callable[[Sequence[Ended]], None],
        failed: Callable[[Failed], None] | None = None,
    ) -> None:
        def counted(events: Sequence[Ended]) -> None:
            for event in events:
                self.count += 1
                ended([event])
                if self.count >= self.ends_after:
                    raise KeyboardInterrupt

        Local(1, self.rig).run(tasks, counted, failed)


def bench(tried: Tried, ends_after: float = math.inf, objective: str = "p99(reader)") -> Bench:
    rig = SimRig()
    disk = specs.disk("su800-128gb")
    question = Question(
        disk, (job(),), goal.parse(objective), SchedulerSpec("mq-deadline"), 1, False
    )
    return Bench(question, rig, Counting(rig, ends_after), tried)


def test_every_tunable_is_tried_at_its_default_and_within_its_bounds() -> None:
    for name in ("none", "mq-deadline", "kyber", "bfq", "cfq"):
        [space] = spaces([SchedulerSpec(name)])
        assert not [knob for knob in space.knobs if knob.name.endswith("_us")]
        for knob in space.knobs:
            assert knob.default in knob.values and list(knob.values) == sorted(set(knob.values))
            for value in knob.values:
                specs.scheduler(f"{name}:{knob.name}={value}")
                SimRig().check_scheduler(space.spec({knob.name: value}))


def test_a_setting_of_the_user_is_not_searched() -> None:
    [space] = spaces([specs.scheduler("bfq:low_latency=0")])
    assert "low_latency" not in {knob.name for knob in space.knobs}
    assert space.spec({}).text == "bfq:low_latency=0"
    with pytest.raises(InputError, match="'bfq' is given twice"):
        spaces([SchedulerSpec("bfq"), SchedulerSpec("bfq", (("low_latency", "0"),))])
    with pytest.raises(InputError, match="the search is on the simulator"):
        spaces([specs.scheduler("bfq@mine")])


@given(st.data())
def test_settings_come_back_from_the_scheduler_that_they_make(data: st.DataObject) -> None:
    [space] = spaces([SchedulerSpec("mq-deadline")])
    values = {knob.name: data.draw(st.sampled_from(knob.values)) for knob in space.knobs}
    assert space.values(space.spec(values)) == values


def test_an_objective_is_a_figure_after_bounds() -> None:
    found = goal.parse("p99(start-up) < 300ms, throughput > 5MB/s, throughput(copy)")
    assert [(bound.figure.text, bound.below, bound.limit) for bound in found.bounds] == [
        ("p99(start-up)", True, 300_000.0),
        ("throughput", False, 5.0),
    ]
    assert [one.text for one in found.goals] == ["throughput(copy)"]
    assert [one.text for one in goal.parse("p99 + throughput").goals] == ["p99", "throughput"]
    assert found.bounds[0].excess(600_000.0) == pytest.approx(math.log(2))
    assert found.bounds[0].excess(299_000.0) == 0.0
    assert found.bounds[1].excess(2.5) == pytest.approx(math.log(2))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("p98", "no figure 'p98'; did you mean 'p99'?"),
        ("", "expected a figure such as p99"),
        ("p99 <", "expected a figure such as p99"),
        ("p99 < 20ms", "ends with a bound"),
        ("throughput, p99", "'throughput': expected a bound such as p99 < 20ms"),
        ("p99 < 20kg, throughput", "no unit 'kg' of p99; ns, us, ms, s"),
        ("p99 < 0ms, throughput", "expected a number above 0, found '0'"),
        ("p99 < 1.2.3ms, throughput", "expected a number above 0, found '1.2.3'"),
        ("fairness(copy)", "fairness is a figure of all jobs together, not of 'copy'"),
        ("p99 + p99", "'p99' is a goal twice"),
    ],
)
def test_a_wrong_objective_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        goal.parse(text)
    assert said in str(error.value) and "\n" not in str(error.value)


@given(st.text(max_size=40))
def test_any_text_is_an_objective_or_refused(text: str) -> None:
    try:
        found = goal.parse(text)
    except InputError as error:
        assert str(error)
    else:
        assert found.goals


def test_a_tunable_without_effect_is_found_and_not_recommended() -> None:
    [space] = spaces([SchedulerSpec("mq-deadline")])
    found = search(bench(Tried(None, print)), [space], trials=12, seed=1)
    effects = {effect.tunable: effect.most for effect in found.effects}
    # Nothing has a priority class, and all I/O is direct.
    assert effects["prio_aging_expire"] == effects["read_ahead_kb"] == 1.0
    assert effects["nr_requests"] > 1.0
    searched = {name for spec, _ in found.best for name, _ in spec.settings}
    assert not searched & {"prio_aging_expire", "read_ahead_kb"}


def test_all_settings_are_tried_if_there_are_few_and_the_best_of_them_is_found() -> None:
    base = SchedulerSpec("mq-deadline")
    space = Space(base, (Knob("fifo_batch", (1, 16, 64), 16), Knob("writes_starved", (0, 2, 8), 2)))
    here = bench(Tried(None, print))
    found = search(here, [space], trials=9, seed=1)
    every = [
        space.spec({"fifo_batch": batch, "writes_starved": starved})
        for batch in (1, 16, 64)
        for starved in (0, 2, 8)
    ]
    scores = dict(zip(every, here.scores(every), strict=True))
    best = max(score.gains[0] for score in scores.values() if score)
    assert found.enumerated
    # Within what a setting must bring to be kept.
    assert found.best[0][1].gains[0] == pytest.approx(best, abs=2 * math.log(1.005))
    for name, lost in found.worth.items():
        assert lost > 1.0, name


def test_an_interrupted_search_runs_nothing_twice_and_ends_in_the_same_place(
    tmp_path: Path,
) -> None:
    [space] = spaces([SchedulerSpec("mq-deadline"), SchedulerSpec("bfq")])[:1]
    whole = bench(Tried(None, print))
    expected = search(whole, [space], trials=10, seed=3)
    total = whole.executor.count  # type: ignore[attr-defined]
    path = tmp_path / "runs.jsonl"
    first = bench(Tried(path, print), ends_after=17)
    with pytest.raises(KeyboardInterrupt):
        search(first, [space], trials=10, seed=3)
    # A kill cuts the last line short.
    path.write_bytes(path.read_bytes()[:-5])
    second = bench(Tried(path, print))
    assert len(second.tried.runs) == 16
    assert search(second, [space], trials=10, seed=3) == expected
    assert second.executor.count == total - 16  # type: ignore[attr-defined]
    assert len(Tried(path, print).runs) == total


def test_a_search_that_cannot_be_kept_goes_on_and_says_so_once(tmp_path: Path) -> None:
    told: list[str] = []
    (tmp_path / "file").write_text("")
    tried = Tried(tmp_path / "file" / "runs.jsonl", told.append)
    for number in range(3):
        tried.keep(Run(str(number), (1.0,)))
    assert len(tried.runs) == 3
    assert len(told) == 1 and "the search goes on, but is not kept" in told[0]


@given(st.binary(max_size=200))
def test_a_damaged_file_of_runs_loses_no_more_than_its_damaged_lines(
    tmp_path_factory: pytest.TempPathFactory, damage: bytes
) -> None:
    path = tmp_path_factory.mktemp("runs") / "runs.jsonl"
    Tried(path, print).keep(Run("a", (1.0, None), ("reader",)))
    path.write_bytes(path.read_bytes() + damage + b"\n")
    tried = Tried(path, print)
    assert tried.runs["a"].values == (1.0, None)
    tried.keep(Run("b", (2.0,)))
    assert Tried(path, print).runs["b"].values == (2.0,)


def test_the_file_of_a_search_is_another_one_for_another_question(tmp_path: Path) -> None:
    one, other = (of_search(text, tmp_path, print) for text in ("one", "other"))
    one.keep(Run("a", (1.0,)))
    other.keep(Run("a", (2.0,)))
    assert len(list(tmp_path.iterdir())) == 2
    one.forget()
    assert len(list(tmp_path.iterdir())) == 1


def test_bounds_come_before_the_goal() -> None:
    here = bench(Tried(None, print), objective="p99(reader) < 1us, throughput(writer)")
    [plain, other] = here.scores([SchedulerSpec("mq-deadline"), SchedulerSpec("none")])
    assert plain is not None and other is not None and plain.excess > 0.0
    assert max([plain, other], key=lambda score: score.key).excess == min(
        plain.excess, other.excess
    )
    with pytest.raises(InputError, match=r"no load has a figure for p99\(x\); there are the jobs"):
        bench(Tried(None, print), objective="p99(x)").scores([SchedulerSpec("none")])


def test_tau_is_one_in_the_same_order_and_minus_one_in_the_reverse() -> None:
    assert kendall_tau([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]) == 1.0
    assert kendall_tau([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) == -1.0
    assert kendall_tau([1.0, 2.0, 3.0], [1.0, 3.0, 2.0]) == pytest.approx(1 / 3)
    assert kendall_tau([1.0, 1.0], [1.0, 2.0]) == 0.0
    assert kendall_tau([1.0], [1.0]) is None


def test_tuning_recommends_what_fresh_seeds_confirm(tmp_path: Path) -> None:
    file = tmp_path / "load.fio"
    file.write_text(JOB)
    done = tuned(
        *("--disk", "su800-128gb", "--workload", file, "--objective", "p99(reader)"),
        *("--scheduler", "mq-deadline", "--trials", "16", "--repeats", "4"),
        *("--out", tmp_path / "out", "--store", tmp_path / "store.db", "--json"),
    )
    found = json.loads(done.stdout)
    [confirmed] = found["confirmed"]
    assert found["reference"] == "mq-deadline" and confirmed["repeats"] == 4
    assert found["best"] in {"mq-deadline", *confirmed["gains"]}
    if found["gain"] is not None:
        assert found["gain"]["low"] > 1.0
    assert (tmp_path / "out/report.html").is_file()
    assert confirmed["kept"] is not None
    assert not list((tmp_path / "tune").glob("*")), "the runs of a search that has ended are gone"


def test_where_no_settings_matter_the_default_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "alone.fio"
    file.write_text("[reader]\ndirect=1\nrw=randread\nsize=64m\nnumber_ios=400\n")
    found = blklab.tune(
        disk="su800-128gb",
        workloads=[file],
        objective="p99",
        schedulers=["none"],
        against="none",
        trials=8,
        repeats=3,
        store=str(tmp_path / "store.db"),
    )
    assert (found.best, found.gain, found.enumerated) == ("none", None, False)


def test_settings_are_searched_for_a_recorded_load_in_several_ways(tmp_path: Path) -> None:
    load = recorded(tmp_path / "load.rec")
    found = blklab.tune(
        disk="wd10ezrx",
        workloads=[f"{load}:way=inferred", f"{load}:way=open"],
        objective="p99",
        schedulers=["mq-deadline"],
        against="mq-deadline",
        worst_case=True,
        trials=12,
        repeats=3,
        store=str(tmp_path / "store.db"),
    )
    assert found.workloads == ("load.rec:way=inferred", "load.rec:way=open")
    [confirmed] = found.confirmed
    assert confirmed.repeats == 3 and "mq-deadline" in {found.best, found.reference}
    # A setting is recommended if it is ahead, in both ways.
    assert (found.best == "mq-deadline") == (found.gain is None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--workload", "sqlite"], "sqlite: is a program; a search needs a job file"),
        (["--workload", "randread", "--objective", "p98"], "no figure 'p98'"),
        (["--workload", "randread", "--scheduler", "cqf"], "no scheduler 'cqf'"),
        (
            ["--workload", "randread", "--confirm", "live"],
            "--confirm: expected kernel, or live:DIR",
        ),
        (["--workload", "randread", "--confirm", "sim"], "DIRECTORY with a directory of the disk"),
        (["--workload", "randread", *["--confirm", "kernel"] * 2], "'kernel' is given twice"),
        (["--workload", "randread", "--confirm", "live:/no/where"], "/no/where: no such"),
        (
            ["--workload", "randread", "--confirm", "live:/", "--host", "cpus=4"],
            "--host: cpus: not with --confirm live, whose host is this machine",
        ),
        (["--workload", "randread", "--objective", "p99(x)"], "no load has a figure for p99(x)"),
    ],
)
def test_wrong_words_are_refused_in_one_line(words: list[str], said: str, tmp_path: Path) -> None:
    done = tuned("--disk", "su800-128gb", *words, "--store", tmp_path / "s.db", code=2)
    lines = [line for line in done.stderr.splitlines() if line.startswith("blklab")]
    assert len(lines) == 1 and said in lines[0], done.stderr
