"""Runs of the live rig that end early: signals, kills, failures. No leftovers."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import threading
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blklab.base.journal import Journal
from blklab.base.signals import ENDING, Signals
from blklab.cli import app
from blklab.errors import RunError
from blklab.host.devices import queue
from blklab.rigs.live import load, outlook, program
from blklab.rigs.live.borrowed import borrowing
from blklab.rigs.live.rig import LiveRig
from tests.live_runs import (
    BLKLAB,
    BUFFERED,
    LONG,
    NEEDS_PROGRAMS,
    READS,
    disk_of,
    experiment,
    fio_at,
    reads_of,
    wait,
)

pytestmark = NEEDS_PROGRAMS


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_nothing_of_it_stays(
    mounted: Path, tmp_path: Path, journal: Journal, number: signal.Signals
) -> None:
    disk, there = disk_of(mounted), sorted(mounted.iterdir())
    before, chance = disk.settings(), random.Random(int(number))
    job = tmp_path / f"long{int(number)}.fio"
    job.write_text(LONG)
    where = ["--rig", "live", "--disk", str(mounted), "--scheduler", "kyber"]
    words = ["fio", str(job), *where]
    if number == signal.SIGTERM:
        words = ["compare", "--workload", str(job), *where, "--out", str(tmp_path / "out")]
    for _ in range(2 if number == signal.SIGKILL else 1):
        process = subprocess.Popen(
            [*BLKLAB, *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            wait(lambda: len(fio_at(mounted)) >= 3, "fio and its two processes run")
            assert disk.read("scheduler") == "kyber"
            time.sleep(chance.uniform(0, 0.3))
        finally:
            process.send_signal(number)
            _, stderr = process.communicate(timeout=60)
        wait(lambda: not fio_at(mounted), "fio has ended with us")
        if number == signal.SIGKILL:
            assert disk.read("scheduler") == "kyber"
            words_of_restore = CliRunner().invoke(app, ["restore"], catch_exceptions=False).stdout
            assert f"{disk.name}: restored to none" in words_of_restore
            assert "removed" in words_of_restore
        else:
            assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[number], stderr
        assert (disk.settings(), sorted(mounted.iterdir())) == (before, there)
        assert journal.keys() == []
    assert CliRunner().invoke(app, ["restore"]).stdout == "nothing to restore\n"


@pytest.mark.parametrize(
    "number", sorted(ENDING - {signal.SIGPIPE, signal.SIGXFSZ} - {*range(35, 64)})
)
def test_a_signal_at_any_moment_of_a_run_leaves_nothing(
    mounted: Path, tmp_path: Path, journal: Journal, number: int
) -> None:
    disk, there = disk_of(mounted), sorted(mounted.iterdir())
    before, chance = disk.settings(), random.Random(number)
    (tmp_path / "long.fio").write_text(LONG)
    words = ["fio", str(tmp_path / "long.fio"), "--rig", "live", "--disk", str(mounted)]
    own = tmp_path / "scratch"
    own.mkdir()
    handler = signal.getsignal(number)
    if handler is signal.SIG_IGN:
        # Under nohup SIGHUP is ignored, and the command would inherit that.
        signal.signal(number, signal.SIG_DFL)
    process = subprocess.Popen(
        [*BLKLAB, *words, "--scheduler", "bfq:slice_idle=0,nr_requests=32"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(own)},
    )
    signal.signal(number, handler)
    try:
        wait((journal.directory / f"disk-{disk.name}.json").exists, "the disk is borrowed")
        # From the first setting to the middle of fio's work.
        time.sleep(chance.uniform(0, 0.8))
    finally:
        process.send_signal(number)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else 128 + number), stderr
    wait(lambda: not fio_at(mounted), "fio has ended with us")
    assert (disk.settings(), sorted(mounted.iterdir())) == (before, there)
    assert (journal.keys(), sorted(own.iterdir())) == ([], [])


def test_where_users_have_no_namespaces_fio_ends_all_the_same(
    mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (program, load, outlook):
        monkeypatch.setattr(module, "confined", tuple)
    place, lines, ended = LiveRig(), list[str](), list[BaseException]()
    one = experiment(place, mounted, LONG)

    def run() -> None:
        try:
            place.run(one)
        except BaseException as error:
            ended.append(error)

    with place.prepared([one], lines.append):
        thread = threading.Thread(target=run)
        thread.start()
        wait(lambda: fio_at(mounted), "fio runs")
        place.cancel()
        thread.join(60)
        wait(lambda: not fio_at(mounted), "fio has ended, and its jobs with it")
    assert [type(error) for error in ended] == [KeyboardInterrupt]
    assert any("no PID namespaces for this user" in line for line in lines)


def test_a_killed_comparison_goes_on_where_it_was(
    mounted: Path, tmp_path: Path, own_store: Path, journal: Journal
) -> None:
    disk, job, out = disk_of(mounted), tmp_path / "short.fio", tmp_path / "out"
    before = disk.settings()
    job.write_text(READS)
    where = ["--rig", "live", "--disk", str(mounted), "--workload", str(job), "--out", str(out)]
    words = ["compare", *where, "--scheduler", "none", "--scheduler", "bfq", "--repeats", "2"]
    process = subprocess.Popen([*BLKLAB, *words], stderr=subprocess.PIPE)

    def kept() -> int:
        # The file exists before it has tables.
        with (
            contextlib.suppress(sqlite3.OperationalError),
            contextlib.closing(sqlite3.connect(f"file:{own_store}?mode=ro", uri=True)) as store,
        ):
            return int(store.execute("SELECT count(*) FROM run").fetchone()[0])
        return 0

    try:
        wait(lambda: own_store.exists() and kept() >= 1, "a run is kept")
    finally:
        process.kill()
        process.communicate()
    there = kept()
    assert 1 <= there < 4
    done = CliRunner().invoke(app, ["compare", "--resume"], catch_exceptions=False)
    assert f"{4 - there} runs on {mounted}" in done.stderr
    assert f"{disk.name}: restored to none" in done.stderr
    assert ": removed" in done.stderr
    assert kept() == 4
    runs = json.loads((out / "results.json").read_text())["runs"]
    assert [(run["scheduler"], run["repeat"]) for run in runs] == [
        ("none", 0), ("none", 1), ("bfq", 0), ("bfq", 1),
    ]  # fmt: skip
    assert disk.settings() == before
    assert ([path.name for path in mounted.iterdir()], journal.keys()) == (["lost+found"], [])


def test_a_disk_is_described_as_it_was_before_a_run_that_was_killed(
    mounted: Path, journal: Journal
) -> None:
    place, disk = LiveRig(), disk_of(mounted)
    one = experiment(place, mounted, READS)
    before = place.describe_disk(one.disk)
    child = os.fork()
    if child == 0:
        # The fork must never continue as a second pytest.
        try:
            with borrowing([disk], journal, Signals(), []) as borrowed:
                borrowed.use("bfq", {})
                os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    os.waitpid(child, 0)
    assert disk.read("scheduler") == "bfq"
    assert place.describe_disk(one.disk) != before
    assert disk.read("scheduler") == "bfq", "a question has changed the disk"
    place.put_right()
    assert place.describe_disk(one.disk) == before
    told: list[str] = []
    with place.prepared([one], told.append):
        pass
    [line] = [line for line in told if "restored to none" in line]
    assert line.startswith(f"{disk.name}: ")


def test_fio_that_fails_is_one_line(mounted: Path) -> None:
    place = LiveRig()
    one = experiment(place, mounted, BUFFERED)
    with place.prepared([one], print):
        (found,) = (path for path in mounted.iterdir() if path.name.startswith(".blklab-"))
        (found / "0").unlink()
        (found / "0").mkdir()
        with pytest.raises(RunError, match=r"fio: .*(Is a directory|Permission denied)") as failed:
            place.run(one)
        (found / "0").rmdir()
    assert "\n" not in str(failed.value)


def test_a_disk_that_fails_in_the_middle_is_one_line_and_is_put_back(
    tmp_path: Path, journal: Journal, bare: str
) -> None:
    disk, place = queue.named(bare), LiveRig()
    before, reads = disk.settings(), reads_of(bare)

    def fail() -> None:
        wait(lambda: reads_of(bare) > reads + 50, "fio reads")
        os.truncate(tmp_path / "loop.img", 0)

    one = experiment(place, f"/dev/{bare}", LONG.replace("600", "60"), "kyber")
    failing = threading.Thread(target=fail)
    with place.prepared([one], print):
        failing.start()
        with pytest.raises(RunError, match=r"^fio: .*Input/output error") as failed:
            place.run(one)
        failing.join()
        assert disk.read("scheduler") == "kyber"
    assert "\n" not in str(failed.value)
    assert (disk.settings(), journal.keys()) == (before, [])
