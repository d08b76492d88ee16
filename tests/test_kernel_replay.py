"""Recorded I/O on the kernel rig: it is what was recorded, and what the simulator replays."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.ipc
import pytest

import blklab
from blklab import rigs
from blklab.agreement.measure import figures
from blklab.domain import specs
from blklab.domain.experiment import Experiment
from blklab.errors import InputError, RunError
from blklab.rigs.kernel.rig import KernelRig
from tests import real_fio, real_kernel
from tests.test_guest_recording import BLKLAB
from tests.test_guest_recording import JOB as READERS

NATIVE = blklab.RigSpec("kernel", driver="native")
COMMITS = """
[global]
direct=1
[w]
rw=randwrite
bs=8k
size=64m
fsync=4
number_ios=200
[r]
rw=randread
bs=4k
size=256m
number_ios=200
thinktime=500
"""
PRIORITIES = """
[global]
rw=randread
bs=16k
direct=1
size=512m
number_ios=150
[idle]
prioclass=3
[first]
prioclass=1
prio=2
[deep]
rw=randwrite
ioengine=libaio
iodepth=8
"""
DURABLE = """
[global]
direct=1
sync=dsync
rw=randwrite
bs=4k
size=64m
number_ios=80
[a]
[b]
[r]
rw=randread
"""
JOBS = {"readers": READERS, "commits": COMMITS, "priorities": PRIORITIES}
BOUND = 0.01
"""The part by which a replay in the same place may differ from the recorded run."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    real_kernel.image()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BLKLAB_STORE", str(tmp_path / "store.db"))
    return tmp_path


def record(job: str, file: str, disk: str, scheduler: str, rig: Any = "sim") -> blklab.Result:
    return blklab.record_run(job, file, disk=disk, scheduler=scheduler, host=specs.GUEST, rig=rig)


def replay(load: str, disk: str, scheduler: str, rig: Any = NATIVE) -> blklab.Result:
    return blklab.run_job(load, disk=disk, scheduler=scheduler, host=specs.GUEST, rig=rig).result


def check_near(found: blklab.Result, truth: blklab.Result) -> None:
    ours, true = figures(found), figures(truth)
    for what in ("bytes_per_s", "p50_ns", "p99_ns"):
        assert getattr(ours, what) == pytest.approx(getattr(true, what), rel=BOUND), what


def check_same_commands(found: blklab.Result, other: blklab.Result, within_ns: int = 1000) -> None:
    """The same commands in the same order, to a microsecond: a timer of the kernel's takes two
    nanoseconds where the simulator's takes one."""
    for column in ("sector", "sectors", "op"):
        assert np.array_equal(*(getattr(run.overview, column) for run in (found, other))), column
    for column in ("queued_ns", "issued_ns", "completed_ns"):
        ours, theirs = (getattr(run.overview, column) for run in (found, other))
        assert np.abs(ours - theirs).max() < within_ns, column


def altered(source: str, out: str, change: Any) -> None:
    """A recording with other columns, written without blklab."""
    table = pyarrow.ipc.open_stream(source).read_all()
    columns = {name: table[name].to_pylist() for name in table.column_names}
    change(columns)
    arrays = [
        pyarrow.array(columns[field.name], type=field.type.value_type)
        .dictionary_encode()
        .cast(field.type)
        if pyarrow.types.is_dictionary(field.type)
        else pyarrow.array(columns[field.name], type=field.type)
        for field in table.schema
    ]
    new = pyarrow.Table.from_arrays(arrays, schema=table.schema)
    with pyarrow.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(new)


@pytest.mark.parametrize("disk", ["wd10ezrx", "su800-128gb"])
@pytest.mark.parametrize("scheduler", ["none", "mq-deadline", "bfq"])
@pytest.mark.parametrize("job", JOBS)
def test_recorded_and_replayed_in_the_same_place_the_figures_are_the_same_on_both_rigs(
    job: str, scheduler: str, disk: str
) -> None:
    truth = record(JOBS[job], "load.rec", disk, scheduler)
    for way in ("closed", "inferred"):
        there = replay(f"load.rec:way={way}", disk, scheduler)
        check_near(replay(f"load.rec:way={way}", disk, scheduler, "sim"), truth)
        check_near(there, truth)
        assert [one.name for one in there.jobs] == [
            f"{name}-{number}" for number, name in enumerate((j.name for j in truth.jobs), 1)
        ]


