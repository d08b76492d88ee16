"""Recorded I/O on a real disk: what is replayed, what is written, what is said, what stays."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import blklab
from blklab import _core
from blklab.base import binaries
from blklab.base.journal import Journal
from blklab.cli import app
from blklab.errors import InputError, RunError
from blklab.rigs.live import files
from blklab.rigs.live.load import Load
from blklab.rigs.live.replay_load import ReplayLoad
from tests import loop_device
from tests.live_runs import BLKLAB, NEEDS_PROGRAMS, disk_of, wait

pytestmark = NEEDS_PROGRAMS

MIB = 1 << 20
JOBS = """
[global]
direct=1
size=4m
[writer]
rw=randwrite
bs=16k
number_ios=40
ioengine=libaio
iodepth=8
[reader]
rw=randread
bs=4k
number_ios=60
thinktime=2000
"""
READS = "[r]\nrw=randread\ndirect=1\nbs=4k\nsize=8m\nnumber_ios=50\nthinktime=1000\n"
LATE = re.compile(
    r"I/Os were issued later than planned by [\d.]+ .?s \(median\), [\d.]+ .?s "
    r"\(99th percentile\), [\d.]+ .?s \(maximum\)"
)


@pytest.fixture(autouse=True)
def own_journal(journal: Journal) -> Journal:
    return journal


def recording(tmp_path: Path, text: str, name: str = "load.rec") -> Path:
    """A new recording of a job, on a disk model whose files begin at its start."""
    blklab.record_run(text, tmp_path / name, disk="su800-128gb")
    return tmp_path / name


def refused(*words: object) -> str:
    """The one line with which the command refuses."""
    error = call(*words).exception
    assert isinstance(error, InputError)
    assert "\n" not in str(error)
    return str(error)


def call(*words: object) -> Result:
    return CliRunner().invoke(app, ["fio", *map(str, words), "--rig", "live", "--no-keep"])


def test_a_line_says_that_recorded_cgroups_are_not_replayed(tmp_path: Path, mounted: Path) -> None:
    in_cgroups = READS.replace("[r]", "[r]\ncgroup=a") + "[s]\ncgroup=a/b\nrw=read\nsize=64k\n"
    for text, is_said in ((in_cgroups, True), (READS, False)):
        file = recording(tmp_path, text, f"{is_said}.rec")
        ended = call(file, "--disk", mounted)
        assert ended.exit_code == 0, ended.output
        told = " ".join(ended.stderr.split())
        assert ("recorded cgroups are not replayed (2): all processes are" in told) == is_said


@pytest.mark.parametrize("way", ["open", "closed", "inferred"])
def test_a_recording_is_replayed_into_a_file_by_its_processes(
    tmp_path: Path, mounted: Path, way: str
) -> None:
    file, there = recording(tmp_path, JOBS), sorted(mounted.iterdir())
    words = [f"{file}:way={way}", "--disk", mounted, "--scheduler", "mq-deadline"]
    ended = call(*words, "--output-format", "json")
    assert ended.exit_code == 0, ended.output
    jobs = json.loads(ended.stdout)["jobs"]
    assert [
        (job["jobname"], job["write"]["total_ios"], job["read"]["total_ios"]) for job in jobs
    ] == [
        ("writer-1", 40, 0),
        ("reader-2", 0, 60),
    ]
    assert all(job["write"]["lat_ns"]["min"] > 1000 for job in jobs[:1])
    # It thinks 2 ms before each but the first.
    assert jobs[1]["job_runtime"] >= 59 * 2
    assert LATE.search(ended.stderr), ended.stderr
    assert sorted(mounted.iterdir()) == there


def test_a_job_file_and_recordings_run_at_the_same_time_each_in_files_of_its_own(
    tmp_path: Path, mounted: Path
) -> None:
    file, there = recording(tmp_path, JOBS), sorted(mounted.iterdir())
    job = tmp_path / "job.fio"
    job.write_text("[steady]\nrw=randread\nbs=4k\nsize=2m\ndirect=1\ntime_based=1\nruntime=1\n")
    again = f"{file}:speed=0.5"
    ended = call(job, file, again, "--disk", mounted, "--output-format", "json")
    assert ended.exit_code == 0, ended.output
    jobs = {one["jobname"]: one for one in json.loads(ended.stdout)["jobs"]}
    names = [f"load.rec#{copy}:{name}" for copy in (1, 2) for name in ("writer-1", "reader-2")]
    assert list(jobs) == ["steady", *names]
    assert jobs["steady"]["read"]["total_ios"] > 100
    assert jobs["steady"]["job_runtime"] >= 1000
    assert [jobs[name]["read"]["total_ios"] for name in names] == [0, 60, 0, 60]
    assert jobs[names[3]]["job_runtime"] >= 59 * 4
    assert LATE.search(ended.stderr), ended.stderr
    assert re.search(r"fio's processes began [\d.]+ .?s (before|after) the replay", ended.stderr)
    assert sorted(mounted.iterdir()) == there


@pytest.mark.parametrize("broken", [Load, ReplayLoad])
def test_if_a_job_file_or_the_recording_beside_it_fails_the_other_one_is_ended(
    tmp_path: Path, bare: str, broken: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, job, disk = recording(tmp_path, LONG), tmp_path / "job.fio", f"/dev/{bare}"
    job.write_text("[steady]\nrw=randread\nbs=4k\nsize=2m\ndirect=1\ntime_based=1\nruntime=300\n")
    other = "blklab-replay" if broken is Load else "fio"

    def fail(*_: object, **__: object) -> None:
        wait(lambda: named(other, disk), f"{other} runs")
        raise RunError("it is broken")

    monkeypatch.setattr(broken, "run", fail)
    began_s = time.monotonic()
    error = call(job, file, "--disk", disk).exception
    assert isinstance(error, RunError)
    assert str(error) == "it is broken"
    assert time.monotonic() - began_s < 120
    assert not named(other, disk)


def test_a_replay_that_only_reads_a_device_changes_nothing_on_it(tmp_path: Path, bare: str) -> None:
    file, image = recording(tmp_path, READS), tmp_path / "loop.img"
    Path(f"/dev/{bare}").write_bytes(random.Random(1).randbytes(loop_device.SIZE_BYTES))
    subprocess.run(["sync"], check=True)
    before = image.read_bytes()
    ended = call(file, "--disk", f"/dev/{bare}", "--output-format", "json")
    assert ended.exit_code == 0, ended.output
    assert json.loads(ended.stdout)["jobs"][0]["read"]["total_ios"] == 50
    assert image.read_bytes() == before


def test_a_replay_that_writes_to_a_device_is_refused_unless_that_is_allowed(
    tmp_path: Path, bare: str
) -> None:
    file, image = recording(tmp_path, JOBS), tmp_path / "loop.img"
    before = image.read_bytes()
    line = refused(file, "--disk", f"/dev/{bare}")
    assert "the job writes, and all on the device would be lost" in line
    assert image.read_bytes() == before
    done = call(file, "--disk", f"/dev/{bare}", "--write-device", "--no-precondition")
    assert done.exit_code == 0, done.output
    after = image.read_bytes()
    assert any(after), "it has written"
    assert not any(after[8 * MIB :]), "only where the recording writes"
    blocks = [after[at : at + 4096] for at in range(0, 8 * MIB, 4096) if any(after[at : at + 4096])]
    assert len(set(blocks)) == len(blocks), "random data"


def test_a_replay_never_writes_to_a_device_in_use(tmp_path: Path, mounted: Path) -> None:
    disk = disk_of(mounted).name
    (mounted / "kept").write_text("by the user")
    line = refused(recording(tmp_path, JOBS), "--disk", f"/dev/{disk}", "--write-device")
    assert "a device in use is never written to" in line
    assert (mounted / "kept").read_text() == "by the user"


FAR = "[r]\nrw=randread\ndirect=1\nbs=4k\nsize=200m\nnumber_ios=40\n"


def check_fits(file: Path, where: object) -> None:
    """Both ways of fitting addresses to the target are said."""
    for fit in ("wrap", "scale"):
        done = call(f"{file}:fit={fit}", "--disk", where)
        assert done.exit_code == 0, done.output
        assert f"I/Os have another address than recorded ({fit})" in done.stderr


def test_a_recording_that_reaches_further_than_a_file_can_is_refused_or_fitted(
    tmp_path: Path, mounted: Path
) -> None:
    far = recording(tmp_path, FAR)
    assert "into its disk; there is room for a file of" in refused(far, "--disk", mounted)
    check_fits(far, mounted)


def test_a_recording_that_reaches_beyond_a_device_is_refused_or_fitted(
    tmp_path: Path, bare: str
) -> None:
    far = recording(tmp_path, FAR)
    line = refused(far, "--disk", f"/dev/{bare}")
    assert re.fullmatch(r"I/O \d+: sectors \d+ to \d+; the disk has 32768", line)
    check_fits(far, f"/dev/{bare}")


def test_schedulers_are_compared_on_a_recording_and_results_are_kept(
    tmp_path: Path, mounted: Path, own_store: Path
) -> None:
    file = recording(tmp_path, JOBS)
    done = blklab.compare(
        schedulers=["none", "mq-deadline"],
        disks=[str(mounted)],
        workloads=[f"{file}:way=open", str(file)],
        repeats=2,
        rig="live",
        keep=True,
        store=str(own_store),
    )
    runs = done.results.runs
    assert {(row.scheduler, row.workload) for row in runs} == {
        (scheduler, name)
        for scheduler in ("none", "mq-deadline")
        for name in ("load.rec:way=open", "load.rec")
    }
    assert all([job.name for job in row.jobs] == ["writer-1", "reader-2"] for row in runs)


def test_flushes_and_discards_are_replayed_and_what_a_file_lacks_is_said(
    tmp_path: Path, mounted: Path
) -> None:
    text = (
        "[trim]\nrw=randtrim\ndirect=1\nbs=64k\nsize=2m\nnumber_ios=8\n"
        "[sync]\nrw=write\ndirect=1\nbs=4k\nsize=1m\nnumber_ios=20\nfsync=1\n"
    )
    ended = call(recording(tmp_path, text), "--disk", mounted, "--output-format", "json")
    assert ended.exit_code == 0, ended.output
    trim, sync = json.loads(ended.stdout)["jobs"]
    assert trim["trim"]["total_ios"] == 8
    assert (sync["write"]["total_ios"], sync["sync"]["total_ios"]) == (20, 20)
    assert "8 discards take no time: a file has none" in ended.stderr


def test_discards_reach_a_device_that_has_them(tmp_path: Path, bare: str) -> None:
    file = recording(tmp_path, "[t]\nrw=trim\ndirect=1\nbs=64k\nsize=2m\n")
    Path(f"/dev/{bare}").write_bytes(b"x" * loop_device.SIZE_BYTES)
    subprocess.run(["sync"], check=True)
    ended = call(file, "--disk", f"/dev/{bare}", "--write-device", "--no-precondition")
    assert ended.exit_code == 0, ended.output
    image = (tmp_path / "loop.img").read_bytes()
    assert not any(image[: 2 * MIB])
    assert image[2 * MIB :] == b"x" * (loop_device.SIZE_BYTES - 2 * MIB)
    assert "discards come one at a time" in ended.stderr


def test_a_replay_keeps_the_recorded_times(tmp_path: Path, mounted: Path) -> None:
    text = "[r]\nrw=randread\ndirect=1\nbs=4k\nsize=4m\nrate_iops=200\nnumber_ios=100\n"
    file = recording(tmp_path, text)
    for speed, expected_ms in (("1", 495), ("2.5", 198)):
        ended = call(f"{file}:way=open,speed={speed}", "--disk", mounted, "--output-format", "json")
        assert ended.exit_code == 0, ended.output
        [job] = json.loads(ended.stdout)["jobs"]
        assert expected_ms - 1 <= job["job_runtime"] < expected_ms + 150


def test_loops_go_over_the_same_places_again(tmp_path: Path, bare: str) -> None:
    file = recording(tmp_path, READS)
    ended = call(f"{file}:loops=3", "--disk", f"/dev/{bare}", "--output-format", "json")
    assert ended.exit_code == 0, ended.output
    assert json.loads(ended.stdout)["jobs"][0]["read"]["total_ios"] == 150


def replaying(where: Path) -> list[str]:
    """Processes of blklab-replay that work in that file system."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            is_it = (place / "comm").read_text() == "blklab-replay\n"
            if is_it and str(where) in str((place / "cwd").readlink()):
                found.append(place.name)
        except OSError:
            continue
    return found


