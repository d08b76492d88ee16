"""Recorded I/O as a workload of every command that takes one."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.ipc
import pytest
from typer.testing import CliRunner, Result

import blklab
from blklab.cli import app
from blklab.domain import recordings, specs
from blklab.domain.experiment import Disk, Experiment, RigSpec, SchedulerSpec
from blklab.domain.task import Task, said
from blklab.errors import InputError
from blklab.execute import carried_out
from tests.competing import recorded


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("recorded") / "load.rec")


@pytest.fixture
def here(tmp_path: Path, recording: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The recording, in the current directory, which keeps results of its own."""
    shutil.copy(recording, tmp_path / "load.rec")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BLKLAB_STORE", str(tmp_path / "store.db"))
    return tmp_path / "load.rec"


def call(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def test_fio_prints_what_each_recorded_process_got(here: Path) -> None:
    ended = call("fio", "load.rec", "--disk", "wd10ezrx", "--output-format", "json", "--no-keep")
    jobs = json.loads(ended.stdout)["jobs"]
    assert [job["jobname"] for job in jobs] == ["copy-1", "reader-2"]
    assert [job["write"]["total_ios"] for job in jobs] == [256, 0]
    assert [job["read"]["total_ios"] for job in jobs] == [0, 150]
    again = blklab.replay_trace("load.rec", disk="wd10ezrx", host={})
    assert [job.write.ios for job in again.result.jobs] == [256, 0]


def test_a_replay_can_be_recorded_with_the_processes_of_the_recording(here: Path) -> None:
    done = call("record", "load.rec", "--disk", "su800-128gb", "--out", "again.rec")
    assert done.exit_code == 0, done.output

    def told(file: str) -> list[tuple[str, int, int, int]]:
        table = pyarrow.ipc.open_stream(file).read_all().to_pydict()
        names = ("process", "pid", "sector", "sectors")
        return sorted(zip(*(table[name] for name in names), strict=True))

    assert told("again.rec") == told("load.rec")


def test_a_comparison_takes_recordings_beside_jobs_and_is_stored_with_them(here: Path) -> None:
    words = ["load.rec", "load.rec:way=open,until=300ms", "randread:runtime=1"]
    found = blklab.compare(
        workloads=words, disks=["su800-128gb"], schedulers=["none", "kyber"], repeats=1, keep=False
    )
    names = [row.workload for row in found.results.runs]
    assert sorted(set(names)) == sorted(words)
    whole, part = (
        next(row for row in found.results.runs if row.workload == word) for word in words[:2]
    )
    assert 0 < part.disk_counters["write_ios"] < whole.disk_counters["write_ios"]
    assert [job.name for job in whole.jobs] == ["copy-1", "reader-2"]


def test_explain_shows_a_window_of_a_replay_and_only_the_wanted_process(here: Path) -> None:
    found = blklab.explain("load.rec", disk="wd10ezrx", scheduler="bfq", until="80ms")
    assert {"copy-1", "reader-2"} >= set(found.rows.values()) - {"kernel", "queue"}
    assert len(found.requests) > 3
    alone = blklab.explain("load.rec", disk="wd10ezrx", until="80ms", processes=["reader-2"])
    assert 0 < len(alone.requests) < len(found.requests)
    with pytest.raises(InputError, match="has no process 'reder-2'; did you mean 'reader-2'"):
        blklab.explain("load.rec", disk="wd10ezrx", processes=["reder-2"])


def experiment(text: str) -> Experiment:
    disk = Disk(specs.disk("su800-128gb").file)
    return Experiment(specs.workload(text), disk, SchedulerSpec("none"), 1)


def test_a_replay_is_a_task_whose_hash_has_the_file_and_its_parameters_but_not_its_path(
    here: Path, tmp_path: Path
) -> None:
    task = Task(RigSpec("sim"), experiment("load.rec:way=closed"), "result")
    (tmp_path / "elsewhere").mkdir()
    moved = shutil.copy(here, tmp_path / "elsewhere/load.rec")
    same = replace(task, experiment=experiment(f"{moved}:way=closed"))
    assert same.content_hash == task.content_hash
    other = replace(task, experiment=experiment("load.rec:way=open"))
    assert other.content_hash != task.content_hash
    there = Task.from_bytes(task.to_bytes())
    first, second = (carried_out(one).found for one in (task, there))
    assert isinstance(first, blklab.Result) and isinstance(second, blklab.Result)
    assert first.duration_ns == second.duration_ns
    shutil.copy(here, tmp_path / "changed.rec")
    blklab.cut_trace(here, tmp_path / "shorter.rec", until_ns=100_000_000)
    shorter = specs.workload(str(tmp_path / "shorter.rec"))
    assert said(shorter) != said(specs.workload("load.rec"))


def test_a_recording_that_changes_between_plan_and_run_is_refused(here: Path) -> None:
    planned = experiment("load.rec")
    here.write_bytes(here.read_bytes() + b"\0")
    with pytest.raises(InputError, match=r"load\.rec: has changed since"):
        carried_out(Task(RigSpec("sim"), planned))


def test_a_trace_of_another_program_is_a_workload_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{at},hm,0,Read,{4096 * at},4096,10" for at in range(1, 40)]
    (tmp_path / "some.csv").write_text("\n".join(rows) + "\n")
    found = specs.workload("some.csv")
    assert recordings.is_recording(found)
    result = blklab.run_job("some.csv", disk="su800-128gb").result
    assert sum(job.read.ios for job in result.jobs) == 39


def test_a_format_that_is_not_detected_can_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Numbers alone could be sectors, or the rows of many another program.
    Path("numbers").write_text("".join(f"{8 * at}\n" for at in range(30)) + "# the end\n")
    assert not recordings.is_trace(Path("numbers"))
    assert recordings.is_recording(specs.workload("numbers:format=sectors"))


def test_a_job_file_of_any_name_stays_a_job_file(tmp_path: Path) -> None:
    for name in ("job", "job.txt", "job.fio"):
        file = tmp_path / name
        file.write_text("# four reads\n[a]\nsize=16k\n")
        assert specs.workload(str(file)).kind == "file"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("fio", "load.rec:way=x"), "load.rec:way=x: way: expected open, closed, inferred"),
        (("fio", "load.rec:wey=open"), "has no parameter 'wey'; did you mean 'way'?"),
        (("fio", "load.rec:from=1"), "from: expected a time such as 4s or 250ms, found '1'"),
        (("fio", "load.rec:from=2s,until=1s"), "until=1s is not after from"),
        (("fio", "load.rec:from=1h"), "from: expected a time"),
        (("fio", "load.rec:way"), "load.rec: expected name=value behind ':', found 'way'"),
        (("fio", "load.rec:way=open,way=open"), "'way' is given twice"),
        (("fio", "load.rec:from=99s"), "load.rec: no I/O in that part"),
        (("fio", "load.rec:device=8:1"), "load.rec: no I/O of device '8:1' in that part"),
        (("fio", "load.rec:format=msr"), "load.rec"),
        (("fio", "load.rec", "--rig", "live"), "recorded I/O; --rig live does not replay"),
        (("record", "sqlite", "--out", "x.rec"), "sqlite: is a program, not a job; to record one"),
        (("verify", "load.rec:way=x"), "load.rec:way=x: way: expected open, closed, inferred"),
        (("verify", "load.rec", "load.rec"), "load.rec: two jobs have this name"),
    ],
)
def test_each_way_of_getting_it_wrong_is_one_line(
    here: Path, words: tuple[str, ...], line: str
) -> None:
    disk = ("--disk", ".") if "live" in words else ("--disk", "wd10ezrx")
    ended = call(*words, *disk)
    assert isinstance(ended.exception, InputError), ended.output
    assert line in str(ended.exception)
    assert "\n" not in str(ended.exception)


def test_its_figures_are_shown_by_another_command_which_is_named(here: Path) -> None:
    with pytest.raises(InputError, match=r"blklab trace show load\.rec"):
        blklab.find_workload("load.rec")
