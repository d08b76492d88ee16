"""A comparison that is killed at any moment resumes to the result of an uninterrupted one."""

from __future__ import annotations

import gc
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from blklab.errors import InputError
from blklab.store import database, origin, place, read, schema
from blklab.store.opening import open_store
from tests.real_postgres import new_database
from tests.test_cli import failing, run

ROOT = Path(__file__).parent.parent
JOB = """# A little of everything
[a]
rw=randrw
direct=1
ioengine=libaio
iodepth=8
size=4M
io_size=512k
"""
STUDY = """
title = "Tiny"
question = "Does it go on?"
source = "none"

[[part]]
name = "one"
question = "Here?"
disks = ["950pro-256gb"]
workloads = ["tiny.fio"]
schedulers = ["none", "kyber", "kyber@slow"]
repeats = 6

[[part]]
name = "two"
question = "And there?"
disks = ["su800-128gb"]
workloads = ["tiny.fio"]
schedulers = ["none", "mq-deadline"]
repeats = 6

[[kernel]]
name = "slow"
summary = "never built"
"""
TINY = ("compare", "--disk", "950pro-256gb", "--workload", "tiny.fio", "--repeats", "2",
        "--scheduler", "none", "--scheduler", "kyber")  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tiny.fio").write_text(JOB)
    (tmp_path / "tiny.toml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("command", "rounds"), [("compare", 12), ("run", 4)])
def test_killed_at_any_moment_it_goes_on_to_the_same_bytes(
    here: Path, command: str, rounds: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.killing", str(here), command, str(rounds)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    kills = [json.loads(line) for line in done.stdout.splitlines()]
    # Kills before the first run and after the last prove little.
    assert sum(0 < kept < planned for kept, planned in kills) >= rounds / 3, kills
    if place.find().file:
        with open_store(place.find()).reading() as connection:
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"


@pytest.mark.usefixtures("postgres")
def test_killed_beside_a_server_it_goes_on_to_the_same_bytes(
    here: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLKLAB_STORE", new_database(request.getfixturevalue("postgres")))
    test_killed_at_any_moment_it_goes_on_to_the_same_bytes(here, "compare", 3)


def test_a_run_that_fails_keeps_the_others_and_says_how_to_go_on(
    here: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from blklab.errors import RunError
    from blklab.rigs import sim

    once, count = sim.SimRig.run, 0

    def failing_at_the_third(*arguments: object) -> object:
        nonlocal count
        count += 1
        if count == 3:
            raise RunError("the disk fell off")
        return once(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(sim.SimRig, "run", failing_at_the_third)
    code, text = failing(capfd, monkeypatch, *TINY, "--jobs", "1")
    assert code == 1
    assert text.splitlines()[-1] == (
        "blklab: the disk fell off; finished runs are stored; "
        "to continue: blklab compare --resume 1"
    )
    assert not (here / "reports").exists()
    let_its_process_seem_dead()
    assert read.listed(open_store(place.find()))[0].kept == 2
    count = 3
    done = run("compare", "--resume", "--json")
    document = json.loads(done.stdout)
    assert (document["kept"], document["report"]) == (1, str(here / "reports/compare/report.html"))
    assert count == 3 + 2, "what is kept is not run again"
    run(*TINY, "--out", "whole")
    whole = (here / "whole/results.json").read_bytes()
    assert (here / "reports/compare/results.json").read_bytes() == whole


def let_its_process_seem_dead() -> None:
    """Lets its process seem dead."""
    with open_store(place.find()).writing() as connection:
        connection.execute(schema.COMPARISON.update().values(owner=None))


def test_resuming_a_complete_comparison_only_writes_the_report_again(here: Path) -> None:
    run(*TINY)
    before = (here / "reports/compare/results.json").read_bytes()
    shutil.rmtree(here / "reports")
    assert run("compare", "--resume", "1", "--objective", "latency").exit_code == 0
    assert (here / "reports/compare/results.json").read_bytes() == before
    # From the store: the files are not read again.
    (here / "tiny.fio").unlink()
    assert run("compare", "--resume", "1", "--out", "other").exit_code == 0
    assert (here / "other/results.json").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "--resume"], "--resume: no unfinished comparison"),
        (["run", "--resume"], "--resume: no unfinished comparison"),
        (["compare", "--resume", "9"], "--resume: no comparison 9"),
        (["compare", "--resume", "x"], "'x': not the number of a comparison"),
        (["compare", "1"], "'1': not expected; to resume a number, add --resume"),
        (["compare", "--resume", "--seed", "3"], "--seed: --resume uses the original options"),
        (["run", "--resume", "--rig", "sim"], "--rig: --resume uses the original options"),
        (["compare", "--resume", "--no-keep"], "--no-keep: --resume continues a stored comparison"),
        (["run", "--resume", "--no-keep"], "--no-keep: --resume continues a stored comparison"),
        (["run", "--resume", "1"], "1 is resumed with: blklab compare --resume 1"),
        (["run"], "expected the name of a study; see: blklab studies"),
        (["compare", "--resume", "--store", "absent.db"], "absent.db: no store there yet"),
    ],
)
def test_a_comparison_that_cannot_be_resumed_is_one_line(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    run(*TINY)
    capfd.readouterr()
    code, text = failing(capfd, monkeypatch, *arguments)
    assert (code, text.count("\n")) == (1 if "absent.db" in message else 2, 1)
    assert message in text


# Errors of the store while a comparison runs


def test_the_usual_store_that_cannot_be_used_costs_a_line_and_no_result(
    here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BLKLAB_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(here / "data"))
    (here / "data/blklab").mkdir(parents=True)
    (here / "data/blklab/results.db").write_text("mine")
    done = run(*TINY)
    errors = done.stderr
    assert done.exit_code == 0
    assert "blklab: results will not be stored: " in errors
    assert "results.db: not a store of blklab, or damaged; choose a store with --store" in errors
    assert (here / "reports/compare/results.json").exists()
    # With an explicit store the results must be stored there.
    code, text = failing(capfd, monkeypatch, *TINY, "--store", "data/blklab/results.db")
    assert (code, text.count("\n")) == (1, 1)
    assert "data/blklab/results.db: not a store of blklab, or damaged" in text


@contextmanager
def small_disk(directory: Path, kib: int) -> Iterator[Path]:
    """A file system that is soon full."""
    directory.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs to mount a file system: {done.stderr.strip()}")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def test_a_store_that_may_only_be_read_is_read_and_not_written(
    here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_disk(here / "kept", 4096) as kept:
        file = str(kept / "r.db")
        run(*TINY, "--store", file)
        (here / "reports").rename(here / "before")
        # A file open for writing prevents a read-only remount.
        gc.collect()
        subprocess.run(["mount", "-o", "remount,ro", str(kept)], check=True)
        assert failing(capfd, monkeypatch, *TINY, "--store", file) == (
            1,
            f"blklab: {file}: may not be written\n",
        )
        assert not (here / "reports").exists()
        listed = json.loads(run("results", "--store", file, "--json").stdout)
        assert [(row["id"], row["state"]) for row in listed["comparisons"]] == [(1, read.COMPLETE)]
        assert run("report", "1", "--store", file).exit_code == 0
        capfd.readouterr()
        assert failing(capfd, monkeypatch, "results", "remove", "1", "--store", file) == (
            1,
            f"blklab: {file}: may not be written\n",
        )


@pytest.mark.parametrize("kib", [160, 240, 320])
def test_a_full_disk_below_the_store_costs_a_line_and_no_result(here: Path, kib: int) -> None:
    many = (*TINY[:-4], "--scheduler", "none", "--repeats", "40")
    run(*many, "--out", "whole", "--store", "whole.db")
    with small_disk(here / "small", kib) as small:
        done = subprocess.run(
            [sys.executable, "-m", "blklab", *many, "--store", str(small / "r.db")],
            cwd=here,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "small/r.db: no space left on the device" in done.stderr
        assert "Traceback" not in done.stderr
        [row] = read.listed(open_store(place.find(str(small / "r.db"))))
        assert row.kept < row.planned
    whole = (here / "whole/results.json").read_bytes()
    assert (here / "reports/compare/results.json").read_bytes() == whole


def test_a_report_that_cannot_be_written_is_kept_and_says_where(
    here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    code, text = failing(capfd, monkeypatch, *TINY)
    assert code == 1
    assert text.splitlines()[-1].endswith(
        "results.json: not written: No space left on device; finished runs are stored: "
        "blklab compare --resume 1 --out DIRECTORY"
    )
    [row] = read.listed(open_store(place.find()))
    assert (row.state, row.kept) == (read.COMPLETE, row.planned)


def test_a_comparison_that_another_process_runs_is_not_resumed(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*TINY)
    with open_store(place.find()).writing() as connection:
        connection.execute(schema.COMPARISON.update().values(owner=origin.mark(), ended_at=None))
    capfd.readouterr()
    assert failing(capfd, monkeypatch, "compare", "--resume", "1") == (
        2,
        f"blklab: 1 is being run by process {os.getpid()}\n",
    )
    assert "no unfinished" in failing(capfd, monkeypatch, "compare", "--resume")[1]


@pytest.mark.usefixtures("on_both")
def test_several_commands_at_once_share_a_new_store(here: Path) -> None:
    command = [sys.executable, "-m", "blklab", *TINY]
    several = [
        subprocess.Popen(
            [*command, "--out", f"out{number}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    errors = [process.communicate(timeout=120)[1] for process in several]
    assert [process.returncode for process in several] == [0] * 4, errors
    assert "not stored" not in "".join(errors)
    rows = read.listed(open_store(place.find()))
    assert [(row.id, row.state, row.kept) for row in rows] == [
        (number, read.COMPLETE, 4) for number in (4, 3, 2, 1)
    ]
    texts = {(here / f"out{number}/results.json").read_bytes() for number in range(4)}
    assert len(texts) == 1


def test_a_store_that_another_process_holds_is_one_line(
    here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*TINY)
    shutil.rmtree(here / "reports")
    capfd.readouterr()
    monkeypatch.setattr(database, "_WAIT_S", 0.1)
    holder = sqlite3.connect(os.environ["BLKLAB_STORE"], isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    code, text = failing(capfd, monkeypatch, *TINY)
    assert (code, text.count("\n")) == (1, 1)
    assert text.endswith("results.db: locked by another process\n")
    assert not (here / "reports").exists()
    # A reader does not wait.
    assert run("results").exit_code == 0
    holder.close()


def test_a_study_is_a_comparison_for_each_part_and_its_report_is_made_again(here: Path) -> None:
    document = json.loads(run("run", "tiny.toml", "--json").stdout)
    assert document["kept"] == {"one": 1, "two": 2}
    shown = run("results", "show", "2").stdout
    assert "2: complete, 12 of 12 runs, part two of study tiny\n" in shown
    before = (here / "reports/tiny/one/results.json").read_bytes()
    assert run("report", "1").exit_code == 0
    assert "<title>tiny: one</title>" in (here / "reports/1/report.html").read_text()
    shutil.rmtree(here / "reports")
    assert run("run", "--resume", "1").exit_code == 0
    assert (here / "reports/tiny/one/results.json").read_bytes() == before
    assert (here / "reports/tiny/report.html").exists()


@pytest.mark.parametrize(
    ("command", "results"), [(TINY, "compare"), (("run", "tiny.toml"), "tiny/two")]
)
def test_with_no_keep_the_results_are_the_same_and_the_store_stays_empty(
    command: tuple[str, ...], results: str, here: Path, own_store: Path
) -> None:
    done = run(*command, "--no-keep", "--json")
    assert done.exit_code == 0 and "kept" not in done.stderr
    assert json.loads(done.stdout)["kept"] in (None, {})
    assert list(own_store.parent.iterdir()) == []
    file = here / "reports" / results / "results.json"
    before = file.read_bytes()
    assert "stored as 1" in run(*command).stderr
    assert file.read_bytes() == before


def test_an_interrupted_comparison_that_is_not_kept_names_no_way_to_resume(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr("blklab.rigs.sim.SimRig.run", interrupt)
    for command in (TINY, ("run", "tiny.toml")):
        code, text = failing(capfd, monkeypatch, *command, "--jobs", "1", "--no-keep")
        assert code == 130
        assert text.endswith("\nblklab: interrupted; nothing was written\n")


@pytest.mark.parametrize("command", [TINY, ("run", "tiny.toml")])
def test_a_comparison_refused_before_its_first_run_is_not_kept(
    command: tuple[str, ...], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> object:
        raise InputError("/mnt has no room")

    with monkeypatch.context() as patched:
        patched.setattr("blklab.rigs.modelled.ModelledDisks.prepared", refuse)
        code, text = failing(capfd, patched, *command)
    assert code == 2 and text.splitlines()[-1] == "blklab: /mnt has no room"
    assert "kept" not in text
    assert json.loads(run("results", "--json").stdout)["comparisons"] == []
