"""Plan, run, analyse, decide, keep, render: each step on plain data."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from blklab.base.catalogue import Entry
from blklab.base.files import check_directory, write_together, write_whole
from blklab.domain import defaults, results_file, specs
from blklab.domain.comparison import Planned, Setup, plan
from blklab.domain.conditions import RigData
from blklab.domain.events import Finished, Nowhere
from blklab.domain.experiment import Disk, Experiment, RigSpec, SchedulerSpec
from blklab.domain.latencies import latencies
from blklab.domain.measurement import Measurement, from_json, measure
from blklab.domain.result import Figure, Result
from blklab.domain.scheduler import Scheduler
from blklab.domain.setup import SetupData
from blklab.domain.task import Task
from blklab.errors import InputError, RunError
from blklab.execute import Ended, Local, carried_out, carry_out
from blklab.experiment.analyse import analyse, waited_for
from blklab.experiment.statistics import Unranked, decide
from blklab.experiment.words import sentence, short
from blklab.rigs.modelled import ModelledDisks
from tests import plausible


def entry(name: str) -> Entry:
    return Entry(name, Path(name), f"[{name}]\n")


def setup(repeats: int = 4, seed: int = 1) -> Setup:
    return Setup(
        (Disk(entry("hdd")), Disk(entry("ssd"), (("dies", "4"),))),
        (entry("reads"), entry("writes")),
        tuple(map(specs.scheduler, ("none", "mq-deadline:fifo_batch=1"))),
        repeats,
        seed,
    )


class Plausible(ModelledDisks):
    """A rig that returns made results: mq-deadline is half again as fast on the HDD."""

    name = "plausible"
    spec = RigSpec("plausible")

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def run(self, experiment: Experiment) -> Result:
        fast = experiment.scheduler.name != "none" and experiment.disk.file.name == "hdd"
        mean_ns = 8e6 / (1.5 if fast else 1.0)
        duration_ns = round(3e9 / (1.5 if fast else 1.0) * (1 + experiment.seed / 1e3))
        return plausible.result(experiment.seed, mean_ns=mean_ns, duration_ns=duration_ns, syncs=30)

    def describe(self) -> RigData:
        return {"text": ""}

    def check_host(self, changed: Mapping[str, int]) -> dict[str, int]:
        return dict(changed)

    def check_scheduler(self, spec: SchedulerSpec) -> Scheduler:
        return Scheduler(spec.label, {}, {})

    def position(self) -> tuple[float, float | None]:
        return 0.0, None

    def cancel(self) -> None:
        self.cancelled.set()


def measured(threads: int = 2) -> list[Measurement]:
    rig = Plausible()
    return carry_out(plan(setup()), rig, Local(threads, rig), lambda _: None, Nowhere(""))


def described() -> SetupData:
    """A minimal set-up."""
    asked = setup()
    text = {"text": "", "summary": ""}
    told = {
        "rig": "sim",
        "rig_setup": {"text": ""},
        "seed": asked.seed,
        "repeats": asked.repeats,
        "host": {},
        "versions": {"blklab": "0", "python": "3"},
        "disks": [
            text | {"label": disk.label, "parameters": [], "limits": {}} for disk in asked.disks
        ],
        "workloads": [text | {"name": load.name, "ignored": []} for load in asked.workloads],
        "schedulers": [
            {"label": spec.label, "name": spec.name, "summary": "", "follows": "", "tunables": []}
            for spec in asked.schedulers
        ],
    }
    return cast(SetupData, told)


def test_a_plan_runs_everything_once_and_pairs_schedulers_by_seed() -> None:
    runs = plan(setup())
    assert Counter(run.place for run in runs) == Counter(
        (d, w, s, r) for d in range(2) for w in range(2) for s in range(2) for r in range(4)
    )
    assert {run.repeat: run.experiment.seed for run in runs} == {0: 1, 1: 2, 2: 3, 3: 4}


def test_a_plan_is_interleaved_and_the_same_for_the_same_seed() -> None:
    runs = plan(setup())
    assert [run.repeat for run in runs] == sorted(run.repeat for run in runs)
    assert [run.place for run in runs] == [run.place for run in plan(setup())]
    assert [run.place for run in runs] != [run.place for run in plan(setup(seed=2))]
    assert [run.place[:3] for run in runs[:8]] != [run.place[:3] for run in runs[8:16]]


def test_omitted_pairs_are_not_planned_and_all_others_are() -> None:
    disks = tuple(specs.disk(name) for name in defaults.DISKS)
    usual = defaults.schedulers("sim")
    left_out = defaults.left_out(disks, usual)
    assert [(pair.disk, pair.scheduler) for pair in left_out] == [("950pro-256gb", "cfq")]
    loads = tuple(specs.workload(name) for name in defaults.WORKLOADS)
    asked = tuple(map(specs.scheduler, usual))
    pairs = {
        (run.disk.label, run.scheduler.label)
        for run in plan(Setup(disks, loads, asked, 2, 1, left_out=left_out))
    }
    everything = {(disk.label, name) for disk in disks for name in usual}
    assert everything - pairs == {("950pro-256gb", "cfq")} and pairs < everything
    assert "cfq" not in defaults.schedulers("kernel")


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(InputError, match="'none' is given twice"):
        replace(setup(), schedulers=(specs.scheduler("none"),) * 2)


def test_results_come_in_the_order_for_people_on_one_core_or_many() -> None:
    one, many = measured(1), measured(4)
    assert [asdict(run) for run in one] == [asdict(run) for run in many]
    labels = [(m.disk, m.workload, m.scheduler, m.repeat) for m in one]
    assert labels[:2] == [("hdd", "reads", "none", 0), ("hdd", "reads", "none", 1)]
    assert labels[-1] == ("ssd:dies=4", "writes", "mq-deadline:fifo_batch=1", 3)


class Failing(Plausible):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def run(self, experiment: Experiment) -> Result:
        if experiment.seed == 2:
            raise self.error
        return super().run(experiment)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (InputError("bad"), InputError),
        (RuntimeError("stuck at 3 s"), RunError),
        (MemoryError(), RunError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_the_first_failure_stops_all_runs(
    error: BaseException, expected: type[BaseException]
) -> None:
    rig = Failing(error)
    with pytest.raises(expected):
        carry_out(plan(setup()), rig, Local(2, rig), lambda _: None, Nowhere(""))
    assert rig.cancelled.is_set()
    assert not [t for t in threading.enumerate() if t.name.startswith("blklab")]


def test_the_error_of_a_failed_run_names_the_run() -> None:
    rig = Failing(RuntimeError("stuck"))
    with pytest.raises(RunError, match=r"(reads|writes) on (hdd|ssd:dies=4) under .*: stuck"):
        carry_out(plan(setup()), rig, Local(2, rig), lambda _: None, Nowhere(""))


def test_measurements_survive_json() -> None:
    for measurement in measured():
        document = json.loads(json.dumps(asdict(measurement)))
        assert asdict(from_json(document)) == asdict(measurement)


def test_throughput_divides_by_the_time_of_jobs_that_follow_each_other() -> None:
    made = plausible.run(jobs=3, write_ios=0)
    together = measure(planned().experiment, Result.from_run(made), repeat=0)
    for place, job in enumerate(made.document["jobs"]):
        job["group"] = place
        for key in ("start_ns", "end_ns"):
            job[key] += place * 3_000_000_000
    one_by_one = measure(planned().experiment, Result.from_run(made), repeat=0)
    assert together.bytes_per_s == pytest.approx(1200 * 4096 / 3.0)
    assert one_by_one.bytes_per_s == pytest.approx(together.bytes_per_s / 3)


def test_a_mean_latency_counts_each_io_and_not_each_job() -> None:
    made = plausible.run(jobs=2, write_ios=0)
    for job, count, mean_ns in zip(
        made.document["jobs"], (300, 100), (5000.0, 1000.0), strict=True
    ):
        job["read"]["clat"] |= {"count": count, "mean_ns": mean_ns}
    assert latencies(Result.from_run(made).jobs)["read"].mean_ns == 4000.0


def planned() -> Planned:
    return plan(setup())[0]


def test_the_analysis_finds_the_faster_scheduler_and_where_none_is() -> None:
    analysis = analyse(measured(), "both")
    for cell in analysis.cells:
        verdict = cell.verdicts["throughput"]
        assert verdict is not None
        expected = "mq-deadline:fifo_batch=1" if cell.disk == "hdd" else None
        assert verdict.winner == expected
        assert cell.operation == "read"
        assert len(cell.rows) == 2
    assert cell.disk == "ssd:dies=4"
    advice = analysis.recommendations["hdd"]
    assert {name: verdict and verdict.winner for name, verdict in advice.items()} == dict.fromkeys(
        ("throughput", "latency", "both"), "mq-deadline:fifo_batch=1"
    )
    assert analysis.recommendations["ssd:dies=4"]["both"].winner is None


def test_the_latency_is_that_of_the_operation_with_waiting_processes() -> None:
    [run, *_] = measured()
    some = run.latencies["read"]
    for seen, waited in (("read sync write", "read"), ("write sync", "sync"), ("write", "write")):
        one = replace(run, latencies=dict.fromkeys(seen.split(), some))
        assert waited_for({"none": [one]}) == waited
    # Only some runs have seen reads.
    writes = replace(run, latencies={"write": some})
    assert waited_for({"none": [run, writes]}) == "write"


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_programs_are_ranked_by_their_figure_in_its_direction(higher_is_better: bool) -> None:
    runs = [
        replace(
            run, figure=Figure(30.0 if run.scheduler == "none" else 20.0, "s", higher_is_better)
        )
        for run in measured()
    ]
    verdict = analyse(runs, "throughput").cells[0].verdicts["throughput"]
    assert verdict.winner == ("none" if higher_is_better else "mq-deadline:fifo_batch=1")


def test_a_load_without_io_is_not_measured() -> None:
    empty = [replace(run, bytes_per_s=0.0, latencies={}) for run in measured()]
    analysis = analyse(empty, "both")
    verdict = analysis.cells[0].verdicts["both"]
    assert isinstance(verdict, Unranked) and verdict.winner is None
    assert short(verdict) == "not measured"


def test_a_note_is_told_once_with_the_schedulers_that_it_is_about() -> None:
    runs = [
        replace(one, notes=("busy", "hot") if one.scheduler == "none" else ("busy",))
        for one in measured()
    ]
    schedulers = list(dict.fromkeys(one.scheduler for one in runs))
    assert len(schedulers) > 1
    notes = analyse(runs, "both").notes
    assert sorted(notes) == sorted([f"{', '.join(schedulers)}: busy", "none: hot"])


def test_words_name_the_winner_and_its_lead_or_the_minimum_detectable() -> None:
    clear = decide({"a": [150.0, 151.0, 149.0], "b": [100.0, 100.5, 99.0]})
    assert re.fullmatch(
        r"a is 50\.\d % faster than b \(.* % to .* %\)", sentence(clear, "throughput")
    )
    tie = decide({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0]})
    assert sentence(tie, "both") == "no significant difference (minimum detectable: 2.0 %)"
    noisy = decide({"a": [1.0, 3.0, 2.0], "b": [2.0, 1.0, 3.0]})
    assert sentence(noisy, "both").startswith("not known (minimum detectable: ")
    assert short(noisy) == "not known"
    wild = decide({"a": [1.0, 9e9, 2.0], "b": [2e9, 1.0, 3.0]})
    assert (
        "minimum detectable: more than 1000 times; more repeats detect smaller differences"
        in sentence(wild, "both")
    )
    single = decide({"a": [1.0], "b": [2.0]})
    assert "use more --repeats or a longer --budget" in sentence(single, "both")
    pair = decide({"a": [9.0, 9.0], "b": [9.0, 9.0], "c": [3.0, 3.0]})
    assert sentence(pair, "both").endswith("; c is behind")
    assert short(pair) == "a or b"
    many = decide({"first": [9.0, 9.0], "second": [9.0, 9.0], "third": [9.0, 9.0], "c": [3.0, 3.0]})
    assert short(many) == "any but c"
    assert sentence(many, "both").startswith("first, second and third: no significant")


def test_a_results_file_is_read_back_and_others_are_refused(tmp_path: Path) -> None:
    results = results_file.Results(described(), tuple(measured()))
    path = tmp_path / "results.json"
    path.write_text(results_file.to_text(results))
    assert results_file.to_text(results_file.load(tmp_path)) == results_file.to_text(results)
    # As versions without notes wrote it.
    path.write_text(results_file.to_text(results).replace(',"notes":[]', ""))
    assert '"notes"' not in path.read_text()
    assert results_file.load(path) == results
    deep = '{"format": 1, "setup": ' + "[" * 100_000 + "]" * 100_000 + "}"
    wrongs = ("", "[]", '{"format": 99}', '{"format": 1, "setup": {}, "runs": [{}]}', deep)
    for wrong in wrongs:
        path.write_text(wrong)
        with pytest.raises(InputError, match=r"results\.json"):
            results_file.load(path)
    with pytest.raises(InputError, match="No such file"):
        results_file.load(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("runs",), [], r"\$\.runs: 0 runs, expected 32 from the set-up"),
        (
            ("runs", 0, "scheduler"),
            "bfq",
            r"\$\.runs\[0\]: of a disk, workload or scheduler that is",
        ),
        (
            ("runs", 1, "repeat"),
            0,
            r"\$\.runs\[1\]\.repeat: repeat 0 is duplicated or out of range",
        ),
        (
            ("runs", 0, "bytes_per_s"),
            None,
            r"got `null` - at `\$\.runs\[0\]\.bytes_per_s`",
        ),
        (
            ("runs", 0, "bytes_per_s"),
            1e308,
            r"Expected `float` <= 1e\+18 - at `\$\.runs\[0\]\.bytes_per_s`",
        ),
        (("runs", 0, "latencies", "read", "count"), [1], r"latencies.read: columns of different"),
        (("setup", "disks", 0, "label"), "ssd:dies=4", r"\$\.setup\.disks: duplicate entry"),
        (("setup", "repeats"), 5, r"\$\.runs: 32 runs, expected 40 from the set-up"),
        (
            ("setup", "stopping"),
            5,
            r"got `int` - at `\$\.setup\.stopping`",
        ),
    ],
)
def test_results_that_do_not_fit_are_refused(
    tmp_path: Path, path: tuple[Any, ...], value: Any, message: str
) -> None:
    document = json.loads(
        results_file.to_text(results_file.Results(described(), tuple(measured())))
    )
    *before, last = path
    place = document
    for step in before:
        place = place[step]
    place[last] = value
    (tmp_path / "results.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=rf"results\.json: .*{message}"):
        results_file.load(tmp_path)


def test_a_file_is_replaced_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    write_whole(path, "before")

    def full(_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RunError, match=r"report\.html: not written: No space left on device"):
        write_whole(path, "after")
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_files_that_belong_together_are_replaced_all_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "results.json", tmp_path / "report.html"
    write_together({first: "old", second: "old"})
    synced: list[int] = []

    def full_at_the_second(handle: int) -> None:
        synced.append(handle)
        if len(synced) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_at_the_second)
    with pytest.raises(RunError, match=r"report\.html: not written: No space left on device"):
        write_together({first: "new", second: "new"})
    assert (first.read_text(), second.read_text()) == ("old", "old")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.html", "results.json"]
    write_together({first: "new", second: "new"})
    assert (first.read_text(), second.read_text()) == ("new", "new")


def test_files_that_must_survive_a_power_failure_are_synced_with_their_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []

    def sync(handle: int) -> None:
        synced.append(Path(f"/proc/self/fd/{handle}").readlink())

    monkeypatch.setattr("os.fsync", sync)
    write_together({tmp_path / "one": "1", tmp_path / "two": "2"})
    assert [path.is_dir() for path in synced] == [False, False, True]
    assert synced[-1] == tmp_path
    synced.clear()
    write_together({tmp_path / "one": "1"}, durable=False)
    assert synced == []


def test_a_directory_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    check_directory(tmp_path / "new" / "deeper")
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file is not a directory$"):
        check_directory(tmp_path / "file" / "reports")


def test_a_device_is_written_to_and_never_replaced() -> None:
    write_whole(Path("/dev/null"), "x")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(RunError, match="/dev/full: not written: No space left on device"):
        write_whole(Path("/dev/full"), "x")
    assert Path("/dev/full").is_char_device()


class Recording:
    """A remote executor: it receives plain tasks, and reports their ends in its own order."""

    def __init__(self) -> None:
        self.seen: list[Experiment] = []

    def run(self, tasks: Any, ended: Any, failed: Any = None) -> None:
        assert failed is None, "a comparison ends with the first failure"
        now = datetime.now(UTC)
        for number, task in reversed(list(enumerate(tasks))):
            self.seen.append(task.experiment)
            found = carried_out(Task.from_bytes(task.to_bytes()), Plausible()).found
            ended([Ended(number, found, now, now)])


def test_any_executor_gives_the_same_in_the_order_of_the_plan() -> None:
    elsewhere = Recording()
    told: list[Finished] = []
    found = carry_out(plan(setup()), Plausible(), elsewhere, told.append, Nowhere(""))
    assert found == measured()
    assert len(told) == len(found) == len(elsewhere.seen)
    assert [one.planned.experiment for one in told] == elsewhere.seen
    assert told[0].planned == plan(setup())[-1]


def test_kept_runs_are_not_repeated_and_each_new_run_is_kept_under_its_number() -> None:
    class Kept(Nowhere):
        numbers: ClassVar[list[int]] = []

        def keep(self, runs: Mapping[int, Finished]) -> None:
            self.numbers.extend(runs)

    runs = plan(setup())
    before = dict(enumerate(measured()))
    keeper = Kept("", kept={number: before[number] for number in (0, 2)})
    elsewhere = Recording()
    found = carry_out(runs, Plausible(), elsewhere, lambda _: None, keeper)
    assert len(found) == len(runs) == len(elsewhere.seen) + 2
    assert sorted([*keeper.numbers, 0, 2]) == list(range(len(runs)))
    assert carry_out(runs[:2], Plausible(), Recording(), lambda _: None, keeper, first=10)
    assert keeper.numbers[-2:] == [11, 10]