@pytest.mark.parametrize("disk", ["wd10ezrx", "su800-128gb", "950pro-256gb"])
def test_durable_writes_take_as_long_in_a_replay_as_when_they_were_recorded(disk: str) -> None:
    for rig in ("sim", NATIVE):
        truth = record(DURABLE, f"{getattr(rig, 'name', rig)}.rec", disk, "mq-deadline", rig)
        for there in ("sim", NATIVE):
            found = replay(
                f"{getattr(rig, 'name', rig)}.rec:way=closed", disk, "mq-deadline", there
            )
            assert found.duration_ns == pytest.approx(truth.duration_ns, rel=BOUND), (rig, there)
            # A write's call waits for the flush after it too, which is an I/O of its own here.
            assert sum(job.sync_lat.count for job in found.jobs) == 160


def test_a_recording_of_the_kernel_is_replayed_in_the_kernel() -> None:
    truth = record(READERS, "load.rec", "wd10ezrx", "mq-deadline", NATIVE)
    check_near(replay("load.rec:way=closed", "wd10ezrx", "mq-deadline"), truth)


@pytest.mark.parametrize("way", ["open", "closed", "inferred"])
def test_elsewhere_both_rigs_move_each_command_at_the_same_time(way: str) -> None:
    record(READERS, "load.rec", "wd10ezrx", "mq-deadline")
    for disk, scheduler in (("su800-128gb", "bfq"), ("optane-900p", "none")):
        load = f"load.rec:way={way}"
        check_same_commands(replay(load, disk, scheduler), replay(load, disk, scheduler, "sim"))


@pytest.mark.parametrize("way", ["open", "closed", "inferred"])
@pytest.mark.parametrize(
    ("disk", "scheduler"), [("wd10ezrx", "mq-deadline"), ("su800-128gb", "bfq")]
)
def test_with_more_ios_in_flight_than_the_queue_has_requests_the_figures_are_the_simulators(
    disk: str, scheduler: str, way: str
) -> None:
    """The writer sleeps for requests, while its own I/Os complete."""
    job = "[global]\ndirect=1\nrw=randread\n[w]\nrw=randwrite\nbs=64k\nsize=1g\nioengine=libaio\n"
    job += "iodepth=400\nnumber_ios=900\n[r]\nbs=4k\nsize=256m\nnumber_ios=80\nthinktime=2000\n"
    record(job, "deep.rec", disk, scheduler)
    load = f"deep.rec:way={way}"
    there, here = (replay(load, disk, scheduler, rig) for rig in (NATIVE, "sim"))
    check_same_commands(there, here)
    for ours, theirs in zip(there.jobs, here.jobs, strict=True):
        for one, other in ((ours.read, theirs.read), (ours.write, theirs.write)):
            assert one.ios == other.ios
            assert one.lat.mean_ns == pytest.approx(other.lat.mean_ns, rel=1e-4)
            assert one.lat.max_ns == pytest.approx(other.lat.max_ns, abs=1000)
    assert there.series.write_ios.sum() == here.series.write_ios.sum() == 900


@pytest.mark.parametrize("way", ["open", "closed", "inferred"])
def test_faster_in_loops_and_side_by_side_both_rigs_move_each_command_at_the_same_time(
    way: str,
) -> None:
    record(READERS, "load.rec", "wd10ezrx", "mq-deadline")
    load = f"load.rec:way={way},speed=1.5,loops=2,from=50ms,until=900ms"
    for name in (load, f"{load}+load.rec:way={way}"):
        there, here = (replay(name, "su800-128gb", "bfq", rig) for rig in (NATIVE, "sim"))
        check_same_commands(there, here)
        assert [job.name for job in there.jobs] == [job.name for job in here.jobs]
        assert [job.read.ios for job in there.jobs] == [job.read.ios for job in here.jobs]


