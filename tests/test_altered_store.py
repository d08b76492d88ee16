"""A store with rows altered by another program: each damage gives one line with the comparison, the
run and the field, and all other data are shown."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from blklab.errors import BlklabError, StoreError
from blklab.store import packing, place, read
from blklab.store.opening import open_store

BLKLAB = str(Path(sys.executable).with_name("blklab"))
_JOB = "[j]\nsize=64k\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two comparisons of four runs."""
    directory = tmp_path_factory.mktemp("altered")
    (directory / "job.fio").write_text(_JOB)
    words = ["--workload=job.fio", "--disk=su800-128gb", "--scheduler=none", "--scheduler=kyber"]
    for _ in range(2):
        subprocess.run(
            [BLKLAB, "compare", *words, "--repeats=2", "--store=s.db"],
            check=True,
            cwd=directory,
            capture_output=True,
            timeout=120,
        )
    return directory / "s.db"


@pytest.fixture
def altered(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    copy = tmp_path / "s.db"
    with closing(sqlite3.connect(made)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy


def alter(store: Path, table: str, column: str, value: Any, where: str) -> None:
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA foreign_keys=OFF")
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (value,))
        connection.commit()


def packed(store: Path, column: str, change: dict[str, Any]) -> bytes:
    """Run 1's document with changed values."""
    with closing(sqlite3.connect(store)) as connection:
        query = f"SELECT {column} FROM run WHERE comparison_id = 1 AND number = 1"
        [kept] = connection.execute(query).fetchone()
    return packing.pack_json(packing.unpack_json(kept) | change)


_BLOBS = (None, 5, 10**15, 2.5, "text", b"", b"\x07", b"\x00[", b"\x00{}", b"\x01\x78\x9c",
          b"\x00[1]", b"\x00" + b"[" * 100_000)  # fmt: skip


@pytest.mark.parametrize("value", _BLOBS[1:], ids=lambda value: str(value)[:12])
def test_a_damaged_run_is_reported_and_the_others_are_shown(value: Any, altered: Path) -> None:
    alter(altered, "run", "measurement", value, "comparison_id = 1 AND number = 1")
    told: list[str] = []
    store = open_store(place.find(str(altered)))
    found = read.comparison(store, 1, tell=told.append)
    assert [run.number for run in found.runs] == [0, 2, 3]
    [line] = told
    assert line.startswith("comparison 1, run 1: measurement: ")
    assert line.endswith("; this run is left out")
    assert "\n" not in line
    assert len(read.comparison(store, 2).runs) == 4
    with pytest.raises(StoreError, match="comparison 1, run 1: measurement"):
        read.comparison(store, 1)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"duration_ns": -1}, "duration_ns"),
        ({"duration_ns": "long"}, "duration_ns"),
        ({"bytes_per_s": 5e-324}, "bytes_per_s"),
        ({"ios_per_s": 1e308}, "ios_per_s"),
        ({"repeat": 7}, "repeat: 7 is above 2"),
        ({"disk": "another"}, "not in the set-up"),
        ({"latencies": {"read": {}}}, "ios"),
        ({"latencies": {}, "stages": 7}, "stages"),
    ],
)
def test_an_altered_figure_is_named(change: dict[str, Any], field: str, altered: Path) -> None:
    kept = packed(altered, "measurement", change)
    alter(altered, "run", "measurement", kept, "comparison_id = 1 AND number = 1")
    told: list[str] = []
    read.comparison(open_store(place.find(str(altered))), 1, tell=told.append)
    [line] = told
    assert line.startswith("comparison 1, run 1: measurement: ")
    assert field in line


@pytest.mark.parametrize("column", ["begun_at", "ended_at", "device_before", "device_after"])
def test_an_altered_column_of_a_run_is_named(column: str, altered: Path) -> None:
    value = 5 if column.startswith("device") else b"\xff"
    alter(altered, "run", column, value, "comparison_id = 1 AND number = 1")
    told: list[str] = []
    read.comparison(open_store(place.find(str(altered))), 1, tell=told.append)
    assert told[0].startswith(f"comparison 1, run 1: {column}: ")


@pytest.mark.parametrize("value", _BLOBS[1:], ids=lambda value: str(value)[:12])
@pytest.mark.parametrize("column", ["setup", "facts"])
def test_damage_to_data_that_all_runs_share_is_named(
    column: str, value: Any, altered: Path
) -> None:
    alter(altered, "comparison", column, value, "id = 1")
    store = open_store(place.find(str(altered)))
    if (column, value) == ("facts", b"\x00{}"):
        return
    with pytest.raises(StoreError, match=f"comparison 1: {column}: ") as found:
        read.comparison(store, 1, tell=lambda _: None)
    assert "\n" not in str(found.value)
    assert len(read.comparison(store, 2).runs) == 4


@pytest.mark.parametrize("column", ["begun_at", "ended_at", "rig", "machine", "objective", "uid",
                                    "planned", "study", "part"])  # fmt: skip
def test_a_list_goes_on_without_the_row_that_is_altered(column: str, altered: Path) -> None:
    alter(altered, "comparison", column, b"\xff\xfe", "id = 1")
    told: list[str] = []
    rows = read.listed(open_store(place.find(str(altered))), tell=told.append)
    assert [row.id for row in rows] == [2]
    [line] = told
    assert line.startswith("comparison 1: ")
    assert f"$.{column}" in line


@pytest.mark.parametrize("value", _BLOBS, ids=lambda value: str(value)[:12])
@pytest.mark.parametrize(
    "words",
    [
        "results", "results show 1", "results show 1 --json", "results diff 1 2",
        "results export 1", "results export 1 --format csv", "report 1", "compare --resume 1",
    ],
)  # fmt: skip
def test_no_command_ends_in_a_traceback(
    words: str, value: Any, altered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All columns of documents at once, in a resumable comparison."""
    for table, column in (("run", "measurement"), ("comparison", "facts"),
                          ("comparison", "request"), ("comparison", "setup")):  # fmt: skip
        if value is not None or column == "request":
            alter(altered, table, column, value, "1")
    alter(altered, "comparison", "ended_at", None, "1")
    alter(altered, "comparison", "owner", "[" * 100_000, "1")
    monkeypatch.setenv("BLKLAB_STORE", str(altered))
    monkeypatch.chdir(altered.parent)
    monkeypatch.setattr(sys, "argv", ["blklab", *words.split()])
    from typer.testing import CliRunner

    from blklab.cli import app

    done = CliRunner().invoke(app, words.split())
    assert done.exception is None or isinstance(done.exception, (BlklabError, SystemExit)), done