LONG = "[r]\nrw=randread\ndirect=1\nbs=4k\nsize=4m\nrate_iops=100\nnumber_ios=60000\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_replay_that_is_ended_half_way_leaves_nothing(
    tmp_path: Path, mounted: Path, journal: Journal, number: signal.Signals
) -> None:
    file, disk, there = recording(tmp_path, LONG), disk_of(mounted), sorted(mounted.iterdir())
    before = disk.settings()
    words = ["fio", str(file), "--rig", "live", "--disk", str(mounted), "--scheduler", "kyber"]
    process = subprocess.Popen(
        [*BLKLAB, *words, "--no-keep"], stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        wait(lambda: replaying(mounted), "it replays")
        assert disk.read("scheduler") == "kyber"
    finally:
        process.send_signal(number)
        _, stderr = process.communicate(timeout=60)
    wait(lambda: not replaying(mounted), "it has ended with us")
    if number == signal.SIGKILL:
        said = CliRunner().invoke(app, ["restore"], catch_exceptions=False).stdout
        assert f"{disk.name}: restored to none" in said
        assert "removed" in said
    else:
        assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[number], stderr
        assert b"Traceback" not in stderr
    assert (disk.settings(), sorted(mounted.iterdir())) == (before, there)
    assert journal.keys() == []


def test_a_disk_that_is_lost_half_way_is_one_line_and_nothing_stays(
    tmp_path: Path, bare: str, journal: Journal
) -> None:
    file = recording(tmp_path, LONG)
    words = ["fio", str(file), "--rig", "live", "--disk", f"/dev/{bare}", "--no-keep"]
    before = loop_settings(bare)
    process = subprocess.Popen(
        [*BLKLAB, *words, "--scheduler", "mq-deadline"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        wait(lambda: named_replays(f"/dev/{bare}"), "it replays")
        # What is behind the device is gone: each later read fails.
        os.truncate(tmp_path / "loop.img", 0)
        _, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1, stderr
    assert re.search(r"load.rec: I/O \d+, Read at sector \d+: Input/output error", stderr), stderr
    assert "Traceback" not in stderr
    assert (loop_settings(bare), journal.keys()) == (before, [])


def loop_settings(name: str) -> str:
    return (Path("/sys/block") / name / "queue/scheduler").read_text()


def named_replays(target: str) -> list[str]:
    """Processes of blklab-replay with that target."""
    return named("blklab-replay", target)


def named(program: str, target: str) -> list[str]:
    """Processes of the program that name the target, or have it open."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
            opened = [str(one.readlink()) for one in (place / "fd").iterdir()]
            if (place / "comm").read_text() == f"{program}\n" and (
                target.encode() in words or target in opened
            ):
                found.append(place.name)
        except OSError:
            continue
    return found


def test_a_file_system_that_is_full_after_all_is_one_line(
    tmp_path: Path, mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "[r]\nrw=randread\ndirect=1\nbs=4k\nsize=40m\nnumber_ios=2000\n"
    file, there = recording(tmp_path, text), sorted(mounted.iterdir())
    whole = files.LaidFiles.lay_out

    def fills(self: files.LaidFiles, sizes: list[int], step: Callable[[int], None]) -> None:
        # Another program takes the room first.
        with (mounted / "other").open("wb") as other:
            os.posix_fallocate(other.fileno(), 0, 45 * MIB)
        try:
            whole(self, sizes, step)
        finally:
            (mounted / "other").unlink()

    monkeypatch.setattr(files.LaidFiles, "lay_out", fills)
    with pytest.raises(RunError) as caught:
        blklab.run_job(str(file), disk=str(mounted), rig="live")
    assert "could not be written: No space left on device" in str(caught.value)
    assert sorted(mounted.iterdir()) == there


def test_a_user_without_the_right_to_a_priority_replays_without_it_and_is_told(
    tmp_path: Path, mounted: Path
) -> None:
    loop_device.require()
    text = f"{READS}prioclass=1\nprio=3\n"
    file = recording(tmp_path, text)
    load = tmp_path / "replay.bin"
    found = _core.Replay(_core.Recording(file), "open", "refuse")
    content, _, _, _ = _core.replay_load_on([found], 8 * MIB, 512, 0)
    load.write_bytes(content)
    target, out = mounted / "0", tmp_path / "out"
    target.write_bytes(random.Random(2).randbytes(8 * MIB))
    out.mkdir()
    words = [str(binaries.find("blklab-replay")), str(load), str(target), str(out)]
    told = {}
    for user, front in (
        ("root", []),
        ("user", ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]),
    ):
        subprocess.run([*front, *words], check=True)
        told[user] = json.loads((out / "replay.json").read_text())["without_priority"]
    assert told == {"root": 0, "user": 1}


def test_a_recording_that_is_no_replay_for_the_target_is_refused_before_anything_is_changed(
    tmp_path: Path, mounted: Path
) -> None:
    there = sorted(mounted.iterdir())
    empty = recording(tmp_path, READS)
    with pytest.raises(InputError) as caught:
        blklab.run_job(f"{empty}:from=99s", disk=str(mounted), rig="live")
    assert str(caught.value) == f"{empty}: no I/O in that part"
    assert sorted(mounted.iterdir()) == there
