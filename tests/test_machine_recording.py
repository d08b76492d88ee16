"""Recordings of this machine's disks, made from the kernel's block events."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.ipc
import pytest
from typer.testing import CliRunner, Result

import blklab
from blklab.base.journal import Journal
from blklab.cli import app
from blklab.errors import InputError, RunError
from blklab.host.devices import queue
from blklab.rigs.live import leftovers, recording
from blklab.rigs.live.members import Members

BLKLAB = str(Path(sys.executable).with_name("blklab"))
_WHY_NOT = recording.why_not()
pytestmark = [
    pytest.mark.skipif(bool(_WHY_NOT), reason=_WHY_NOT or "-"),
    pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio"),
]
READS = ["fio", "--name=reads", "--rw=randread", "--bs=4k", "--direct=1", "--number_ios=300"]
JOINS_PLUG, PREFLUSH = 1 << 9, 1 << 4


def rows(file: Path, process: str | None = None) -> list[dict[str, Any]]:
    """The I/Os, of one process, read without blklab."""
    every = pyarrow.ipc.open_stream(file).read_all().to_pylist()
    return [row for row in every if process in (None, row["process"])]


def call(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def instances() -> list[str]:
    return [path.name for path in Path("/sys/kernel/tracing/instances").glob("blklab-*")]


def test_a_recording_has_every_io_of_a_command_with_its_process_and_its_times(
    bare: str, tmp_path: Path, journal: Journal
) -> None:
    out = tmp_path / "reads.rec"
    made = blklab.record_machine(
        out,
        disk=bare,
        command=[*READS, f"--filename=/dev/{bare}", "--size=8m", "--output=/dev/null"],
    )
    assert (made.command_code, made.lost, made.disks) == (0, 0, (bare,))
    assert made.recording_bytes == out.stat().st_size
    own = [row for row in rows(out, "fio") if row["sectors"] == 8]
    assert len(own) == 300
    assert {row["op"] for row in own} == {"read"}
    assert all(row["sector"] < 8 << 11 for row in own)
    assert all(row["i2d_ns"] >= 0 and row["d2c_ns"] > 0 for row in own)
    reading = blklab.read_trace(out)
    assert reading.level == "bio" and reading.resolution_ns == 1
    assert not [one for one in reading.findings if one.weight != "note"]
    size = int((Path("/sys/block") / bare / "size").read_text())
    assert reading.capacity_sectors == size
    assert (instances(), journal.keys()) == ([], [])


def test_an_io_has_the_cgroup_of_the_thread_that_queued_it(
    bare: str, tmp_path: Path, journal: Journal
) -> None:
    out = tmp_path / "reads.rec"
    slow = [*READS, "--rate_iops=300", f"--filename=/dev/{bare}", "--size=8m"]
    blklab.record_machine(out, disk=bare, command=[*slow, "--output=/dev/null"])
    [own] = Members().look_up([os.getpid()])
    assert own.path.startswith("/")
    found = Counter((row["cgroup"], row["cgroup_path"]) for row in rows(out, "fio"))
    assert found.most_common(1)[0][0] == (own.number, own.path), found
    reading = blklab.read_trace(out)
    assert own.path in {one.path for one in reading.cgroups}
    assert reading.scheduler == queue.Queue.of_disk(bare).schedulers().active


def test_ios_that_are_handed_over_together_join_a_plug_and_single_ones_have_none(
    bare: str, tmp_path: Path
) -> None:
    batches = [
        "--ioengine=libaio",
        "--iodepth=8",
        "--iodepth_batch=8",
        "--iodepth_batch_complete=8",
    ]
    to = [f"--filename=/dev/{bare}", "--size=8m", "--output=/dev/null"]
    for name, options, joined in (("batch", batches, 0.8), ("single", ["--ioengine=psync"], 0.0)):
        out = tmp_path / f"{name}.rec"
        blklab.record_machine(out, disk=bare, command=[*READS, *options, *to])
        own = [row["flags"] for row in rows(out, "fio") if row["sectors"] == 8]
        share = sum(bool(flags & JOINS_PLUG) for flags in own) / len(own)
        assert share == pytest.approx(joined, abs=0.08), name


def test_a_recording_of_a_directory_is_of_its_disk_and_is_a_workload(
    mounted: Path, tmp_path: Path
) -> None:
    [disk] = blklab.recorded_disks(mounted)
    assert disk.startswith("loop")
    out = tmp_path / "writes.rec"
    job = ["fio", "--name=w", f"--directory={mounted}", "--rw=write", "--bs=64k", "--size=4m"]
    made = blklab.record_machine(
        out, disk=mounted, command=[*job, "--end_fsync=1", "--output=/dev/null"]
    )
    assert made.disks == (disk,)
    found = rows(out)
    assert sum(row["sectors"] for row in found if row["op"] == "write") >= 4 << 11
    assert any(row["op"] == "flush" or row["flags"] & PREFLUSH for row in found)
    answer = blklab.whatif(out, disk="wd10ezrx", schedulers=["none", "bfq"], draws=0)
    assert answer.ios == len(found)


def test_a_time_ends_it(bare: str, tmp_path: Path) -> None:
    start_s = time.monotonic()
    ended = call("record", "--disk", bare, "--for", "500ms", "--out", str(tmp_path / "short.rec"))
    assert ended.exit_code == 0, ended.output
    assert 0.5 <= time.monotonic() - start_s < 20
    assert "(0 I/Os of" in ended.stdout


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_with_all_that_was_recorded(
    bare: str, tmp_path: Path, number: int, code: int
) -> None:
    out = tmp_path / "stopped.rec"
    process = started(bare, out)
    read(bare)
    process.send_signal(number)
    assert process.wait(timeout=60) == code
    assert len(rows(out, "fio")) >= 300
    assert instances() == []


def started(bare: str, out: Path) -> subprocess.Popen[str]:
    """A recording that has begun."""
    process = subprocess.Popen(
        [BLKLAB, "record", "--disk", bare, "--out", str(out)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    while "recording" not in process.stderr.readline():
        assert process.poll() is None
    return process


def read(bare: str) -> None:
    subprocess.run(
        [*READS, f"--filename=/dev/{bare}", "--size=8m", "--output=/dev/null"], check=True
    )


def test_killed_it_leaves_a_file_up_to_the_last_second_and_the_next_start_removes_the_rest(
    bare: str, tmp_path: Path, journal: Journal
) -> None:
    out = tmp_path / "killed.rec"
    process = started(bare, out)
    read(bare)
    until_s = time.monotonic() + 30
    while time.monotonic() < until_s and not found(out):
        time.sleep(0.2)
    process.kill()
    process.wait()
    assert found(out) >= 300
    reading = blklab.read_trace(out)
    assert sum(one.count for one in reading.processes if one.name == "fio") >= 300
    assert instances() != []
    assert leftovers.restore(journal)
    assert (instances(), journal.keys()) == ([], [])


def found(file: Path) -> int:
    """The I/Os of the whole batches of a file that is still written."""
    count = 0
    try:
        with pyarrow.ipc.open_stream(file) as stream:
            for batch in stream:
                count += batch.num_rows
    except (pyarrow.ArrowInvalid, OSError):
        pass
    return count


def test_a_full_file_system_is_one_line_and_what_was_written_stays(
    bare: str, tmp_path: Path
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(small)], check=True)
    try:
        command = [*READS[:-1], "--io_size=160m", f"--filename=/dev/{bare}", "--size=8m",
                   "--output=/dev/null"]  # fmt: skip
        with pytest.raises(RunError, match="No space left on device; the recording has what"):
            blklab.record_machine(small / "full.rec", disk=bare, command=command)
        assert blklab.read_trace(small / "full.rec").level == "bio"
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert instances() == []


def test_disks_below_a_partition_and_a_directory_are_found(bare: str, mounted: Path) -> None:
    assert blklab.recorded_disks(bare) == [bare]
    assert blklab.recorded_disks(f"/dev/{bare}") == [bare]
    assert blklab.recorded_disks(mounted / "lost+found") == blklab.recorded_disks(mounted)
    assert set(blklab.recorded_disks("/")) <= set(queue.disks())
    with pytest.raises(InputError, match="its files are on no disk"):
        blklab.recorded_disks("/proc")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--for", "x"), "--for: expected a time such as 30s, 10m or 2h, found 'x'"),
        (("--for", "0s"), "--for: expected a time"),
        (("--", "no-such-program"), "no-such-program: No such file or directory"),
        (("--disk", "/dev/none"), "/dev/none: no such device"),
        (("--disk", "wd10ezrx", "--for", "1s"), "--for: 'wd10ezrx' is a disk model"),
        (("--disk", "wd10ezrx"), "expected one job to record, found 0"),
    ],
)
def test_each_way_of_getting_it_wrong_is_one_line_and_leaves_no_file(
    words: tuple[str, ...], line: str, bare: str, tmp_path: Path
) -> None:
    out = tmp_path / "some.rec"
    disk = () if "--disk" in words else ("--disk", bare)
    ended = call("record", "--out", str(out), *disk, *words)
    assert isinstance(ended.exception, InputError), ended.output
    assert line in str(ended.exception)
    assert not out.exists()
    assert instances() == []


def test_a_recording_that_exists_is_not_overwritten(bare: str, tmp_path: Path) -> None:
    (tmp_path / "old.rec").write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        blklab.record_machine(tmp_path / "old.rec", disk=bare, for_s=0.1)
    assert (tmp_path / "old.rec").read_text() == "mine"


def test_the_commands_exit_code_is_passed_on(bare: str, tmp_path: Path) -> None:
    out = tmp_path / "false.rec"
    ended = call("record", "--disk", bare, "--out", str(out), "--", "sh", "-c", "exit 7")
    assert ended.exit_code == 7
    assert out.exists()


def test_where_the_kernel_cannot_be_traced_the_reason_is_said(
    bare: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "why_not", lambda: "that needs root")
    out = tmp_path / "none.rec"
    with pytest.raises(RunError, match="cannot be recorded: that needs root"):
        blklab.record_machine(out, disk=bare, for_s=0.1)
    assert not out.exists()
