"""The library on the real core: from a job file to a typed result."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import blklab
from blklab import _core, fio
from blklab.base.catalogue import Entry
from blklab.cli import app
from blklab.disks import DISKS
from blklab.domain.experiment import Disk, Experiment, SchedulerSpec
from blklab.domain.result import DIRECTIONS
from blklab.errors import InputError
from blklab.fio.status import report
from blklab.rigs import rig
from tests import real_fio
from tests.test_fio_formats import difference, without_circumstances

JOB = """
[global]
direct=1
ioengine=libaio
iodepth=8
size=8m
bs=4k
[reader]
rw=randread
[writer]
rw=randrw
fsync=16
"""
BLKLAB = str(Path(sys.executable).with_name("blklab"))
LONG = """
[long]
rw=randread
direct=1
ioengine=libaio
iodepth=32
size=1g
time_based
runtime=100000
"""


@pytest.mark.parametrize("scheduler", ["none", "mq-deadline:fifo_batch=1", "kyber"])
@pytest.mark.parametrize("disk", ["desktop-5900rpm", "950pro-256gb"])
def test_every_count_of_a_result_agrees_with_every_other(disk: str, scheduler: str) -> None:
    result = blklab.simulate(JOB, disk=disk, scheduler=scheduler)
    assert [job.name for job in result.jobs] == ["reader", "writer"]
    for job in result.jobs:
        for name in DIRECTIONS:
            part = job.direction(name)
            assert part.clat.count == part.ios == part.clat_hist.total
            assert part.bytes == part.ios * 4096
        assert job.sync_lat.count == job.sync_hist.total
        assert sum(job.latency_levels) == sum(job.direction(name).ios for name in DIRECTIONS)
    reads = sum(job.read.bytes for job in result.jobs)
    assert int(result.series.read_bytes.sum()) == reads == result.disk.read_sectors * 512
    assert (np.diff(result.overview.issued_ns) >= 0).all()
    assert (result.detail.completed_ns >= result.detail.issued_ns).all()


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    def text(seed: int) -> str:
        result = blklab.simulate(JOB, disk="su800-128gb", scheduler="mq-deadline", seed=seed)
        return fio.render(report(result, "x"), ("json+",))

    assert text(1) == text(1)
    assert text(1) != text(2)


def test_a_job_may_be_a_path_and_a_disk_may_be_changed(tmp_path: Path) -> None:
    path = tmp_path / "job.fio"
    path.write_text("[a]\nrw=randread\ndirect=1\nsize=1m\nbs=4k\n")
    slow = blklab.simulate(path, disk="desktop-5900rpm")
    fast = blklab.simulate(str(path), disk="desktop-5900rpm:rpm=15000")
    assert fast.duration_ns < slow.duration_ns


@pytest.mark.parametrize(
    ("job", "disk", "scheduler", "message"),
    [
        ("[a]\nrw=randraed\n", "950pro-256gb", "none", r"job:2: .*randread"),
        ("[a]\nblocksice=4k\n", "950pro-256gb", "none", r"job:2: .*blocksize"),
        ("[a]\nrw=read\nsize=1m\n", "950pro", "none", r"no disk '950pro'.*950pro-256gb"),
        ("[a]\nrw=read\nsize=1m\n", "desktop-5900rpm:rpm=-1", "none", r"rpm"),
        ("[a]\nrw=read\nsize=1m\n", "950pro-256gb", "mq-deadlin", r"mq-deadline"),
        ("[a]\nrw=read\nsize=1m\n", "950pro-256gb", "kyber:read_lat=1", r"read_lat_nsec"),
        ("absent.fio", "950pro-256gb", "none", r"absent\.fio: No such file"),
    ],
)
def test_an_input_error_is_one_line_with_the_nearest_right_word(
    job: str, disk: str, scheduler: str, message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        blklab.simulate(job, disk=disk, scheduler=scheduler)
    assert "\n" not in str(caught.value)


def test_a_shipped_disks_file_is_a_start_for_a_users_own_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = CliRunner().invoke(app, ["disks", "wd10ezrx", "--file"]).stdout
    assert printed == _core.disk_files()["wd10ezrx"]
    assert "blklab disks wd10ezrx --file" in CliRunner().invoke(app, ["disks", "wd10ezrx"]).stdout
    (tmp_path / "wd10ezrx.toml").write_text(printed.replace("rpm = 5400 ", "rpm = 7200 "))
    monkeypatch.setenv("BLKLAB_DISKS", str(tmp_path))
    mine = DISKS.find("wd10ezrx")
    assert (mine.in_core, mine.path) == (False, tmp_path / "wd10ezrx.toml")
    assert "rpm = 7200 " in mine.text


def test_a_disk_file_of_ones_own_is_found_and_a_bad_value_is_refused_by_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = DISKS.find("desktop-5900rpm").text
    (tmp_path / "mine.toml").write_text(own)
    lines = own.splitlines()
    (at,) = [i for i, line in enumerate(lines) if line.split("=")[0].strip() == "rpm"]
    lines[at] = "rpm = -7200"
    (tmp_path / "bad.toml").write_text("\n".join(lines))
    monkeypatch.setenv("BLKLAB_DISKS", str(tmp_path))
    job = "[a]\nrw=read\ndirect=1\nsize=1m\n"
    assert blklab.simulate(job, disk="mine").duration_ns > 0
    with pytest.raises(InputError, match=rf"bad\.toml.*{at + 1}.*rpm.*-7200"):
        blklab.simulate(job, disk="bad")


def test_a_cancelled_run_ends_soon() -> None:
    place = rig("sim")
    experiment = Experiment(
        Entry("long", Path("long.fio"), LONG),
        Disk(DISKS.find("optane-900p")),
        SchedulerSpec("none"),
        1,
    )
    threading.Timer(0.3, place.cancel).start()
    start_s = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        place.run(experiment)
    assert time.perf_counter() - start_s < 5.0


def test_other_threads_run_while_a_simulation_does() -> None:
    place = rig("sim")
    experiment = Experiment(
        Entry("long", Path("long.fio"), LONG),
        Disk(DISKS.find("optane-900p")),
        SchedulerSpec("none"),
        1,
    )
    ended = threading.Event()

    def run() -> None:
        with pytest.raises(KeyboardInterrupt):
            place.run(experiment)
        ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    # The run would take minutes: that this thread gets here is the point.
    assert not ended.wait(0.2)
    place.cancel()
    thread.join(timeout=10.0)
    assert ended.is_set()


@real_fio.needs_fio
def test_json_of_a_simulated_job_has_the_keys_and_types_of_real_fios(tmp_path: Path) -> None:
    path = tmp_path / "job.fio"
    path.write_text(JOB.replace("direct=1\n", ""))
    command = ["fio", "--output-format=json+", f"--directory={tmp_path}", str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    real = json.loads(done.stdout)
    command = [BLKLAB, "fio", str(path), "--disk=950pro-256gb", "--output-format=json+"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    ours = json.loads(done.stdout)
    faults = [
        fault
        for fault in difference(without_circumstances(real), without_circumstances(ours))
        if re.search(r"keys|type", fault) and "/bins" not in fault
    ]
    # `directory` was given to real fio only.
    assert [fault for fault in faults if "directory" not in fault] == []


def test_ctrl_c_stops_a_comparison_and_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "long.fio").write_text(LONG)
    process = subprocess.Popen(
        [BLKLAB, "compare", "--workload", "long.fio", "--disk", "optane-900p"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        assert process.stderr.readline().startswith("blklab: stored as 1; ")
        assert process.stderr.readline().endswith("10 repeats\n")
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, out) == (130, "")
    how = "to continue: blklab compare --resume 1"
    assert errors == f"blklab: interrupted; finished runs are stored; {how}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["long.fio"]


def test_the_host_reaches_the_simulation_and_wrong_ones_are_refused_in_one_line() -> None:
    job = "[a]\nrw=randread\ndirect=1\nsize=4m\nioengine=libaio\niodepth=8\n"
    free = blklab.simulate(job, disk="optane-900p", host={"submit_ns": 0, "complete_ns": 0})
    slow = blklab.simulate(job, disk="optane-900p", host={"submit_ns": 50_000})
    assert slow.duration_ns > 2 * free.duration_ns
    with pytest.raises(InputError, match=r"did you mean 'cpus'\?$"):
        blklab.simulate(job, disk="optane-900p", host={"cpu": 1})
    with pytest.raises(InputError, match=r"^host:cpus: 0 is out of range \(1 to 1024\)$"):
        blklab.simulate(job, disk="optane-900p", host={"cpus": 0})


def test_pacing_does_not_slow_large_writes_down_without_end() -> None:
    """Data that had not arrived yet once counted as data that the dies were slow to write, and
    slowed the next writes further."""
    job = "[copy]\nioengine=libaio\ndirect=1\nrw=write\nbs=1m\niodepth=16\nsize=4g\nruntime=3\n"
    [paced], [free] = (
        blklab.simulate(job, disk=f"pm983-960gb:paced={paced}").jobs for paced in ("on", "off")
    )
    assert paced.write.bytes > 0.95 * free.write.bytes
