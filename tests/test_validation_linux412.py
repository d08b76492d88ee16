"""The comparison with Linux 4.12.4: its tolerances, and its detection of a wrong figure."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from pathlib import Path

import pytest
from validation.linux412.__main__ import main
from validation.linux412.compare import Found, lengths_share, order_share, owners_share
from validation.linux412.reference import Issued, Row, Slice, runs
from validation.linux412.simulated import job_text, simulate

JOB = """[global]
filename=/dev/sda
direct=1
randseed=1
runtime=1000ms
time_based=1
[a]
rw=read
bs=64k
size=1g
exec_prerun=echo $PPID | tee /tmp/cg/a/tasks
[b]
rw=randread
offset=10g
size=1g
startdelay=20ms
"""


def folder(place: Path, iops: Sequence[float], p99_us: Sequence[float]) -> Path:
    """A run of cfq as in the reference folder, with these figures of both processes."""
    for name in ("jobs", "issue", "slices"):
        (place / name).mkdir(exist_ok=True)
    (place / "jobs/two.fio").write_text(JOB)
    with (place / "runs.csv").open("w", newline="") as file:
        for process, job in enumerate("ab"):
            row = {
                "run": "two.cfq-ss20.q1-5ms",
                "workload": "two",
                "scheduler": "cfq",
                "settings": "slice_sync=20 low_latency=0",
                "depth": 1,
                "service_us": 5000,
                "job_file": "two.fio",
                "proc": process,
                "job": job,
                "dir": "read",
                "ios": 1,
                "iops": iops[process],
                "lat_p99_us": p99_us[process],
                "issue_file": "two.csv.gz",
                "slices_file": "two.csv.gz",
                "lat_max_us": 0,
            }
            rows = csv.DictWriter(file, row)
            if process == 0:
                rows.writeheader()
            rows.writerow(row)
    with gzip.open(place / "issue/two.csv.gz", "wt") as text:
        text.write("t_ns,op,sector,sectors,proc,wait_ns,service_ns\n")
        text.write("0,R,20971520,8,1,0,5000000\n9,N,0,0,,0,9\n5000000,R,0,128,0,4990000,\n")
    with gzip.open(place / "slices/two.csv.gz", "wt") as text:
        text.write("begin_ns,end_ns,proc,slice_ns,dispatched\n0,,0,20000000,4\n")
    return place


def measured(place: Path) -> tuple[list[float], list[float]]:
    """The simulator's own figures for that run."""
    [run] = runs(folder(place, [1, 1], [1, 1]))
    both = [simulate(run).direction(process, "read") for process in (0, 1)]
    iops = [one.ios / one.runtime_ns * 1e9 for one in both]
    return iops, [float(one.clat_hist.percentiles([99.0])[0]) / 1e3 for one in both]


def test_a_run_is_simulated_with_its_settings_its_order_of_start_and_its_cgroups(
    tmp_path: Path,
) -> None:
    [run] = runs(folder(tmp_path, [1, 1], [1, 1]))
    assert (run.scheduler, run.kind) == ("cfq:slice_sync=20,low_latency=0", "cfq")
    assert run.order_of_start() == [1, 0]
    text = job_text(run)
    assert "cgroup=a\ncgroup_weight=100\n" in text and "exec_prerun" not in text
    assert "startdelay=9501us\n" in text and "startdelay=29500us\n" in text
    slices = simulate(run).slices()
    assert {one.process for one in slices} == {"0", "1"}
    assert {one.slice_ns for one in slices} == {20_000_000}


def test_figures_of_the_simulator_itself_are_met_and_a_planted_wrong_one_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    iops, p99_us = measured(tmp_path)
    assert main([str(folder(tmp_path, iops, p99_us))]) == 0
    assert "missed" not in capsys.readouterr().out
    assert main([str(folder(tmp_path, [iops[0] * 1.03, iops[1]], p99_us))]) == 1
    assert "missed: two.cfq-ss20.q1-5ms a read: IOPS: " in capsys.readouterr().out
    assert main([str(folder(tmp_path, iops, [p99_us[0], p99_us[1] * 1.07]))]) == 1
    assert "missed: two.cfq-ss20.q1-5ms b read: p99: " in capsys.readouterr().out


def test_without_a_folder_it_says_why_it_is_skipped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("BLKLAB_LINUX412", raising=False)
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("skipped: no folder with runs of Linux 4.12.4")
    assert main([str(tmp_path)]) == 2
    assert "no runs there" in capsys.readouterr().err
    assert main([str(folder(tmp_path, [1, 1], [1, 1])), "--run", "three"]) == 2


def test_the_bounds_are_2_percent_of_iops_and_5_percent_of_p99() -> None:
    row = Row(0, "a", "read", 100, 100.0, 1000.0, 1000.0)
    assert Found("r", row, 98.0, 1050.0).met
    assert not Found("r", row, 97.9, 1000.0).iops_met
    assert not Found("r", row, 100.0, 949.0).p99_met


def turns(*owners: tuple[str, int | None]) -> list[Slice]:
    return [Slice(0, None, process, slice_ns, 0) for process, slice_ns in owners]


def test_turns_are_compared_by_owner_in_order_and_by_the_median_length_of_each_owner() -> None:
    real = turns(("0", 100), ("1", 40), ("0", 100), ("1", None))
    assert owners_share(real, real) == lengths_share(real, real) == 1
    ours = turns(("0", 100), ("0", 100), ("1", 60), ("1", None))
    assert owners_share(ours, real) == 0.5
    assert lengths_share(ours, real) == 0.5
    assert owners_share(ours[:1], real) == 0.25, "turns that are missing count"


def test_the_order_of_issue_leaves_out_commands_without_data() -> None:
    real = [Issued(0, "R", 0, 8, 0, 0), Issued(1, "N", 0, 0, None, 1), Issued(2, "R", 0, 8, 1, 0)]
    assert order_share([(0, 0), (5, 1)], real) == 1
    assert order_share([(0, 1), (5, 1)], real) == 0.5