@pytest.mark.parametrize("way", ["open", "closed", "inferred"])
@pytest.mark.parametrize(
    ("disk", "scheduler"), [("wd10ezrx", "bfq"), ("su800-128gb", "mq-deadline")]
)
def test_a_job_file_and_recordings_run_at_the_same_time_as_they_do_in_the_simulator(
    disk: str, scheduler: str, way: str
) -> None:
    record(READERS, "readers.rec", "wd10ezrx", "none")
    Path("job.fio").write_text(
        "[global]\ndirect=1\noffset=1g\n[writer]\nrw=randwrite\nbs=16k\nsize=64m\nnumber_ios=300\n"
        "ioengine=libaio\niodepth=4\n[steady]\nrw=randread\nbs=4k\nsize=64m\nnumber_ios=100\n"
        "thinktime=700\n"
    )
    load = f"job.fio+readers.rec:way={way}+readers.rec:speed=2"
    here, there = replay(load, disk, scheduler, "sim"), replay(load, disk, scheduler)
    assert [job.name for job in there.jobs] == [job.name for job in here.jobs]
    check_near(there, here)
    # A job's process that finds nothing to reap takes a microsecond for each such call.
    check_same_commands(there, here, 20_000)
    assert {job.name for job in there.jobs} >= {"writer", "steady", "readers.rec#1:r-1"}
    assert there.duration_ns == max(job.end_ns for job in there.jobs)
    assert any("replays the recordings beside it" in note for note in there.notes)


def test_a_process_follows_the_ios_of_another_one_there_too() -> None:
    """A journal: its commit comes after the data of another process, which goes on after it."""
    blklab.record_run(READERS, "base.rec", disk="wd10ezrx", host=specs.GUEST)

    def followed(columns: dict[str, list[Any]]) -> None:
        # Process 2 reads 50 us after each completion of process 1, which reads at irregular times.
        starts = [11_000_000 * n + 97_000 * (n * n % 31) for n in range(40)]
        times = sorted([(at, 1) for at in starts] + [(at + 1_050_000, 2) for at in starts])
        rows = len(times)
        for name in columns:
            columns[name] = columns[name][:1] * rows
        columns["gap_ns"] = [
            at - before for (at, _), before in zip(times, [0, *(t for t, _ in times)], strict=False)
        ]
        columns["q2i_ns"], columns["i2d_ns"] = [0] * rows, [0] * rows
        columns["d2c_ns"] = [1_000_000 if pid == 1 else 700_000 for _, pid in times]
        columns["pid"] = [pid for _, pid in times]
        columns["process"] = ["data" if pid == 1 else "journal" for _, pid in times]
        columns["sector"] = [8_000 * row for row in range(rows)]

    altered("base.rec", "pairs.rec", followed)
    there, here = (replay("pairs.rec", "wd10ezrx", "none", rig) for rig in (NATIVE, "sim"))
    check_same_commands(there, here)
    assert [(job.name, job.read.ios) for job in there.jobs] == [("data-1", 40), ("journal-2", 40)]
    closed = replay("pairs.rec:way=closed", "wd10ezrx", "none")
    assert closed.duration_ns != there.duration_ns, "the following decides"


def test_plugs_merge_ios_there_as_they_do_in_the_simulator() -> None:
    small = "[w]\nrw=write\nbs=4k\nsize=1m\nioengine=libaio\niodepth=8\niodepth_batch=8\ndirect=1\n"
    small += "iodepth_batch_complete_min=8\niodepth_batch_complete_max=8\n"
    record(small, "joined.rec", "wd10ezrx", "none")
    flags = pyarrow.ipc.open_stream("joined.rec").read_all()["flags"].to_pylist()
    joins = sum(bool(one & 1 << 9) for one in flags)
    assert joins > 200, "seven of eight join"
    there, here = (replay("joined.rec", "wd10ezrx", "none", rig) for rig in (NATIVE, "sim"))
    check_same_commands(there, here)
    assert there.disk.write_merges == here.disk.write_merges == joins


def test_a_line_of_the_result_names_ios_that_a_process_cannot_submit_as_recorded() -> None:
    record(READERS, "load.rec", "su800-128gb", "none")

    def marks(columns: dict[str, list[Any]]) -> None:
        writes = [row for row, op in enumerate(columns["op"]) if op == "write"]
        for row in writes[:7]:
            columns["flags"][row] &= ~1
        for row in writes[7:10]:
            columns["sectors"][row] = 4096
        reads = [row for row, op in enumerate(columns["op"]) if op == "read"]
        for row in reads[:5]:
            columns["flags"][row] |= 1 << 1 | 1 << 5
        for row in reads[5:7]:
            columns["op"][row] = "discard"

    altered("load.rec", "marked.rec", marks)
    notes = replay("marked.rec", "su800-128gb", "none").notes
    assert notes[0] == (
        "the native driver replays it, without CPU work: the recorded times contain it"
    )
    assert [note.split(" ")[0] for note in notes[1:5]] == ["7", "3", "2", "5"]
    for note, words in zip(
        notes[1:5],
        ("asynchronous writes", "more than 1 MiB", "discards", "lost a flag"),
        strict=True,
    ):
        assert words in note
    there = replay("marked.rec", "wd10ezrx", "none")
    assert "2 discards take no time: the disk has none" in there.notes
    assert sum(job.trim.ios for job in there.jobs) == 2
    assert len(replay("load.rec", "su800-128gb", "none").notes) == 1


