"""The solid-state disk model against measured drives."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from validation import measured, runs
from validation.flash import main
from validation.twin import twin

SWEEP = ("drive", "rw", "iodepth", "numjobs", "iops", "lat_mean_us", "p50", "p99", "p99.9")
IOCOST = (
    "model", "size_bytes", "rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops",
    "rlat_p95_us", "wlat_p95_us",
)  # fmt: skip


def table(path: Path, heads: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([heads, *rows])


def sweep(folder: Path, p99: float = 150.0) -> None:
    """A file as in the reference folder, of a drive with 5 us a command after 95 us."""
    rows: list[tuple[object, ...]] = []
    for rw in ("randread", "randwrite"):
        for depth in measured.IN_FLIGHT:
            for jobs in (1, 2):
                mean = max(100.0, depth * jobs * 20.0)
                iops = depth * jobs / mean * 1e6
                rows.append(("small-64gb", rw, depth, jobs, iops, mean, mean, p99, 2 * mean))
    table(folder / "ssd-small.csv", SWEEP, rows)


def test_a_sweep_is_read_by_depth_and_jobs_and_the_hosts_part_left_out(tmp_path: Path) -> None:
    sweep(tmp_path)
    reads, writes = measured.sweeps(tmp_path)
    assert (reads.rw, writes.rw, reads.alone.iops) == ("randread", "randwrite", 1e4)
    assert {point.depth for point in reads.with_in_flight(2)} == {1, 2}
    assert reads.most == pytest.approx(50_000)
    assert reads.least_host(32).p99 == pytest.approx(150 / 640)
    assert reads.alone_us == pytest.approx(100)


def test_a_twin_has_the_figures_it_was_made_from(tmp_path: Path) -> None:
    sweep(tmp_path)
    reads, writes = measured.sweeps(tmp_path)
    made = twin(reads, writes)
    assert made.paced
    alone = runs.point(made.disk, "randread", 1, 1, 0.2, 0.02)
    most = runs.point(made.disk, "randread", 32, 1, 0.5, 0.1)
    assert alone.mean_us == pytest.approx(100, rel=0.05)
    assert most.iops == pytest.approx(50_000, rel=0.05)


@pytest.mark.parametrize(("times", "code"), [(1.0, 0), (9.0, 1)])
def test_a_latency_that_the_model_misses_ends_with_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], times: float, code: int
) -> None:
    figures = (571_977_404, 94_009, 98_549, 377_003_734, 91_213, 87_471)
    row = ("Some SSD", 250_059_350_016, *figures, round(22_000 * times), 28_000)
    table(tmp_path / "iocost-models.csv", IOCOST, [row])
    assert main([str(tmp_path)]) == code
    said = capsys.readouterr().out
    assert ("NO" in said) == bool(code)
    assert "3 checks" in said


def test_writes_that_wait_longer_than_the_drives_are_found(tmp_path: Path) -> None:
    figures = (571_977_404, 94_009, 98_549, 377_003_734, 91_213, 87_471)
    row = ("Some SSD", 250_059_350_016, *figures, 22_000, 15_000)
    table(tmp_path / "iocost-models.csv", IOCOST, [row])
    assert main([str(tmp_path)]) == 1


@pytest.mark.parametrize(("iops", "code"), [(86_000, 0), (40_000, 1)])
def test_an_optane_that_reads_at_another_rate_is_found(
    tmp_path: Path, iops: int, code: int
) -> None:
    heads = ("rw", "bs", "iodepth", "numjobs", "iops")
    table(tmp_path / "optane-x.csv", heads, [("randread", "4k", 1, 1, iops)])
    assert main([str(tmp_path)]) == code


def test_without_a_folder_it_is_skipped_and_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("BLKLAB_MEASURED", raising=False)
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("skipped: no folder with measured SSDs")


def test_a_folder_without_measured_drives_is_an_error(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 2
