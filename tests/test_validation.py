"""The hard disk model against drives with a measurement of every request."""

from __future__ import annotations

import csv
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from validation.__main__ import main
from validation.demerit import Bar, Distance, bar, distance
from validation.drive import drives
from validation.facts import disk_file

from blklab import _core
from blklab.errors import InputError

SEEKS = [(1, 1.2), (10, 2.0), (100, 4.1), (300, 3.9), (599, 9.0)]
ZONE = {"track_skew_sectors": 20, "cylinder_skew_sectors": 30, "first_sector_offset_sectors": 0}


def facts(**changed: dict[str, Any]) -> dict[str, Any]:
    """The facts of a small imaginary drive, of every kind."""
    base: dict[str, Any] = {
        "id": "small",
        "name": "Small drive",
        "capacity_sectors": 200_000,
        "queue_depth": 1,
        "mechanics": {
            "rpm": 7200,
            "surfaces": 4,
            "head_switch_ms": 2.5,
            "write_settle_extra_ms": -0.1,
        },
        "seek": {
            "distance_cylinders": [cylinders for cylinders, _ in SEEKS],
            "read_ms": [ms for _, ms in SEEKS],
        },
        "cache": {
            "segments": 4,
            "segment_sectors": 201,
            "write_segments_max": 1,
            "write_segment_dedicated": True,
            "read_ahead": "until_segment_full",
            "read_ahead_max_sectors": 150,
            "read_ahead_keeps": "keeps_requested_data",
            "read_ahead_after_full_hit": False,
            "read_ahead_stops_inside_sector": True,
            "keeps_sectors_passed_before_request": False,
            "zero_latency_read": True,
            "zero_latency_write": False,
            "write_cache": True,
            "reads_hit_written_data": False,
            "read_reconnect_above_share": 0.0,
        },
        "bus": {
            "read_ms_per_sector": 0.03,
            "write_ms_per_sector": 0.12,
            "held_for_whole_read": False,
        },
        "overhead_ms": {
            "read_hit_after_read": 0.2,
            "read_hit_after_write": 0.3,
            "read_miss_after_read": 0.4,
            "read_miss_after_write": 0.5,
            "write_hit_after_read": 0.25,
            "write_hit_after_write": 0.35,
            "write_miss_after_read": 0.6,
            "write_miss_after_write": 0.7,
            "read_completion": 0.05,
        },
        "layout": {
            "lba_order": "serpentine_per_zone",
            "sparing": "sectors_at_end_of_track",
            "zone": [
                {"first_cylinder": 0, "sectors_per_track": 120, "first_lba": 0, "spare_sectors": 2}
                | ZONE
                | {"slipped": [5, 700]},
                {"first_cylinder": 310, "sectors_per_track": 100, "first_lba": 140_000} | ZONE,
            ],
        },
        "disksim": {
            "mean_error_percent": 1.0,
            "demerit_percent": 2.0,
            "replay_noise_percent": 0.5,
        },
    }
    return {key: base[key] | changed[key] if key in changed else base[key] for key in base}


def replayed(drive: dict[str, Any], trace: list[tuple[int, int, int, bool]]) -> list[float]:
    return [ns / 1e6 for ns in _core.Disk(disk_file(drive), "small").replay(trace, 1)]


def trace(seed: int, count: int = 400) -> list[tuple[int, int, int, bool]]:
    """Sequential, repeated or random requests."""
    chance = random.Random(seed)
    rows: list[tuple[int, int, int, bool]] = []
    for _ in range(count):
        kind = chance.random()
        if kind < 0.3 and rows:
            first = rows[-1][1] + rows[-1][2]
        elif kind < 0.5 and len(rows) > 2:
            first = rows[-3][1]
        else:
            first = chance.randrange(198_000)
        sectors = chance.randint(1, 40) if chance.random() < 0.8 else chance.randint(100, 200)
        first = first if first < 198_000 else 0
        rows.append((chance.randrange(60_000_000), first, sectors, chance.random() < 0.3))
    return rows


