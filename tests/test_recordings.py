"""Recorded I/O as a workload of every command that takes one."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.ipc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

import blklab
from blklab.base.catalogue import Entry
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
        (("fio", "load.rec:speed=0"), "speed: expected a number from 0.001 to 1000, such as 2 or"),
        (
            ("fio", "load.rec:speed=fast"),
            "load.rec:speed=fast: speed: expected a number from 0.001",
        ),
        (("fio", "load.rec:speed=2x"), "such as 2 or 0.5, found '2x'"),
        (("fio", "load.rec:speed=-1"), "found '-1'"),
        (("fio", "load.rec:sped=2"), "has no parameter 'sped'; did you mean 'speed'?"),
        (("fio", "load.rec:loops=0"), "loops: expected a number from 1 to 1000000, found '0'"),
        (("fio", "load.rec:loops=2.5"), "loops: expected a number from 1 to 1000000, found '2.5'"),
        (("fio", "load.rec:loops=90000"), "90000 times 406 I/Os; at most 16777216 in all"),
        (("fio", "load.rec", "oltp", "randread"), "at most one job file, found another job file"),
        (("fio", "load.rec", "sqlite"), "sqlite: expected recordings beside at most one job file"),
        (("fio", "load.rec+missing.rec"), "no workload"),
        (("record", "sqlite", "--out", "x.rec"), "sqlite: is a real program, which --rig sim does"),
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


def replayed(text: str, disk: str = "wd10ezrx", scheduler: str = "mq-deadline") -> blklab.Result:
    return blklab.run_job(text, disk=disk, scheduler=scheduler, host=specs.GUEST).result


def told_of(result: blklab.Result) -> list[object]:
    """The figures of each process, and each command of the disk."""
    jobs = [
        (job.name, job.start_ns, job.end_ns, job.read.lat, job.write.lat) for job in result.jobs
    ]
    return [*jobs, result.overview.sector.tolist(), result.overview.completed_ns.tolist()]


@pytest.mark.parametrize("way", recordings.WAYS)
def test_speed_and_loops_of_one_are_the_recording_to_the_last_digit(here: Path, way: str) -> None:
    plain, same = replayed(f"load.rec:way={way}"), replayed(f"load.rec:way={way},speed=1.0,loops=1")
    assert told_of(plain) == told_of(same)


def test_speed_brings_ios_sooner_in_the_open_loop_and_shortens_only_pauses_in_the_closed(
    here: Path,
) -> None:
    blklab.record_run(
        "[r]\nrw=randread\ndirect=1\nbs=4k\nsize=64m\nnumber_ios=100\nthinktime=9000\n",
        "paused.rec",
        disk="su800-128gb",
        host=specs.GUEST,
    )
    once = replayed("paused.rec:way=open", "su800-128gb", "none").duration_ns
    assert replayed("paused.rec:way=open,speed=4", "su800-128gb", "none").duration_ns == (
        pytest.approx(once / 4, rel=0.01)
    )
    closed = replayed("paused.rec:way=closed", "su800-128gb", "none")
    [job] = closed.jobs
    busy = job.read.lat.mean_ns * job.read.ios
    faster = replayed("paused.rec:way=closed,speed=4", "su800-128gb", "none").duration_ns
    assert faster == pytest.approx(busy + (closed.duration_ns - busy) / 4, rel=0.01)


def test_loops_repeat_every_io_at_its_place_and_a_part_may_be_repeated(here: Path) -> None:
    once, thrice = replayed("load.rec:until=200ms"), replayed("load.rec:until=200ms,loops=3")
    for one, all_ in zip(once.jobs, thrice.jobs, strict=True):
        assert (all_.name, all_.read.ios, all_.write.ios) == (
            one.name,
            3 * one.read.ios,
            3 * one.write.ios,
        )
    assert thrice.duration_ns > 2.5 * once.duration_ns


def test_recordings_are_replayed_side_by_side_with_their_names(here: Path) -> None:
    shutil.copy(here, "other.rec")
    ended = call(
        "fio", "load.rec", "other.rec:way=open", "load.rec:speed=2", "--disk", "wd10ezrx",
        "--output-format", "json", "--no-keep",
    )  # fmt: skip
    assert ended.exit_code == 0, ended.output
    jobs = json.loads(ended.stdout)["jobs"]
    assert [job["jobname"] for job in jobs] == [
        "load.rec#1:copy-1",
        "load.rec#1:reader-2",
        "other.rec:copy-1",
        "other.rec:reader-2",
        "load.rec#2:copy-1",
        "load.rec#2:reader-2",
    ]
    assert [job["write"]["total_ios"] for job in jobs] == [256, 0] * 3
    alone = replayed("load.rec")
    beside = replayed("load.rec+other.rec")
    assert beside.jobs[0].write.lat.mean_ns > 1.1 * alone.jobs[0].write.lat.mean_ns


def test_recordings_run_beside_a_job_file_of_which_each_is_named(here: Path) -> None:
    Path("job.fio").write_text("[steady]\nrw=randread\nbs=4k\nsize=8m\nnumber_ios=90\ndirect=1\n")
    beside = replayed("job.fio+load.rec")
    assert [job.name for job in beside.jobs] == ["steady", "load.rec:copy-1", "load.rec:reader-2"]
    assert [job.read.ios for job in beside.jobs] == [90, 0, 150]
    alone, job = replayed("load.rec"), replayed("job.fio")
    assert beside.jobs[0].read.lat.mean_ns > job.jobs[0].read.lat.mean_ns
    assert beside.jobs[2].read.lat.mean_ns > alone.jobs[1].read.lat.mean_ns
    assert beside.disk.read_ios == alone.disk.read_ios + job.disk.read_ios
    found = blklab.explain("job.fio+load.rec", disk="wd10ezrx", until="200ms")
    assert {"steady", "load.rec:reader-2"} <= set(found.rows.values())


def test_a_task_of_several_recordings_has_all_of_them_in_its_hash_and_in_the_store(
    here: Path,
) -> None:
    shutil.copy(here, "other.rec")
    tasks = {
        text: Task(RigSpec("sim"), experiment(text), "result")
        for text in ("load.rec", "load.rec+other.rec", "load.rec+other.rec:speed=2")
    }
    assert len({task.content_hash for task in tasks.values()}) == len(tasks)
    assert len({said(task.experiment.job) for task in tasks.values()}) == len(tasks)
    task = tasks["load.rec+other.rec:speed=2"]
    again = Task.from_bytes(task.to_bytes())
    assert again == task
    first, second = (carried_out(one).found for one in (task, again))
    assert isinstance(first, blklab.Result) and isinstance(second, blklab.Result)
    assert told_of(first) == told_of(second)


@given(speed=st.text(max_size=12), loops=st.text(max_size=9))
def test_any_text_as_speed_or_loops_is_a_number_in_range_or_one_line(
    speed: str, loops: str
) -> None:
    for key, value in (("speed", speed), ("loops", loops)):
        text = f"{recordings._HEAD}x\n{key}={value}\n".replace("\0", "")
        if len(text.splitlines()) > 2 or value.startswith("#"):
            continue
        entry = Entry("x", Path("x"), text, kind="recording")
        try:
            found = recordings.chosen(entry)
        except InputError as error:
            assert "\n" not in str(error)
        else:
            assert 1_000 <= found.speed_millionths <= 1_000_000_000
            assert 1 <= found.loops <= recordings.LOOPS_MAX


@given(st.integers(1_000, 1_000_000_000))
def test_a_speed_is_read_as_it_is_written(millionths: int) -> None:
    whole, part = divmod(millionths, 1_000_000)
    entry = Entry("x", Path("x"), f"speed={whole}.{part:06}\n", kind="recording")
    assert recordings.chosen(entry).speed_millionths == millionths
