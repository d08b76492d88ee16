"""Recorded I/O in its recorded cgroups, on the simulator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.ipc
import pytest
from typer.testing import CliRunner

import blklab
from blklab.api.whatif import recording_entry
from blklab.cli import app
from blklab.domain import recordings
from blklab.errors import InputError
from tests.test_kernel_replay import altered

JOB = """
[global]
rw=read
bs=128k
direct=1
size=64m
[one]
cgroup=one
[many]
cgroup=many
numjobs=3
"""
PLAIN = JOB.replace("cgroup=one\n", "").replace("cgroup=many\n", "")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with recordings of four readers: in two cgroups, and in none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BLKLAB_STORE", str(tmp_path / "store.db"))
    for name, job in (("load", JOB), ("plain", PLAIN)):
        blklab.record_run(job, f"{name}.rec", disk="su800-128gb", scheduler="none")
    return tmp_path


def run(load: str, scheduler: str = "bfq") -> blklab.Result:
    return blklab.run_job(load, disk="wd10ezrx", scheduler=scheduler).result


def truth(job: str, scheduler: str = "bfq") -> blklab.Result:
    """The job itself in the place of the replays."""
    Path("job.fio").write_text(job)
    return run("job.fio", scheduler)


def ends(result: blklab.Result) -> list[int]:
    """When each process ended; the one that is alone in its cgroup is the first."""
    return [job.end_ns for job in result.jobs]


@pytest.mark.parametrize("scheduler", ["bfq", "cfq"])
@pytest.mark.parametrize("way", ["closed", "inferred"])
def test_a_replay_has_the_cgroups_of_the_job_and_one_without_those_of_none(
    here: Path, way: str, scheduler: str
) -> None:
    """Recorded on another disk under another scheduler."""
    expected, none = truth(JOB, scheduler), truth(PLAIN, scheduler)
    assert ends(run(f"load.rec:way={way}", scheduler)) == pytest.approx(ends(expected), rel=0.01)
    found = run(f"load.rec:way={way},cgroups=none", scheduler)
    assert ends(found) == pytest.approx(ends(none), rel=0.01)
    assert ends(expected)[0] < 0.6 * ends(none)[0], "one process has as much as three together"


def test_schedulers_without_cgroups_do_not_see_them(here: Path) -> None:
    for scheduler in ("none", "mq-deadline", "kyber"):
        found, none = (run(f"load.rec{more}", scheduler) for more in ("", ":cgroups=none"))
        assert [job.end_ns for job in found.jobs] == [job.end_ns for job in none.jobs]


def test_a_recording_without_cgroups_is_replayed_to_the_last_digit_as_with_none(here: Path) -> None:
    for scheduler in ("bfq", "cfq"):
        found, none = (run(f"plain.rec{more}", scheduler) for more in ("", ":cgroups=none"))
        assert not found.notes
        assert [job.read.lat for job in found.jobs] == [job.read.lat for job in none.jobs]
        assert np.array_equal(found.overview.completed_ns, none.overview.completed_ns)


def test_a_weight_is_given_by_path_and_the_result_says_which_were_not_recorded(here: Path) -> None:
    found = run("load.rec:way=closed,cgroup_weight/one=300")
    heavy = truth(JOB.replace("cgroup=one", "cgroup=one\ncgroup_weight=300"))
    assert ends(found) == pytest.approx(ends(heavy), rel=0.01)
    assert ends(found)[0] < 0.6 * ends(run("load.rec"))[0]
    assert any("recorded cgroups: 2, with weight 100 but for 1" in note for note in found.notes)
    assert any("weight 100 each" in note for note in run("load.rec").notes)
    both = "cgroup_weight/one=300,cgroup_weight/many=100"
    assert not any("weight" in note for note in run(f"load.rec:{both}").notes)


def test_a_replay_that_is_recorded_keeps_cgroups_and_paths(here: Path) -> None:
    blklab.record_run("load.rec", "again.rec", disk="wd10ezrx", scheduler="bfq")
    for file in ("load.rec", "again.rec"):
        table = pyarrow.ipc.open_stream(file).read_all().to_pydict()
        found = set(zip(table["process"], table["cgroup_path"], strict=True))
        assert found == {("one", "/one"), ("many", "/many")}


def test_a_process_in_several_cgroups_stays_one_process_in_the_cgroup_of_each_io(
    here: Path,
) -> None:
    """It moves in the middle: its later I/Os are beside those of the three."""

    def moved(columns: dict[str, list[Any]]) -> None:
        rows = [row for row, name in enumerate(columns["process"]) if name == "one"]
        other = columns["process"].index("many")
        for row in rows[len(rows) // 2 :]:
            for name in ("cgroup", "cgroup_path"):
                columns[name][row] = columns[name][other]

    altered("load.rec", "moved.rec", moved)
    scheduler = "bfq:low_latency=0"
    loads = ("load.rec:way=closed", "moved.rec:way=closed", "load.rec:way=closed,cgroups=none")
    stays, found, none = (run(load, scheduler) for load in loads)
    assert [job.name for job in found.jobs] == [job.name for job in stays.jobs]
    assert [job.read.ios for job in found.jobs] == [512] * 4
    # Half of its data with half of the disk, the rest with a quarter.
    assert 1.2 * ends(stays)[0] < ends(found)[0] < 0.9 * ends(none)[0]
    assert any("1 processes were in several cgroups" in note for note in found.notes)
    blklab.record_run("moved.rec", "again.rec", disk="wd10ezrx", scheduler="bfq")
    table = pyarrow.ipc.open_stream("again.rec").read_all().to_pydict()
    paths = [p for n, p in zip(table["process"], table["cgroup_path"], strict=True) if n == "one"]
    assert paths == ["/one"] * 256 + ["/many"] * 256


def test_cgroups_without_a_path_are_groups_by_their_numbers(here: Path) -> None:
    def unnamed(columns: dict[str, list[Any]]) -> None:
        columns["cgroup_path"] = [""] * len(columns["cgroup_path"])
        columns["cgroup"] = [70 if name == "one" else 80 for name in columns["process"]]

    altered("load.rec", "numbers.rec", unnamed)
    found = run("numbers.rec:way=closed,cgroup_weight/70=300")
    assert ends(found) == ends(run("load.rec:way=closed,cgroup_weight/one=300"))
    assert any("2 cgroups have a number and no path" in note for note in found.notes)


def test_cgroups_of_one_path_are_one_beside_a_job_and_in_several_recordings(here: Path) -> None:
    scheduler = "bfq:low_latency=0"
    Path("job.fio").write_text(JOB)
    for load in ("job.fio+load.rec:way=closed", "load.rec:way=closed+load.rec:way=closed"):
        found = run(load, scheduler)
        pairs = [job.end_ns for job in found.jobs if "one" in job.name]
        # `/one` has two processes, `/many` six.
        assert len(pairs) == 2 and max(pairs) < 0.7 * found.duration_ns


def test_compare_explain_whatif_and_tasks_have_cgroups(here: Path) -> None:
    def call(*words: str) -> str:
        done = CliRunner().invoke(app, list(words))
        assert done.exit_code == 0, done.output
        return done.stdout

    found = blklab.compare(
        workloads=["load.rec:way=closed", "load.rec:way=closed,cgroups=none"],
        disks=["wd10ezrx"],
        schedulers=["bfq"],
        repeats=1,
        keep=False,
    )
    first, second = (row.jobs[0].end_ns for row in found.results.runs)
    assert sorted((first, second))[0] < 0.6 * max(first, second)
    assert "of cgroup" in call(
        "explain", "load.rec", "--disk", "wd10ezrx", "--scheduler", "cfq", "--until", "500ms"
    )
    words = ["whatif", "load.rec", "--disk", "wd10ezrx", "--draws", "0", "--json"]
    words += ["--scheduler", "bfq", "--scheduler", "mq-deadline"]
    rows = {}
    for more in ((), ("--cgroups", "none"), ("--cgroup-weight", "/one=300")):
        document = json.loads(call(*words, *more))
        rows[more] = [row["latency_ns"] for row in document["rows"]]
        assert any("recorded cgroups" in note for note in document["notes"]) == (
            more != ("--cgroups", "none")
        )
    assert len({tuple(one) for one in rows.values()}) == 3


def test_weights_as_arguments_are_those_of_the_parameters(here: Path) -> None:
    entry = recording_entry("load.rec", cgroup_weights={"/one": 300, "many/": 20})
    assert recordings.chosen(entry).weights == (("one", 300), ("many", 20))


@pytest.mark.parametrize(
    ("load", "line"),
    [
        ("load.rec:cgroups=some", "cgroups: expected recorded, none, found 'some'"),
        ("load.rec:cgroup_weight/one=5", "expected a whole number, 10 to 1000, found '5'"),
        ("load.rec:cgroup_weight/one=1001", "expected a whole number, 10 to 1000, found '1001'"),
        ("load.rec:cgroup_weight/one=much", "expected a whole number, 10 to 1000, found 'much'"),
        ("load.rec:cgroup_weight=300", "has no parameter 'cgroup_weight'"),
        ("load.rec:cgroup_weight/=300", "no cgroup '/' in it; there is: /one, /many"),
        ("load.rec:cgroup_weight/two=300", "no cgroup '/two' in it; there is: /one, /many"),
        ("plain.rec:cgroup_weight/a=300", "no cgroup '/a' in it; there is: none beside the root"),
        ("load.rec:cgroups=none,cgroup_weight/one=200", "cgroups=none and cgroup_weight: give one"),
        (
            "load.rec:cgroup_weight/one=200+load.rec:cgroup_weight/one=300",
            "cgroup_weight=300, but recording 'load.rec#1' gives cgroup 'one' the weight 200",
        ),
        (
            "heavy.fio+load.rec:cgroup_weight/one=200",
            "cgroup_weight=200, but job 'one' gives cgroup 'one' the weight 500",
        ),
    ],
)
def test_each_way_of_getting_it_wrong_is_one_line(here: Path, load: str, line: str) -> None:
    Path("heavy.fio").write_text(JOB.replace("cgroup=one", "cgroup=one\ncgroup_weight=500"))
    with pytest.raises(InputError) as caught:
        run(load)
    assert line in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--cgroups", "some"), "--cgroups: no 'some'; there is: recorded, none"),
        (("--cgroup-weight", "/one"), "--cgroup-weight: expected PATH=WEIGHT, such as"),
        (("--cgroup-weight", "/one=x"), "found '/one=x'"),
        (("--cgroup-weight", "/one=5"), "expected a whole number, 10 to 1000, found '5'"),
    ],
)
def test_a_wrong_option_of_whatif_is_one_line(
    here: Path, words: tuple[str, ...], line: str
) -> None:
    ended = CliRunner().invoke(app, ["whatif", "load.rec", "--disk", "wd10ezrx", *words])
    assert isinstance(ended.exception, InputError), ended.output
    assert line in str(ended.exception) and "\n" not in str(ended.exception)
