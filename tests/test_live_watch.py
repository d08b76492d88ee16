"""`blklab watch` on real disks: what it sees, sets and restores, whatever ends it; its unit."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import blklab
from blklab.api import watch_evidence
from blklab.base.journal import Journal
from blklab.base.signals import Signals
from blklab.cli import app
from blklab.errors import InputError, RunError
from blklab.host.devices.queue import Queue
from blklab.host.roots import Roots
from blklab.rigs.live import counters, recording
from blklab.rigs.live.borrowed import borrowing
from blklab.settings import unit
from tests import loop_device
from tests.applying import Asked, apply
from tests.watch_helper import FAST, bfq_is_best

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio")
CUSTOM = {"scheduler": "mq-deadline", "iosched/fifo_batch": "7", "nr_requests": "100"}


@contextlib.contextmanager
def reads(loop: Queue, *more: str) -> Iterator[None]:
    """Small reads of the disk meanwhile, so many that even a quick machine is busy with them for
    more than the hundredth of the time that counts as idle."""
    words = ["fio", "--name=reads", f"--filename=/dev/{loop.name}", "--rw=randread", "--bs=4k"]
    words += ["--direct=1", "--thread", "--rate_iops=20000", "--time_based", "--runtime=120"]
    words += more
    process = subprocess.Popen([*words, "--output=/dev/null"])
    before = counters.of([loop.name]).read_ios
    try:
        while counters.of([loop.name]).read_ios < before + 1000:
            assert process.poll() is None
            time.sleep(0.01)
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.fixture
def custom(loop: Queue) -> dict[str, str]:
    """The settings of a disk as an administrator may have set it."""
    loop.write_all(CUSTOM)
    return loop.settings()


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evidence that bfq is best."""
    monkeypatch.setattr(watch_evidence.Sources, "about", bfq_is_best)


def watched(
    loop: Queue,
    until: str,
    limits: blklab.WatchLimits = FAST,
    also: Callable[[blklab.WatchEvent], None] = lambda _: None,
) -> tuple[blklab.Watched, list[blklab.WatchEvent]]:
    """A watch that ends, as by Ctrl-C, after an event of this kind or with this text."""
    events: list[blklab.WatchEvent] = []

    def told(event: blklab.WatchEvent) -> None:
        events.append(event)
        also(event)
        if until in (event.what, event.text):
            raise KeyboardInterrupt

    found = blklab.watch([loop.name], limits=limits, for_s=60, on_event=told)
    return found, events


