"""A run of `blklab fio` is stored like a comparison, without loading a database."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from blklab.cli import main
from blklab.errors import RunError
from blklab.store import importing, packing, place, read, single
from blklab.store.database import open_database
from blklab.store.opening import open_store
from tests.test_cli import failing, run

JOB = "[a]\nrw=randrw\nsize=4M\nio_size=256k\n"
FIO = ("fio", "tiny.fio", "--disk", "optane-900p")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tiny.fio").write_text(JOB)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def once(*more: str) -> str:
    """Runs the command; its output."""
    done = run(*FIO, *more)
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


def listed() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(run("results", "--json").stdout)["comparisons"]
    return rows


@pytest.mark.usefixtures("on_both")
def test_a_single_run_is_listed_shown_exported_compared_reported_and_removed(here: Path) -> None:
    said = json.loads(once("--scheduler", "kyber", "--seed", "7", "--output-format", "json"))
    once("--scheduler", "kyber", "--seed", "8")
    assert [(row["id"], row["state"], row["planned"], row["kept"]) for row in listed()] == [
        (2, "complete", 1, 1),
        (1, "complete", 1, 1),
    ]
    assert listed()[1]["schedulers"] == ["kyber"] and listed()[1]["imported_at"] is None
    shown = run("results", "show", "1").stdout
    assert "1: complete, 1 of 1 runs\n" in shown
    assert "\ndisks: optane-900p\nworkloads: tiny\nschedulers: kyber\n" in shown
    [row] = csv.DictReader(io.StringIO(run("results", "export", "1", "--format", "csv").stdout))
    assert (row["seed"], row["comparison"]) == ("7", "1")
    assert int(row["read_ios"]) == said["jobs"][0]["read"]["total_ios"] > 0
    document = json.loads(run("results", "diff", "1", "2", "--json").stdout)
    assert document["pairs"][0]["runs"] == [1, 1] and not document["pairs"][0]["paired"]
    assert run("report", "1").exit_code == 0
    assert "kyber" in (here / "reports/1/report.html").read_text()
    run("results", "export", "1", "--out", "one.json")
    run("results", "remove", "1")
    assert [row["id"] for row in listed()] == [2]
    assert run("results", "import", "one.json").stdout == "imported as 3\n"


def test_it_is_the_same_as_a_comparison_of_one(here: Path) -> None:
    once("--seed", "5", "--host", "cpus=2")
    run("compare", "--disk", "optane-900p", "--workload", "tiny.fio", "--scheduler", "none",
        "--repeats", "1", "--seed", "5", "--host", "cpus=2", "--exact-disk")  # fmt: skip
    single, compared = (read.comparison(open_store(place.find()), number) for number in (1, 2))
    assert single.results() == compared.results()
    assert single.facts == compared.facts


def test_nothing_is_kept_that_is_not_to_be(here: Path, own_store: Path) -> None:
    once("--no-keep")
    assert list(own_store.parent.iterdir()) == []


def test_a_single_run_loads_no_database(own_store: Path) -> None:
    program = (
        "import sys\nfrom blklab.cli import main\n"
        f"sys.argv = {['blklab', *FIO]!r}\n"
        "try:\n    main()\nexcept SystemExit as left:\n    assert not left.code\n"
        "assert 'sqlalchemy' not in sys.modules and 'sqlite3' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert len(single.files(place.find())) == 1


def test_a_run_is_taken_in_once_however_often_its_file_is_there() -> None:
    once()
    [file] = single.files(place.find())
    content = file.read_bytes()
    assert len(listed()) == 1 and not file.exists()
    # As if it had been killed before it could remove the file.
    file.write_bytes(content)
    assert len(listed()) == 1 and not file.exists()


def test_parallel_openings_of_the_store_import_each_run_once() -> None:
    count = 12
    for seed in range(count):
        once("--seed", str(seed))
    told: list[str] = []

    def opened() -> None:
        open_store(place.find(), tell=told.append)

    threads = [threading.Thread(target=opened) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = open_store(place.find())
    found = [read.comparison(store, number).runs[0].measurement.seed for number in range(1, 13)]
    # In the order of the runs.
    assert (found, told) == (list(range(count)), [])
    assert len(read.listed(store)) == count


def test_a_run_that_cannot_be_imported_is_set_aside_and_the_others_are_imported() -> None:
    for seed in range(4):
        once("--seed", str(seed))
    directory = single.directory(place.find())
    first, second, _, _ = in_order = sorted(
        single.files(place.find()),
        key=lambda file: packing.unpack_json(file.read_bytes())["begun_at"],
    )
    # As from another version of blklab: an unknown set-up, and a number out of a column's range.
    for file, change in ((first, _without_disks), (second, _too_often)):
        document = packing.unpack_json(file.read_bytes())
        change(document)
        file.write_bytes(packing.pack_json(document))
    (directory / "a.run").write_bytes(b"\x00{}")
    (directory / "b.run").write_bytes(b"rubbish")
    # A power cut may leave one of a simulation empty.
    (directory / "c.run").touch()
    done = run("results", "--json")
    kept = [read.comparison(open_store(place.find()), row["id"]) for row in listed()]
    assert {one.runs[0].measurement.seed for one in kept} == {2, 3}
    told = done.stderr.splitlines()
    bad = [directory / "a.run", directory / "b.run", *in_order[:2]]
    assert len(told) == len(bad)
    for file, line in zip(bad, told, strict=True):
        assert line.startswith(f"blklab: {file}: not a run that waits for the store, or damaged: ")
        assert line.endswith(f"; set aside as {file.stem}.refused")
    assert "KeyError: 'disks'" in told[2] and "OverflowError: " in told[3]
    assert set(directory.iterdir()) == {file.with_suffix(".refused") for file in bad}
    # It is reported once.
    assert run("results").stderr == ""


def _without_disks(document: dict[str, Any]) -> None:
    del document["setup"]["disks"]


def _too_often(document: dict[str, Any]) -> None:
    document["runs"][0]["measurement"]["repeat"] = 1 << 63


def test_runs_wait_while_the_store_is_locked_and_the_stored_ones_are_shown(
    own_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once()
    assert len(listed()) == 1
    once()
    monkeypatch.setattr("blklab.store.database._WAIT_S", 0.1)
    other = sqlite3.connect(own_store)
    other.execute("BEGIN IMMEDIATE")
    done = run("results")
    assert done.exit_code == 0 and "tiny" in done.stdout
    assert done.stderr == (
        "blklab: 1 run of 'blklab fio' is not imported yet: "
        f"{own_store}: locked by another process\n"
    )
    # Runs that another process has imported meanwhile, and files that a power cut left empty.
    empty = single.directory(place.find()) / "empty.run"
    empty.touch()
    gone = empty.with_name("gone.run")
    assert single.take_in(open_database(place.find()), [empty, gone]) == []
    assert not empty.exists()
    other.rollback()
    other.close()
    assert len(listed()) == 2


def test_many_runs_are_imported_by_the_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single, "MANY", 3)
    for number in (1, 2, 0, 1):
        once()
        assert len(single.files(place.find())) == number


def test_a_store_that_was_named_and_cannot_be_is_an_error_before_anything_runs(
    here: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("blklab.rigs.sim.SimRig.run", None)
    (here / "notes.txt").write_text("what I have to do")
    (here / "a file").touch()
    for store, said in (
        ("notes.txt", "notes.txt: not a store of blklab, or damaged"),
        ("a file/results.db", "is not a directory"),
        (str(here), "is a directory; a store is a file in it"),
        ("mysql://x", "no store on 'mysql'"),
        ("postgresql:///x?host=/nowhere", "postgresql+psycopg:///x"),
    ):
        code, text = failing(capfd, monkeypatch, *FIO, "--store", store)
        assert code in (1, 2) and said in text and text.count("\n") == 1, store


def test_without_the_usual_store_it_runs_and_says_that_nothing_is_kept(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BLKLAB_STORE")
    (here / "a file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(here / "a file"))
    done = run(*FIO)
    assert done.exit_code == 0 and "read: IOPS=" in done.stdout
    assert done.stderr.startswith("blklab: results will not be stored: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.usefixtures("on_both")
def test_a_run_that_cannot_be_written_prints_its_figures_and_a_line(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise RunError("no space left on the device")

    monkeypatch.setattr(single, "put", full)
    monkeypatch.setattr(importing, "put", full)
    done = run(*FIO)
    assert done.exit_code == 0 and "read: IOPS=" in done.stdout
    assert done.stderr == "blklab: this run is not stored: no space left on the device\n"


def test_a_single_run_does_not_go_on(
    here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    once()
    code, text = failing(capfd, monkeypatch, "compare", "--resume", "1")
    said = "blklab: 1 is a single run, which has ended; to run it again: blklab fio\n"
    assert (code, text) == (2, said)
    code, text = failing(capfd, monkeypatch, "compare", "--resume")
    assert "no unfinished comparison" in text


def test_a_directory_of_any_name_can_be_kept(
    own_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once()
    [file] = single.files(place.find())
    document = packing.unpack_json(file.read_bytes())
    name = "/mnt/" + "x" * 4000 + "\udc80\x1b"
    document["setup"]["disks"][0]["label"] = document["runs"][0]["measurement"]["disk"] = name
    file.write_bytes(packing.pack_json(document))
    done = run("results", "--json")
    assert done.stderr == ""
    assert json.loads(done.stdout)["comparisons"][0]["disks"][0].startswith("/mnt/xxx")
    monkeypatch.setattr(sys, "argv", ["blklab", "results", "show", "1"])
    with pytest.raises(SystemExit) as left:
        main()
    assert not left.value.code
