"""Cgroups of recorded I/O on the kernel rig: in recordings of guests, and in replays there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.ipc
import pytest

import blklab
from tests import real_fio, real_kernel
from tests.test_kernel_replay import NATIVE, altered, check_near, record, replay

JOB = """
[global]
rw=read
bs=128k
direct=1
size=64m
[one]
cgroup=one
cgroup_weight=100
[many]
cgroup=outer
numjobs=2
[inner]
cgroup=outer/inner
cgroup_weight=300
"""
WEIGHTS = "cgroup_weight/outer/inner=300"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    real_kernel.image()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BLKLAB_STORE", str(tmp_path / "store.db"))
    return tmp_path


def paths(file: str) -> set[tuple[str, str]]:
    """Names of processes, or of jobs, and paths of their cgroups."""
    table = pyarrow.ipc.open_stream(file).read_all().to_pydict()
    return set(zip(table["process"], table["cgroup_path"], strict=True))


def ends(result: blklab.Result) -> list[int]:
    return [job.end_ns for job in result.jobs]


@pytest.mark.parametrize("disk", ["wd10ezrx", "su800-128gb"])
def test_a_replay_of_another_place_is_the_job_in_that_place_in_linux_itself(disk: str) -> None:
    """The truth is the job in the real kernel, which the simulator has no part in."""
    record(JOB, "load.rec", "su800-128gb", "none")
    truth = record(JOB, "truth.rec", disk, "bfq", NATIVE)
    for rig in (NATIVE, "sim"):
        found = replay(f"load.rec:way=closed,{WEIGHTS}", disk, "bfq", rig)
        none = replay("load.rec:way=closed,cgroups=none", disk, "bfq", rig)
        off, off_without = (
            max(abs(one / other - 1) for one, other in zip(ends(got), ends(truth), strict=True))
            for got in (found, none)
        )
        assert off < 0.05 and off_without > 4 * off, (rig, off, off_without)


@pytest.mark.parametrize("way", ["open", "closed", "inferred"])
def test_both_rigs_give_the_same_answer(way: str) -> None:
    record(JOB, "load.rec", "su800-128gb", "none")
    load = f"load.rec:way={way},{WEIGHTS}"
    there, here = (replay(load, "wd10ezrx", "bfq", rig) for rig in (NATIVE, "sim"))
    check_near(there, here)
    assert [note for note in there.notes if "cgroup" in note] == [
        note for note in here.notes if "cgroup" in note
    ]


def test_a_job_beside_a_recording_shares_its_cgroups() -> None:
    record(JOB, "load.rec", "su800-128gb", "none")
    Path("job.fio").write_text(JOB.replace("size=64m", "size=64m\noffset=4g"))
    load = f"job.fio+load.rec:way=closed,{WEIGHTS}"
    there, here = (replay(load, "wd10ezrx", "bfq", rig) for rig in (NATIVE, "sim"))
    for one, other in zip(ends(there), ends(here), strict=True):
        assert one == pytest.approx(other, rel=0.05)


def test_a_process_that_moves_is_in_the_cgroup_of_each_io() -> None:
    record(JOB, "load.rec", "su800-128gb", "none")

    def moved(columns: dict[str, list[Any]]) -> None:
        rows = [row for row, name in enumerate(columns["process"]) if name == "one"]
        other = columns["process"].index("inner")
        for row in rows[len(rows) // 2 :]:
            for name in ("cgroup", "cgroup_path"):
                columns[name][row] = columns[name][other]

    altered("load.rec", "moved.rec", moved)
    record("moved.rec:way=closed", "again.rec", "wd10ezrx", "bfq", NATIVE)
    table = pyarrow.ipc.open_stream("again.rec").read_all().to_pydict()
    rows = zip(table["process"], table["cgroup_path"], strict=True)
    assert [path for name, path in rows if name.startswith("one")] == (
        ["/one"] * 256 + ["/outer/inner"] * 256
    )


@pytest.mark.parametrize(
    ("every", "scheduler"),
    [
        (256, "bfq"),
        (32, "bfq"),
        (1, "bfq"),
        (256, "bfq:low_latency=0"),
        (32, "bfq:low_latency=0"),
        (1, "bfq:low_latency=0"),
    ],
)
def test_a_process_that_moves_takes_along_what_bfq_has_learnt_of_it_on_both_rigs(
    every: int, scheduler: str
) -> None:
    """One of the readers goes to and fro after so many I/Os: its queue moves with it."""
    record(JOB, "load.rec", "su800-128gb", "none")

    def moved(columns: dict[str, list[Any]]) -> None:
        rows = [row for row, name in enumerate(columns["process"]) if name == "one"]
        other = columns["process"].index("inner")
        for place, row in enumerate(rows):
            if place // every % 2 == 1:
                for name in ("cgroup", "cgroup_path"):
                    columns[name][row] = columns[name][other]

    altered("load.rec", "moved.rec", moved)
    there, here = (
        replay("moved.rec:way=closed", "wd10ezrx", scheduler, rig) for rig in (NATIVE, "sim")
    )
    for one, other in zip(ends(there), ends(here), strict=True):
        assert one == pytest.approx(other, abs=1000), "to a microsecond"


def test_a_recording_of_a_guest_has_the_cgroups_of_its_job() -> None:
    for rig, file in (("sim", "sim.rec"), (NATIVE, "kernel.rec")):
        record(JOB, file, "wd10ezrx", "bfq", rig)
    numbers = {}
    for file in ("sim.rec", "kernel.rec"):
        table = pyarrow.ipc.open_stream(file).read_all().to_pydict()
        assert set(table["cgroup_path"]) == {"/one", "/outer", "/outer/inner"}
        numbers[file] = table["cgroup_path"]
    assert numbers["kernel.rec"] == numbers["sim.rec"]
    # Its replay elsewhere is that of the simulator's recording.
    for file in ("sim.rec", "kernel.rec"):
        found = replay(f"{file}:way=closed,{WEIGHTS}", "su800-128gb", "bfq", "sim")
        numbers[file] = ends(found)
    assert numbers["kernel.rec"] == pytest.approx(numbers["sim.rec"], rel=0.02)


@real_fio.needs_fio
def test_so_has_one_of_fio_itself() -> None:
    blklab.record_run(JOB, "fio.rec", disk="wd10ezrx", scheduler="bfq", rig="kernel")
    assert {path for _, path in paths("fio.rec")} == {"/one", "/outer", "/outer/inner"}


def test_a_recording_of_a_job_without_cgroups_says_nothing_of_them() -> None:
    record("[a]\nrw=read\nbs=128k\nsize=1m\ndirect=1\n", "plain.rec", "wd10ezrx", "bfq", NATIVE)
    assert {path for _, path in paths("plain.rec")} == {""}
