"""The search on tables of other programs beside Optuna's: `validation.moot`."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from validation import moot


def table(directory: Path, name: str = "small") -> Path:
    """Three options and a word, 10 x 10 x 4 x 2 settings; the best is at 7, 2, blue and 0."""
    lines = ["threads,cache,colour,debug,time-,rate+"]
    for threads, cache, colour, debug in itertools.product(
        range(10), range(10), ("red", "blue", "green", "white"), (0, 1)
    ):
        time = 1 + (threads - 7) ** 2 + 5 * debug + (0 if colour == "blue" else 3)
        rate = 100 - (cache - 2) ** 2 - 10 * debug
        lines.append(f"{threads},{cache},{colour},{debug},{time},{rate}")
    # Rows without figures, and of another length, are not settings.
    lines += ["1,1,red,0,?,3", "1,1", ""]
    file = directory / f"{name}.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_a_table_has_its_settings_and_their_distances_from_the_best(tmp_path: Path) -> None:
    read = moot.Table(table(tmp_path))
    assert len(read.distance) == 800
    assert [(one.name, one.levels, one.is_ordered) for one in read.columns] == [
        ("threads", 9, True),
        ("cache", 9, True),
        ("colour", 4, False),
        ("debug", 2, True),
    ]
    best = int(read.distance.argmin())
    assert read.distance[best] == 0
    # The row of each setting of the options' numbers is the one nearest to it.
    assert read.distance[read.nearest([6, 2, 1, 0])] <= 0.02
    assert read.space.points == 9 * 9 * 4 * 2


def test_both_searches_see_equally_many_rows_and_the_verdict_is_theirs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table(tmp_path)
    (tmp_path / "tiny.csv").write_text("a,b-\n1,2\n2,3\n")
    out = tmp_path / "out.json"
    assert moot.main([str(tmp_path), "--seeds", "2", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "tiny: left out, only 2 rows" in printed
    [row] = json.loads(out.read_text())["rows"]
    # A search of 5 % of 800 rows finds the best one, or one beside it.
    assert max(row["ours"]) < 0.1 < row["at_random"]
    assert 40 <= max(row["seen"]) <= 100

    def verdict(ours: float, optunas: float, tables: int) -> bool:
        rows = [moot.Row("t", 800, 4, (9,), (ours,), (optunas,), 0.5) for _ in range(tables)]
        return moot.verdict(rows)[1]

    assert verdict(0.1, 0.1, 20)
    assert verdict(0.1, 0.2, 20)
    assert not verdict(0.2, 0.1, 1)
    mixed = [moot.Row("t", 800, 4, (9,), (0.02,), (0.01,), 0.5)] * 9
    # A better mean is not enough where most tables are worse.
    assert not moot.verdict([*mixed, moot.Row("t", 800, 4, (9,), (0.0,), (0.5,), 0.5)])[1]


def test_without_tables_it_is_skipped_or_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert moot.main([]) == 0
    assert capsys.readouterr().out == "skipped: no directory with tables of MOOT\n"
    assert moot.main([str(tmp_path)]) == 1