@contextlib.contextmanager
def helper(loop: Queue) -> Iterator[subprocess.Popen[str]]:
    """A process that watches, and has set bfq."""
    process = subprocess.Popen(
        ["env", "--default-signal", sys.executable, "-m", "tests.watch_helper", loop.name],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    with process:
        try:
            assert "set\n" in process.stdout, process.communicate()
            assert loop.read("scheduler") == "bfq"
            yield process
        finally:
            process.kill()


@pytest.mark.usefixtures("given")
def test_a_watch_sets_the_better_scheduler_and_restores_all_settings_at_its_end(
    loop: Queue, custom: dict[str, str], journal: Journal
) -> None:
    seen: list[str] = []

    def look(event: blklab.WatchEvent) -> None:
        if event.what == "set":
            seen.append(loop.read("scheduler"))

    with reads(loop):
        found, events = watched(loop, "set", also=look)
    assert seen == ["bfq"]
    assert [event.what for event in events if event.what not in ("observed", "note")] == [
        "kind", "advice", "set", "restored",
    ]  # fmt: skip
    assert (found.disks, found.changes) == ((loop.name,), 1)
    assert loop.settings() == custom
    assert journal.keys() == []


@pytest.mark.usefixtures("given")
def test_without_apply_nothing_is_set(loop: Queue, custom: dict[str, str]) -> None:
    with reads(loop):
        limits = blklab.WatchLimits(interval_s=0.1, steady=2, sample=False)
        found, events = watched(loop, "advice", limits)
    [advice] = [event for event in events if event.what == "advice"]
    assert advice.text.startswith("bfq would be 3 times better: mq-deadline p99 3 ms and")
    assert (found.changes, loop.settings()) == (0, custom)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_restores_everything(
    loop: Queue, custom: dict[str, str], journal: Journal, number: signal.Signals
) -> None:
    with reads(loop), helper(loop) as process:
        process.send_signal(number)
        assert process.wait(20) == (0 if number == signal.SIGINT else 128 + number)
    assert loop.settings() == custom
    assert journal.keys() == []


def test_restore_undoes_a_killed_watch(
    loop: Queue, custom: dict[str, str], journal: Journal
) -> None:
    with reads(loop), helper(loop) as process:
        process.kill()
        process.wait()
    assert loop.read("scheduler") == "bfq"
    done = CliRunner().invoke(app, ["restore"])
    assert done.exit_code == 0, done.output
    assert f"{loop.name}: restored to mq-deadline and its settings" in done.output
    assert loop.settings() == custom
    assert journal.keys() == []


@pytest.mark.usefixtures("given")
def test_the_next_watch_undoes_a_killed_one_too(loop: Queue, custom: dict[str, str]) -> None:
    with reads(loop):
        with helper(loop) as process:
            process.kill()
            process.wait()
        loop.write("scheduler", "none")
        _, events = watched(loop, "set")
    assert "set" in [event.what for event in events]
    assert loop.settings() == custom


@pytest.mark.usefixtures("given")
def test_a_disk_in_use_by_another_blklab_is_not_set(
    loop: Queue, custom: dict[str, str], journal: Journal, signals: Signals
) -> None:
    with reads(loop), borrowing([loop], journal, signals, []):
        found, events = watched(loop, "not-set")
    [refused] = [event for event in events if event.what == "not-set"]
    assert refused.text == (
        f"bfq was not set: {loop.name}: in use by another blklab, process {os.getpid()}"
    )
    assert (found.changes, loop.settings()) == (0, custom)


@pytest.mark.usefixtures("given")
def test_a_scheduler_that_another_program_sets_stays_until_the_end(
    loop: Queue, custom: dict[str, str]
) -> None:
    def interfere(event: blklab.WatchEvent) -> None:
        if event.what == "set":
            loop.write("scheduler", "kyber")

    limits = blklab.WatchLimits(
        interval_s=0.1, steady=2, apply=True, sample=False, at_most_every_s=0.3
    )
    told = "another program has set kyber; blklab sets it no more"
    ends: list[str] = []

    def look(event: blklab.WatchEvent) -> None:
        interfere(event)
        if event.text == told or ends:
            ends.append(event.what)
        if event.what == "observed" and ends.count("observed") == 10:
            raise KeyboardInterrupt

    with reads(loop):
        found, _ = watched(loop, "never", limits, look)
    assert "set" not in ends
    assert found.changes == 1
    assert loop.settings() == custom


def test_a_disk_that_disappears_ends_the_watch(tmp_path: Path) -> None:
    loop_device.require()
    with loop_device.attached(tmp_path) as name:

        def detach(event: blklab.WatchEvent) -> None:
            if event.what == "observed" and Path(f"/dev/{name}").exists():
                loop_device.losetup("--detach", f"/dev/{name}")
                loop_device.remove(int(name.removeprefix("loop")))

        with pytest.raises(RunError, match="no disk is left to watch: all are gone"):
            blklab.watch([name], limits=FAST, for_s=5, on_event=detach)
        loop_device.add(int(name.removeprefix("loop")))
        loop_device.losetup(f"/dev/{name}", str(tmp_path / "loop.img"))


def test_lines_of_json_have_each_interval_and_the_log_has_the_same_lines(
    loop: Queue, tmp_path: Path
) -> None:
    log = tmp_path / "watch.log"
    with reads(loop):
        before = counters.of([loop.name]).read_ios
        done = CliRunner().invoke(
            app,
            ["watch", "--disk", loop.name, "--interval", "500ms", "--for", "2500ms", "--json",
             "--log", str(log), "--steady", "100"],
        )  # fmt: skip
        counted = counters.of([loop.name]).read_ios - before
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert log.read_text().splitlines() == lines
    rows = [row for row in map(json.loads, lines) if row["what"] == "observed"]
    assert len(rows) in (4, 5)
    last = rows[-1]
    assert (last["disk"], last["kind"], last["scheduler"]) == (loop.name, "small-reads", "none")
    # How many there are, a busy machine decides; the kernel counted them all.
    assert 0 < sum(row["requests"] for row in rows) <= counted
    assert 0.4 < last["requests"] / last["reads_per_s"] < 2, "an interval of half a second"
    # The kernel counts the bytes of an I/O before it counts the I/O, and fio has one at a time: at
    # either end of the interval the counters may be read between the two.
    assert abs(last["read_bytes_mean"] - 4096) <= 4096 / last["requests"] + 1
    assert done.stderr.startswith(f"blklab: watched {loop.name} for ")


def test_a_watch_simulates_the_workload_of_a_kind_once_and_finds_it_in_the_store(
    loop: Queue,
) -> None:
    command = ["watch", "--disk", loop.name, "--interval", "800ms", "--for", "12s", "--model",
               "desktop-5900rpm", "--no-sample", "--objective", "throughput"]  # fmt: skip
    streams = ["--bs=256k", "--rw=read", "--ioengine=libaio", "--iodepth=24", "--rate_iops=0"]
    with reads(loop, *streams):
        first = CliRunner().invoke(app, command)
        second = CliRunner().invoke(app, command)
    for done, source in ((first, "streams on desktop-5900rpm, simulated now)"),
                         (second, "streams on desktop-5900rpm)")):  # fmt: skip
        assert done.exit_code == 0, done.output
        assert f"{loop.name}: large reads, several streams (" in done.stdout
        assert "bfq would be 5.64 times better: none p99 " in done.stdout
        assert source in done.stdout
    assert loop.read("scheduler") == "none"


@pytest.mark.skipif(bool(recording.why_not()), reason=recording.why_not() or "-")
def test_a_sample_of_requests_is_replayed_where_the_kernel_allows_it(
    loop: Queue, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_evidence, "_SAMPLE_S", 1.0)
    limits = blklab.WatchLimits(interval_s=0.2, steady=2)
    with reads(loop, "--rw=read"):
        found, events = watched(loop, "advice", limits)
    [advice] = [event for event in events if event.what == "advice"]
    found_s = re.search(r"no scheduler is better by 10 % \(a sample of ([\d.]+) s, ", advice.text)
    assert found_s and 0.5 < float(found_s[1]) < 2
    assert "I/Os, replayed on " in advice.text
    share = int(advice.text.rpartition("; ")[2].partition(" % of the sampled I/Os")[0])
    assert share > 95
    assert found.evidence_cpu_s > 0
    assert journal.keys() == []


def test_an_interval_takes_less_than_a_thousandth_of_its_default_length(loop: Queue) -> None:
    limits = blklab.WatchLimits(interval_s=0.05, steady=1000, sample=False)
    with reads(loop):
        found = blklab.watch([loop.name], limits=limits, for_s=3)
    assert found.intervals > 20
    assert found.watching_cpu_s / found.intervals < 0.001 * blklab.WatchLimits().interval_s


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--disk", "nosuch"], "no block device 'nosuch'"),
        (["--interval", "soon"], "--interval: expected a time such as 30s, 10m or 2h, found "
                                 "'soon'"),
        (["--interval", "10ms"], "--interval: expected at least 0.05 s, found 0.01 s"),
        (["--for", "5s"], "--for: shorter than one --interval of 10 s"),
        (["--at-most-every", "-1s"], "--at-most-every: expected a time such as 30s, 10m or 2h, "
                                     "found '-1s'"),
        (["--gain", "0"], "--gain: expected more than 0 %, found 0 %"),
        (["--steady", "0"], "--steady: expected at least 1 interval, found 0"),
        (["--objective", "both"], "--objective: no 'both'"),
        (["--model", "nosuch"], "no disk 'nosuch'; there is: 950pro-256gb"),
        (["--scheduler", "cfq"], "this kernel has no scheduler 'cfq'"),
        (["--scheduler", "bfq:nosuch=1"], "'nosuch'"),
        (["--log", "/proc"], "/proc: is a directory; expected a file to write"),
        (["--install", "--json"], "--json: not with --install; the unit runs until it is stopped"),
        (["--uninstall", "--apply"], "--uninstall: expected no other option"),
    ],
)  # fmt: skip
def test_wrong_options_are_one_line(loop: Queue, words: list[str], error: str) -> None:
    disk = [] if "--disk" in words or "--uninstall" in words else ["--disk", loop.name]
    done = CliRunner().invoke(app, ["watch", *disk, *words])
    assert isinstance(done.exception, InputError), done.output
    assert error in str(done.exception)
    assert "\n" not in str(done.exception)


