"""``blklab trace to-fio``: a job file that resembles a trace."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

import blklab
from blklab.cli import app
from blklab.errors import InputError
from tests import real_fio

JOBS = {
    "reader": "[r]\nrw=randread\nbs=4k\ndirect=1\nsize=1g\nthinktime=3000\nnumber_ios=300\n",
    "stream": "[s]\nrw=read\nbs=128k\ndirect=1\nsize=256m\noffset=1g\nioengine=libaio\niodepth=4\n",
    "mix": "[m]\nrw=randrw\nbssplit=4k/60:16k/40\nrwmixread=70\ndirect=1\nsize=2g\n"
    "ioengine=libaio\niodepth=16\nnumber_ios=2000\n",
    "two": "[a]\nrw=randread\nbs=4k\ndirect=1\nsize=1g\nthinktime=2000\nnumber_ios=400\n"
    "[b]\nrw=write\nbs=256k\ndirect=1\nsize=512m\noffset=20g\nioengine=libaio\niodepth=8\n",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def recorded(name: str) -> str:
    Path("job.fio").write_text(JOBS[name])
    blklab.record_run("job.fio", f"{name}.rec", disk="wd10ezrx", scheduler="mq-deadline")
    return f"{name}.rec"


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("disk", ["wd10ezrx", "su800-128gb"])
def test_a_job_of_a_recorded_job_comes_near_it(place: Path, name: str, disk: str) -> None:
    Path("job.fio").write_text(JOBS[name])
    size = "" if disk == "wd10ezrx" else ":capacity_sectors=1953525168"
    found = blklab.trace_job(recorded(name), disk=disk + size, scheduler="mq-deadline")
    assert found.left_out == 0
    for row in found.near[:2]:
        assert row.job == pytest.approx(row.trace, rel=0.15), row
    for row in found.near[2:]:
        assert row.job == pytest.approx(row.trace, rel=0.5), row


def test_operations_sizes_place_depth_and_pauses_are_those_of_the_trace(place: Path) -> None:
    lines = blklab.trace_job(recorded("mix")).text.splitlines()
    assert {"rw=randrw", "number_ios=2000", "iodepth=16"} <= set(lines)
    [mixed] = [int(line.partition("=")[2]) for line in lines if line.startswith("rwmixread=")]
    assert 67 <= mixed <= 73
    [split] = [line for line in lines if line.startswith("bssplit=")]
    shares = [part.split(":")[0] for part in split.removeprefix("bssplit=").split(",")]
    assert all(56 <= int(share.removeprefix("4096/")) <= 64 for share in shares[:2]), split
    reader = blklab.trace_job(recorded("reader")).text.splitlines()
    [think] = [int(line.partition("=")[2]) for line in reader if line.startswith("thinktime=")]
    assert 2900 < think < 3100
    assert "thinktime_blocks=1" in reader and "ioengine=psync" in reader


@real_fio.needs_fio
@pytest.mark.parametrize("name", JOBS)
def test_fio_takes_it(place: Path, name: str) -> None:
    blklab.trace_job(recorded(name), "like.fio")
    fio = shutil.which("fio")
    assert fio is not None
    subprocess.run([fio, "--parse-only", "like.fio"], check=True, capture_output=True)


def test_flushes_of_a_journal_are_fsyncs(place: Path) -> None:
    Path("job.fio").write_text("[j]\nrw=write\nbs=4k\nsize=4m\nfsync=4\n")
    blklab.record_run("job.fio", "j.rec", disk="wd10ezrx")
    lines = blklab.trace_job("j.rec").text.splitlines()
    assert any(line.startswith("fsync=") for line in lines)


def test_the_command_writes_the_job_and_shows_how_near_it_is(place: Path) -> None:
    words = ["trace", "to-fio", recorded("two"), "--out", "like.fio", "--disk", "wd10ezrx"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "like.fio: 2 jobs, " in done.stdout
    assert "throughput" in done.stdout and "p99 of reads" in done.stdout
    again = blklab.simulate("like.fio", disk="wd10ezrx")
    assert sorted(job.name for job in again.jobs) == ["a", "b"]


def test_a_trace_without_reads_and_writes_is_refused(place: Path) -> None:
    Path("flush.csv").write_text("time,op,offset,size\n0,flush,0,0\n1,flush,0,0\n")
    with pytest.raises(InputError, match=r"flush\.csv: "):
        blklab.trace_job("flush.csv", "like.fio")
    with pytest.raises(InputError, match="--disk: reads a trace twice"):
        blklab.trace_job("-", "like.fio", disk="wd10ezrx")
    assert not Path("like.fio").exists()