def test_flushes_and_writes_with_fua_reach_the_disk() -> None:
    record(COMMITS, "load.rec", "su800-128gb", "none", NATIVE)
    flags = pyarrow.ipc.open_stream("load.rec").read_all()["flags"].to_pylist()
    there, here = (replay("load.rec", "su800-128gb", "none", rig) for rig in (NATIVE, "sim"))
    assert there.disk.flush_ios == here.disk.flush_ios > 10
    assert sum(job.sync_lat.count for job in there.jobs) == sum(
        job.sync_lat.count for job in here.jobs
    )
    altered(
        "load.rec",
        "fua.rec",
        lambda c: c.update(
            flags=[
                one | 8 if op == "write" else one for one, op in zip(flags, c["op"], strict=True)
            ]
        ),
    )
    durable = replay("fua.rec", "950pro-256gb", "none")
    check_same_commands(durable, replay("fua.rec", "950pro-256gb", "none", "sim"))
    assert durable.duration_ns > replay("load.rec", "950pro-256gb", "none").duration_ns


def test_the_commands_take_a_trace_and_choose_the_native_driver() -> None:
    record(READERS, "load.rec", "wd10ezrx", "none")
    words = ("load.rec", "--disk=wd10ezrx", "--scheduler=mq-deadline", "--rig=kernel")
    done = subprocess.run(
        [BLKLAB, "fio", *words, "--output-format=json", "--no-keep"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [job["jobname"] for job in json.loads(done.stdout)["jobs"]] == ["r-1", "r-2", "w-3"]
    assert "driver native" in done.stderr and "the native driver replays it" in done.stderr
    found = blklab.explain(
        "load.rec", disk="wd10ezrx", scheduler="bfq", until="40ms", rig="kernel", processes=["w-3"]
    )
    assert found.requests and all(one.op == "write" for one in found.requests)
    again = blklab.record_run("load.rec", "again.rec", disk="wd10ezrx", rig="kernel")
    assert sum(job.read.ios + job.write.ios for job in again.jobs) == 500
    names = pyarrow.ipc.open_stream("again.rec").read_all()["process"].to_pylist()
    assert set(names) == {"r-1", "r-2", "w-3"}


def test_a_comparison_of_traces_and_jobs_is_stored_with_its_drivers() -> None:
    record(READERS, "load.rec", "wd10ezrx", "none")
    options: dict[str, Any] = {"disks": ["wd10ezrx"], "schedulers": ["none"], "repeats": 1}
    alone = blklab.compare(workloads=["load.rec"], rig="kernel", keep=True, **options)
    assert alone.results.setup["rig_setup"]["driver"] == "native"  # type: ignore[typeddict-item]
    [stored] = blklab.results(rigs=["kernel"])
    assert list(stored.workloads) == ["load.rec"]
    asked = blklab.compare(workloads=["load.rec"], rig=NATIVE, keep=False, **options)
    for one, other in zip(alone.results.runs, asked.results.runs, strict=True):
        assert one.jobs == other.jobs


@real_fio.needs_fio
def test_beside_a_job_file_that_fio_runs_a_trace_has_the_native_driver() -> None:
    record(READERS, "load.rec", "wd10ezrx", "none")
    Path("j.fio").write_text("[a]\nrw=randread\nsize=64m\nnumber_ios=20\ndirect=1\n")
    found = blklab.compare(
        workloads=["load.rec", "j.fio"], disks=["wd10ezrx"], schedulers=["none"],
        repeats=1, rig="kernel", keep=False,
    )  # fmt: skip
    reads = {row.workload: row.disk_counters["read_ios"] for row in found.results.runs}
    assert reads == {"load.rec": 400, "j": 20}


def test_verify_compares_both_rigs_on_a_trace() -> None:
    record(READERS, "load.rec", "wd10ezrx", "none")
    found = blklab.verify(
        jobs=["load.rec", "load.rec:way=open"],
        disks=["su800-128gb"], schedulers=["none", "bfq"], misses="missed",
    )  # fmt: skip
    assert [(cell.load, cell.scheduler) for cell in found.cells] == [
        (load, scheduler)
        for load in ("load.rec", "load.rec:way=open")
        for scheduler in ("none", "bfq")
    ]
    assert found.verdict.good and found.verdict.worst < 1e-4
    assert {cell.order for cell in found.cells} == {1.0}
    assert not list(Path("missed").iterdir()), "a recording is a file already"


@pytest.fixture
def load() -> str:
    record(READERS, "load.rec", "wd10ezrx", "none")
    return "load.rec"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--driver", "fio"), "which fio does not replay; use --driver native, or leave out"),
        (("--driver", "nativ"), "--driver: no 'nativ'; did you mean 'native'?"),
        (("--scheduler", "cfq"), "'cfq'"),
        (("--host", "hz=100"), "--host: hz is"),
    ],
)
def test_each_way_of_getting_it_wrong_is_one_line(
    load: str, words: tuple[str, ...], line: str
) -> None:
    done = subprocess.run(
        [BLKLAB, "fio", load, "--disk=wd10ezrx", "--rig=kernel", "--no-keep", *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert line in done.stderr.splitlines()[-1], done.stderr


def test_a_place_that_the_disk_does_not_have_is_refused_before_a_guest_starts(load: str) -> None:
    altered(load, "far.rec", lambda columns: columns["sector"].__setitem__(3, 1 << 40))
    with pytest.raises(InputError, match=r"sectors 1099511627776 to .*; the disk has"):
        replay("far.rec", "wd10ezrx", "none")
    assert "have another address than recorded (wrap)" in " ".join(
        replay("far.rec:fit=wrap", "wd10ezrx", "none").notes
    )


def test_a_trace_that_changes_between_plan_and_run_is_refused(load: str) -> None:
    place = rigs.rig(NATIVE)
    disk = specs.disk("wd10ezrx")
    planned = Experiment(specs.workload(load), disk, specs.scheduler("none"), 1, specs.GUEST)
    Path(load).write_bytes(Path(load).read_bytes() + b"\0")
    with pytest.raises(InputError, match=r"load\.rec: has changed since"):
        place.run(planned)


def test_an_error_of_an_io_ends_the_guest_with_one_line(
    load: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load that was made for a larger disk."""
    place = rigs.rig(NATIVE)
    assert isinstance(place, KernelRig)
    original = KernelRig._replay

    def on_another(self: KernelRig, experiment: Experiment) -> Any:
        large = Experiment(
            experiment.job, specs.disk("wd10ezrx"), experiment.scheduler, 1, specs.GUEST
        )
        return original(self, large)

    def last(columns: dict[str, list[Any]]) -> None:
        columns["sector"][3] = 1 << 30

    altered(load, "large.rec", last)
    monkeypatch.setattr(KernelRig, "_replay", on_another)
    small = specs.disk("su800-128gb")
    planned = Experiment(
        specs.workload("large.rec"), small, specs.scheduler("none"), 1, specs.GUEST
    )
    with pytest.raises(RunError, match=r"in the guest: I/O 3: .* from sector 1073741824 on"):
        place.run(planned)


def test_many_processes_have_a_thread_each(load: str) -> None:
    def many(columns: dict[str, list[Any]]) -> None:
        columns["pid"] = list(range(1, len(columns["pid"]) + 1))

    altered(load, "many.rec", many)
    there, here = (
        replay("many.rec:way=open", "su800-128gb", "none", rig) for rig in (NATIVE, "sim")
    )
    assert len(there.jobs) == 500
    check_same_commands(there, here)


def test_a_trace_of_another_program_runs_in_the_kernel() -> None:
    rows = [f"{at},hm,0,Read,{4096 * at},4096,10" for at in range(1, 40)]
    Path("some.csv").write_text("\n".join(rows) + "\n")
    result = blklab.run_job("some.csv", disk="su800-128gb", rig="kernel").result
    assert sum(job.read.ios for job in result.jobs) == 39