def put(folder: Path, drive: dict[str, Any], measured_ms: list[float], seed: int = 1) -> None:
    """Files as in the reference folder: the trace of that seed with these times."""
    (folder / "small.toml").write_text(_toml(drive))
    with (folder / "small.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["gap_before_us", "lba", "sectors", "op", "response_us"])
        for (gap_ns, first, sectors, write), ms in zip(trace(seed), measured_ms, strict=True):
            rows.writerow([gap_ns / 1e3, first, sectors, "W" if write else "R", ms * 1e3])


def _toml(table: dict[str, Any]) -> str:
    def value(what: Any) -> str:
        if isinstance(what, dict):
            return "{" + ", ".join(f"{key} = {value(item)}" for key, item in what.items()) + "}"
        if isinstance(what, list):
            return "[" + ", ".join(map(value, what)) + "]"
        return json.dumps(what)

    return "".join(f"{key} = {value(item)}\n" for key, item in table.items())


def test_the_demerit_is_the_root_mean_square_of_the_distance_between_sorted_times() -> None:
    found = distance([3.0, 1.0, 5.0], [1.0, 2.0, 3.0])
    assert found.mean_error == pytest.approx(50)
    assert found.demerit == pytest.approx(100 * math.sqrt((0 + 1 + 4) / 3) / 2)


def test_the_bar_is_disksims_with_the_true_gaps_and_the_noise() -> None:
    row = {"mean_error_percent": 1.9, "demerit_percent": 6.8, "replay_noise_percent": 1.5}
    true = {"true_gaps_mean_error_percent": -1.3, "true_gaps_demerit_percent": 6.3}
    assert bar(row) == Bar(Distance(1.9, 6.8), 1.5)
    assert bar(row | true) == Bar(Distance(-1.3, 6.3), 1.5)
    met = bar(row | true).met
    assert met(Distance(2.8, 7.8)) and met(Distance(-2.8, 0.0))
    assert not met(Distance(2.81, 0.0)) and not met(Distance(0.0, 7.81))


def test_every_fact_of_a_drive_changes_the_model() -> None:
    """Every fact reaches the model."""
    base = replayed(facts(), trace(1))
    overheads = [name for name in facts()["overhead_ms"] if "write_miss" not in name]
    changes: list[tuple[str, dict[str, Any]]] = [
        ("mechanics", {"head_switch_ms": 4.0}),
        ("mechanics", {"write_settle_extra_ms": 1.0}),
        ("seek", {"read_ms": [ms + 0.5 for _, ms in SEEKS]}),
        ("cache", {"segment_sectors": 160}),
        ("cache", {"segments": 2}),
        ("cache", {"read_ahead": "to_end_of_track"}),
        ("cache", {"read_ahead": "to_end_of_next_track_if_sequential"}),
        ("cache", {"read_ahead_max_sectors": 60}),
        ("cache", {"read_ahead_keeps": "may_replace_requested_data"}),
        ("cache", {"read_ahead_after_full_hit": True}),
        ("cache", {"zero_latency_read": False}),
        ("cache", {"write_cache": False}),
        ("cache", {"reads_hit_written_data": True}),
        ("bus", {"read_ms_per_sector": 0.2}),
        ("bus", {"write_ms_per_sector": 0.2}),
        *(("overhead_ms", {name: 0.9}) for name in overheads),
        ("layout", {"lba_order": "normal"}),
        ("layout", {"sparing": "sectors_at_end_of_cylinder_range", "sparing_range_cylinders": 3}),
    ]
    for group, change in changes:
        assert replayed(facts(**{group: change}), trace(1)) != base, f"{group}: {change}"
    through = facts(cache={"write_cache": False})
    reselects = through["overhead_ms"] | {"other_reselect": 0.2}
    assert replayed(through | {"overhead_ms": reselects}, trace(1)) != replayed(through, trace(1))
    # A whole segment of read-ahead leaves no room for what has passed.
    track = {"read_ahead": "to_end_of_track"}
    passed = facts(cache=track | {"keeps_sectors_passed_before_request": True})
    assert replayed(passed, trace(1)) != replayed(facts(cache=track), trace(1))
    # The rest of a sector rarely costs a revolution.
    waits = facts(cache={"read_ahead_stops_inside_sector": False})
    assert replayed(waits, trace(1, 20_000)) != replayed(facts(), trace(1, 20_000))


@pytest.mark.parametrize(
    ("drive", "met"),
    [(facts(), True), (facts(seek={"read_ms": [ms + 2 for _, ms in SEEKS]}), False)],
)
def test_a_drive_farther_off_than_disksim_ends_with_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], drive: dict[str, Any], met: bool
) -> None:
    """Measurements of another drive, a little slower."""
    put(tmp_path, drive, [ms * 1.01 for ms in replayed(facts(), trace(1))])
    assert main([str(tmp_path), "--out", str(tmp_path / "pages")]) == (0 if met else 1)
    assert ("yes" if met else "NO") in capsys.readouterr().out
    page = (tmp_path / "pages/small.html").read_text()
    assert "measured" in page and "https://cdn" not in page
    assert (tmp_path / "pages/plotly.min.js").stat().st_size > 0


def test_without_a_folder_it_is_skipped_and_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("BLKLAB_DRIVES", raising=False)
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("skipped: no folder with measured drives")


def test_a_folder_without_drives_is_an_error(tmp_path: Path) -> None:
    assert drives(tmp_path) == []
    assert main([str(tmp_path)]) == 2


def test_a_request_beyond_the_disk_is_refused() -> None:
    with pytest.raises(InputError, match="request 1 is not on the disk"):
        replayed(facts(), [(0, 0, 1, False), (0, 200_000, 1, False)])
