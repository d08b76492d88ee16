"""Recordings of guests of the kernel rig: jobs and programs on a disk model."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.ipc
import pytest

import blklab
from blklab.domain import specs
from blklab.errors import InputError
from tests import real_fio, real_kernel

JOB = """
[r]
rw=randread
bs=4k
direct=1
size=1g
number_ios=200
numjobs=2
[w]
rw=write
bs=128k
direct=1
size=64m
ioengine=libaio
iodepth=4
number_ios=100
"""
FUA, PREFLUSH = 8, 16
KERNEL: dict[str, Any] = {"rig": blklab.RigSpec("kernel", driver="native")}
BLKLAB = str(Path(sys.executable).with_name("blklab"))


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    real_kernel.image()
    monkeypatch.chdir(tmp_path)
    Path("job.fio").write_text(JOB)
    return "job.fio"


def ios(file: str) -> list[tuple[int, int, int, str]]:
    """Queue time from the first one on, first sector, sectors and operation of each I/O, read
    without blklab."""
    table = pyarrow.ipc.open_stream(file).read_all().to_pydict()
    times = list(itertools.accumulate(table["gap_ns"][1:], initial=0))
    return list(zip(times, table["sector"], table["sectors"], table["op"], strict=True))


def test_a_jobs_recording_is_that_of_the_simulator(job: str) -> None:
    """The kernel's own events tell the same I/Os at the same times."""
    options: dict[str, Any] = {"disk": "wd10ezrx", "scheduler": "mq-deadline", "host": specs.GUEST}
    blklab.record_run(job, "sim.rec", **options)
    blklab.record_run(job, "kernel.rec", **options, **KERNEL)
    assert len(ios("kernel.rec")) == 2 * 200 + 100
    assert ios("kernel.rec") == ios("sim.rec")


def test_it_is_replayed_as_a_workload(job: str) -> None:
    result = blklab.record_run(job, "kernel.rec", disk="wd10ezrx", **KERNEL)
    again = blklab.simulate("kernel.rec", disk="wd10ezrx")
    recorded = sum(one.read.ios + one.write.ios for one in result.jobs)
    assert sum(one.read.ios + one.write.ios for one in again.jobs) == recorded == 500


def test_a_program_on_a_file_system_is_recorded(job: str) -> None:
    line = "dd if=/dev/zero of=file bs=4k count=300 oflag=dsync status=none"
    words = ["kernel", "run", "--disk=su800-128gb", "--mkfs=ext4", "--record=dd.rec", "--"]
    done = subprocess.run(
        [BLKLAB, *words, "sh", "-c", line], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "dd.rec: " in done.stderr and " I/Os" in done.stderr
    table = pyarrow.ipc.open_stream("dd.rec").read_all()
    reading = blklab.read_trace("dd.rec")
    assert reading.count == table.num_rows > 600, "data and a journal's commit each"
    assert {"dd"} <= set(table["process"].to_pylist())
    found = blklab.whatif("dd.rec", disk="su800-128gb", schedulers=["none", "mq-deadline"], draws=0)
    assert {row.scheduler for row in found.rows} == {"none", "mq-deadline"}


def test_commits_of_a_journal_are_in_it(job: str) -> None:
    """Version 7 of blktrace lacks writes with FUA in Linux 7.3."""
    line = "for i in 1 2 3; do dd if=/dev/zero of=f$i bs=4k count=1 conv=fsync status=none; done"
    blklab.run_in_kernel(["sh", "-c", line], disk="wd10ezrx", file_system="ext4", record="j.rec")
    table = pyarrow.ipc.open_stream("j.rec").read_all().to_pydict()
    both = [flags & (FUA | PREFLUSH) == FUA | PREFLUSH for flags in table["flags"]]
    of = [name for name, is_commit in zip(table["process"], both, strict=True) if is_commit]
    assert len(of) >= 3 and all(name.startswith("jbd2") for name in of)


@real_fio.needs_fio
def test_fio_itself_is_recorded_too(job: str) -> None:
    blklab.record_run(job, "fio.rec", disk="wd10ezrx", rig="kernel")
    assert len(ios("fio.rec")) == 500


def test_a_file_that_exists_is_kept_and_a_live_rig_is_refused(job: str) -> None:
    Path("there.rec").write_text("mine")
    with pytest.raises(InputError, match=r"there\.rec: exists already"):
        blklab.record_run(job, "there.rec", disk="wd10ezrx", **KERNEL)
    with pytest.raises(InputError, match=r"there\.rec: exists already"):
        blklab.run_in_kernel(["true"], disk="wd10ezrx", record="there.rec")
    with pytest.raises(InputError, match="--record and --trace: give one"):
        blklab.run_in_kernel(["true"], disk="wd10ezrx", record="new.rec", trace=Path())
    with pytest.raises(InputError, match="--rig: 'live' records no job"):
        blklab.record_run(job, "new.rec", disk="wd10ezrx", rig="live")
    assert Path("there.rec").read_text() == "mine" and not Path("new.rec").exists()