def test_apply_needs_a_queue_that_can_be_written(
    loop: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(InputError, match=rf"{loop.name}: --apply sets .*: needs root; type: sudo "):
        blklab.watch([loop.name], limits=FAST)


# The unit


@pytest.fixture
def here(roots: Roots, programs: Asked, monkeypatch: pytest.MonkeyPatch) -> Roots:
    """A machine with systemd, whose configuration is the test's own."""
    monkeypatch.setattr("blklab.host.roots.HERE", roots)
    monkeypatch.setattr("blklab.settings.programs.HERE", programs)
    (roots.run / "systemd/system").mkdir(parents=True)
    roots.etc.mkdir(exist_ok=True)
    # A checkout in /tmp is not replaceable, but its directory may be of another user.
    monkeypatch.setattr("blklab.base.trust.replaceable_part", lambda _: "")
    return roots


def run(*words: str) -> str:
    done = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_unit_runs_the_same_options_and_restores_after_every_end(
    here: Roots, programs: Asked, loop: Queue
) -> None:
    text = run("watch", "--install", "--disk", loop.name, "--apply", "--gain", "20",
               "--no-sample", "--scheduler", "bfq:slice_idle=0", "--log", "100%.log")  # fmt: skip
    assert "installed: blklab-watch.service" in text
    content = unit.place(here).read_text()
    start = f'"{sys.executable}" "-m" "blklab"'
    log = str(Path("100%%.log").absolute())
    assert (
        f'ExecStart={start} "watch" "--disk" "{loop.name}" "--apply" "--scheduler" '
        f'"bfq:slice_idle=0" "--gain" "20.0" "--no-sample" "--log" "{log}"\n'
    ) in content
    assert f'ExecStopPost={start} "restore"\n' in content
    assert programs.words == ["systemctl daemon-reload",
                              "systemctl enable --now blklab-watch.service"]  # fmt: skip
    assert f"installed: blklab watch --disk {loop.name} --apply" in run("status")
    again = CliRunner().invoke(app, ["watch", "--install", "--disk", loop.name])
    assert "to replace it, first: blklab watch --uninstall" in str(again.exception)
    programs.words.clear()
    assert f"removed: blklab watch --disk {loop.name}" in run("watch", "--uninstall")
    assert programs.words == ["systemctl disable --now blklab-watch.service",
                              "systemctl daemon-reload"]  # fmt: skip
    assert not unit.place(here).exists()
    assert run("status") == "nothing is applied\n"


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze: apt-get install systemd")
    place = tmp_path / unit.NAME
    place.write_text(unit.text(["--disk", 'a "b" \\ $HOME %h', "--apply"], "2026-01-01T00:00:00Z"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(place)], check=False, capture_output=True, text=True
    )
    assert not [line for line in done.stderr.splitlines() if unit.NAME in line], done.stderr


def test_undo_removes_the_unit_if_it_is_the_latest(
    here: Roots, programs: Asked, loop: Queue
) -> None:
    apply(loop, "bfq", here, programs)
    time.sleep(1.1 - time.time() % 1)  # The next second: times of entries are whole seconds.
    run("watch", "--install", "--disk", loop.name)
    assert run("undo").startswith(f"undone: blklab watch --disk {loop.name}, installed 2")
    assert loop.read("scheduler") == "bfq"
    run("watch", "--install", "--disk", loop.name)
    assert run("undo", "--all").count("undone: ") == 2
    assert loop.read("scheduler") == "none"
    assert not unit.place(here).exists()


@pytest.mark.parametrize("change", [("Nice=10", "Nice=11"), ("restore", "rm"), ("# Written", "#")])
def test_a_unit_that_is_not_as_written_stays(
    here: Roots, loop: Queue, change: tuple[str, str]
) -> None:
    run("watch", "--install", "--disk", loop.name)
    place = unit.place(here)
    place.write_text(place.read_text().replace(*change))
    for words in (["watch", "--uninstall"], ["undo"], ["status"], ["watch", "--install", "--disk",
                                                                     loop.name]):  # fmt: skip
        done = CliRunner().invoke(app, words)
        assert str(done.exception) == f"{place} is not as blklab wrote it; move it away first"
    assert place.exists()


def test_no_unit_is_one_line(here: Roots) -> None:
    done = CliRunner().invoke(app, ["watch", "--uninstall"])
    assert str(done.exception) == f"no watch is installed: there is no {unit.place(here)}"


def test_without_systemd_the_unit_is_written_and_the_command_named(
    here: Roots, programs: Asked, loop: Queue
) -> None:
    (here.run / "systemd/system").rmdir()
    assert (
        "note: systemd is not running here; where it runs: systemctl enable --now "
        "blklab-watch.service"
    ) in run("watch", "--install", "--disk", loop.name)
    assert programs.words == []


def test_root_does_not_run_a_program_that_another_user_may_replace(
    here: Roots, loop: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("blklab.base.trust.replaceable_part", lambda _: "user eve may change it")
    done = CliRunner().invoke(app, ["watch", "--install", "--disk", loop.name])
    assert str(done.exception).endswith("root will not run it as a service: user eve may change it")
    assert not unit.place(here).exists()
