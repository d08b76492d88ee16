"""The hard disk model's queue against measured drives."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from validation import queueing, runs
from validation.queueing import DEPTHS, batch_size, main

SWEEP = (
    "rw", "iodepth", "numjobs", "iops", "iops_min", "iops_max", "lat_mean_us", "p50", "p99",
    "lat_max_us",
)  # fmt: skip
SEAGATE = "SEAGATE ST14000NM0048"


def table(path: Path, heads: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([heads, *rows])


def sweep(folder: Path, times: float, counts: tuple[int, int] = (110, 154)) -> None:
    """The sweep of a drive that is the twin itself, with other reads per second at the end."""
    disk = queueing._twin(13.9, 11, 1_030)
    rows: list[tuple[object, ...]] = []
    for depth in (1, *DEPTHS):
        found = queueing._sweep(disk, depth)
        iops = found.iops * (times if depth == DEPTHS[-1] else 1)
        us = (1e3 * ms for ms in (found.mean, found.p50, found.p99, found.longest))
        rows.append(("randread", depth, 1, iops, *counts, *us))
    table(folder / "hdd-samsung-f1-1tb.csv", SWEEP, rows)


def test_a_batch_is_the_largest_number_that_divides_all_counts() -> None:
    assert batch_size([44, 66, 55, 77]) == 11
    assert batch_size([71, 89, 78]) == 1


@pytest.mark.parametrize(
    ("times", "counts", "code"),
    [(1.0, (110, 154), 0), (1.3, (110, 154), 1), (1.0, (110, 152), 1)],
)
def test_a_twin_with_batches_predicts_its_own_sweep_and_no_other(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    times: float,
    counts: tuple[int, int],
    code: int,
) -> None:
    sweep(tmp_path, times, counts)
    assert main([str(tmp_path)]) == code
    said = capsys.readouterr().out
    assert ("NO" in said) == bool(code) and "21 checks" in said


@pytest.mark.parametrize(("between", "code"), [(0, 0), (40, 1)])
def test_waits_between_the_long_and_the_short_ones_are_found(
    tmp_path: Path, between: int, code: int
) -> None:
    counts = {8: 100, 16: 100, 32: 60, 256: between, 2048: 2, 4096: 20}
    rows: list[tuple[object, ...]] = [(SEAGATE, upper, count) for upper, count in counts.items()]
    table(tmp_path / "ncq-ageing.csv", ("drive", "upper_ms", "count"), rows)
    assert main([str(tmp_path)]) == code


def test_a_drive_that_does_not_linger_is_no_twin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stream with one read in flight would let all reads through."""
    changed = runs.changed
    monkeypatch.setattr(
        runs, "changed", lambda name, keys: changed(name, {**keys, "ncq_linger_ms": 0})
    )
    rows: list[tuple[object, ...]] = [(SEAGATE, 16, 260), (SEAGATE, 4096, 22)]
    table(tmp_path / "ncq-ageing.csv", ("drive", "upper_ms", "count"), rows)
    assert main([str(tmp_path)]) == 1
    assert "share of long waits" in capsys.readouterr().out


def test_without_a_folder_it_is_skipped_and_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("BLKLAB_MEASURED", raising=False)
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("skipped: no folder with measured hard disks")


def test_a_folder_without_measured_drives_is_an_error(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 2
