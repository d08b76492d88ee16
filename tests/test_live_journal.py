"""Disks are restored, whatever happens to the process that set them."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from blklab.base.journal import BusyError, Journal, boot_id
from blklab.base.signals import ENDING, Signals
from blklab.errors import InputError, RunError
from blklab.host.devices import queue
from blklab.host.devices.queue import Queue
from blklab.rigs.live import files, leftovers
from blklab.rigs.live.borrowed import borrowing, put_back
from tests import live_helper, loop_device
from tests.fake_sysfs import Machine

KILLS = int(os.environ.get("BLKLAB_TEST_KILLS", "100"))
"""The number of kills of a process at a random moment."""
SIGNALS = int(os.environ.get("BLKLAB_TEST_SIGNALS", "1"))
"""The number of each other signal."""

_CUSTOM = {
    "scheduler": "mq-deadline",
    "iosched/fifo_batch": "7",
    "iosched/writes_starved": "5",
    "read_ahead_kb": "256",
    "nr_requests": "100",
}


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Queue]:
    """A disk as an administrator may have set it: a scheduler with changed tunables."""
    loop_device.require()
    with loop_device.attached(tmp_path) as name:
        found = queue.named(name)
        fresh = found.settings()
        found.write_all(_CUSTOM)
        yield found
        if found.is_there():
            found.write_all(fresh)


@contextlib.contextmanager
def helper(journal: Journal, *disks: str) -> Iterator[subprocess.Popen[str]]:
    """A running process that sets and restores in an endless loop. It ends with the test."""
    process = subprocess.Popen(
        # Under nohup it would ignore SIGHUP, from the background of a shell SIGQUIT.
        ["env", "--default-signal", sys.executable, "-m", "tests.live_helper", *disks],
        env=os.environ | {"BLKLAB_JOURNAL": str(journal.directory)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process:
        try:
            assert process.stdout.readline() == "ready\n", process.communicate()
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def forked(journal: Journal, disk: str) -> Iterator[None]:
    """The same as `helper` without starting Python anew; killed at the end of the ``with``."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        # The fork must never continue as a second pytest.
        try:
            os.dup2(writing, 1)
            os.environ["BLKLAB_JOURNAL"] = str(journal.directory)
            sys.stdout = os.fdopen(1, "w", closefd=False)
            live_helper.main([disk])
        finally:
            os._exit(1)
    os.close(writing)
    assert os.read(reading, 6) == b"ready\n"
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        os.close(reading)
    assert os.WIFSIGNALED(status), "it ended by itself"


def test_settings_are_put_back_after_success_and_after_an_error(
    loop: Queue, journal: Journal, signals: Signals
) -> None:
    before = loop.settings()
    told: list[str] = []
    with borrowing([loop], journal, signals, told) as borrowed:
        borrowed.use("bfq", {"slice_idle": "0", "read_ahead_kb": "64", "nr_requests": "32"})
        assert loop.read("iosched/slice_idle") == "0"
        assert journal.keys() == [f"disk-{loop.name}"]
    assert (loop.settings(), told, journal.keys()) == (before, [], [])
    with (
        pytest.raises(ZeroDivisionError),
        borrowing([loop], journal, signals, told) as borrowed,
    ):
        borrowed.use("kyber", {})
        raise ZeroDivisionError
    assert (loop.settings(), told, journal.keys()) == (before, [], [])


def test_a_scheduler_gets_its_defaults_after_any_earlier_settings(
    loop: Queue, journal: Journal, signals: Signals
) -> None:
    told: list[str] = []
    with borrowing([loop], journal, signals, told) as borrowed:
        borrowed.use("mq-deadline", {})
        fresh = loop.settings()
        assert fresh["iosched/fifo_batch"] == "16"
        assert fresh["read_ahead_kb"] == "256", "the queue's own settings stay"
        borrowed.use("mq-deadline", {"fifo_batch": "2", "read_ahead_kb": "32", "nr_requests": "8"})
        assert loop.read("iosched/fifo_batch") == "2"
        borrowed.use("mq-deadline", {})
        assert loop.settings() == fresh
        borrowed.use("none", {})
        plain = loop.settings()
        borrowed.use("none", {"nr_requests": "16"})
        assert loop.settings() != plain
        borrowed.use("none", {})
        assert loop.settings() == plain


def test_a_setting_that_the_journal_lacks_cannot_be_set(
    loop: Queue, journal: Journal, signals: Signals
) -> None:
    with (
        pytest.raises(queue.MissingError, match="write_cache: "),
        borrowing([loop], journal, signals, []) as borrowed,
    ):
        borrowed.use("none", {"write_cache": "write back"})
    assert loop.settings()["scheduler"] == "mq-deadline"


def test_a_scheduler_that_cannot_be_set_is_one_line_and_all_is_put_back(
    loop: Queue, journal: Journal, signals: Signals
) -> None:
    before = loop.settings()
    with (
        pytest.raises(queue.RefusedError) as refused,
        borrowing([loop], journal, signals, []) as borrowed,
    ):
        borrowed.use("cfq", {})
    assert "the kernel refuses cfq" in str(refused.value)
    assert loop.settings() == before


def test_a_change_by_another_program_is_noticed(
    loop: Queue, journal: Journal, signals: Signals
) -> None:
    with borrowing([loop], journal, signals, []) as borrowed:
        borrowed.use("kyber", {})
        set_to = {loop.name: loop.settings()}
        borrowed.check_still(set_to)
        loop.write("scheduler", "bfq")
        with pytest.raises(RunError, match=r"scheduler was kyber when .* and bfq when it ended"):
            borrowed.check_still(set_to)


def test_killed_at_random_moments_nothing_is_left_changed(loop: Queue, journal: Journal) -> None:
    before, chance, changed = loop.settings(), random.Random(1), 0
    for _ in range(KILLS):
        with forked(journal, loop.name):
            time.sleep(chance.uniform(0.0, 0.08))
        changed += loop.settings() != before
        found = leftovers.restore(journal)
        assert found.problems == []
        assert (loop.settings(), journal.keys()) == (before, [])
    assert changed > KILLS // 10, "hardly any was killed while it had something changed"


def test_the_next_borrower_restores_the_settings_of_a_killed_one(
    loop: Queue, journal: Journal, signals: Signals
) -> None:
    before = loop.settings()
    _killed_while_changed(loop, journal)
    told: list[str] = []
    with borrowing([loop], journal, signals, told) as borrowed:
        assert borrowed.before[loop.name] == before
    assert loop.settings() == before
    assert "restored to mq-deadline" in told[0]


@pytest.mark.parametrize("number", sorted(ENDING - {signal.SIGPIPE, signal.SIGXFSZ}))
def test_ended_by_a_signal_it_puts_back_itself(loop: Queue, journal: Journal, number: int) -> None:
    before, chance = loop.settings(), random.Random(number)
    # Python ignores SIGPIPE and SIGXFSZ from its start.
    for _ in range(SIGNALS):
        with helper(journal, loop.name) as process:
            time.sleep(chance.uniform(0.0, 0.1))
            process.send_signal(number)
            process.communicate(timeout=30)
        ends = (1, 130, -number) if number == signal.SIGINT else (128 + number, -number)
        assert process.returncode in ends
        assert (loop.settings(), journal.keys()) == (before, [])


def test_a_disk_in_use_is_neither_borrowed_nor_restored(
    loop: Queue, journal: Journal, signals: Signals
) -> None:
    with borrowing([loop], journal, signals, []) as borrowed:
        borrowed.use("kyber", {})
        with (
            pytest.raises(BusyError, match=f"{loop.name}: in use by another blklab, process "),
            borrowing([loop], journal, signals, []),
        ):
            pass
        found = leftovers.restore(journal)
        assert found.busy == [
            f"disk-{loop.name}: in use by another blklab, process {os.getpid()}: left alone"
        ]
        assert loop.read("scheduler") == "kyber"


def test_another_file_behind_a_loop_device_has_the_same_queue_which_is_put_back(
    tmp_path: Path, journal: Journal, signals: Signals
) -> None:
    told: list[str] = []
    loop_device.require()
    with loop_device.attached(tmp_path) as name:
        node, other = f"/dev/{name}", tmp_path / "other.img"
        other.write_bytes(bytes(1 << 20))
        device, before = queue.named(name), queue.named(name).settings()
        with borrowing([device], journal, signals, told) as borrowed:
            borrowed.use("kyber", {})
            loop_device.losetup("--detach", node)
            loop_device.losetup(node, str(other))
            with pytest.raises(queue.GoneError):
                borrowed.use("bfq", {})
        assert (told, journal.keys()) == ([], [])
        assert queue.named(name).settings() == before


def test_a_removed_disk_is_one_line_and_a_new_one_is_not_touched(
    tmp_path: Path, journal: Journal, signals: Signals
) -> None:
    machine, told = Machine(tmp_path), list[str]()
    disk = machine.disk("sda")
    fake = queue.named("sda", machine.roots)
    with borrowing([fake], journal, signals, told, machine.roots):
        (disk / "queue").rename(tmp_path / "old")
        shutil.copytree(tmp_path / "old", disk / "queue")
        (disk / "queue/read_ahead_kb").write_text("4096\n")
    assert told == ["sda: the disk is gone; nothing to restore"]
    assert journal.keys() == []
    assert queue.named("sda", machine.roots).read("read_ahead_kb") == "4096"
    told.clear()
    with borrowing([fake], journal, signals, told, machine.roots):
        (machine.top / "sys/block/sda").unlink()
    assert told == ["sda: the disk is gone; nothing to restore"]


def test_after_a_reboot_there_is_nothing_to_put_back(loop: Queue, journal: Journal) -> None:
    before = loop.settings()
    _killed_while_changed(loop, journal)
    path = journal.directory / f"disk-{loop.name}.json"
    path.write_text(path.read_text().replace(boot_id(), "0" * 36))
    found = leftovers.restore(journal)
    assert found.done == [f"{loop.name}: the machine was rebooted since, which undid it"]
    assert journal.keys() == []
    loop.write_all(before)


def test_an_attribute_that_cannot_be_written_leaves_the_rest_put_back(tmp_path: Path) -> None:
    disk = Machine(tmp_path).disk("sda")
    fake = queue.named("sda", Machine(tmp_path).roots)
    before = fake.settings()
    for name, value in {"read_ahead_kb": "4096", "nomerges": "2"}.items():
        (disk / "queue" / name).write_text(f"{value}\n")
    # A directory takes no value, not even root's.
    (disk / "queue/nomerges").unlink()
    (disk / "queue/nomerges").mkdir()
    problems = put_back(fake, before)
    assert len(problems) == 1
    assert problems[0].startswith("not restored: sda: nomerges: ")
    assert fake.read("read_ahead_kb") == "128"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"boot_id": 3}',
        '{"boot_id": "BOOT", "disk": "../../etc", "settings": {}}',
        '{"boot_id": "BOOT", "disk": "loop0", "settings": {"../../passwd": "x"}}',
        '{"boot_id": "BOOT", "disk": "loop0", "settings": {"iosched/../x": "x"}}',
        '{"boot_id": "BOOT", "disk": "loop0", "settings": {"scheduler": 3}}',
    ],
)
def test_a_damaged_record_is_one_line_and_nothing_is_written(journal: Journal, text: str) -> None:
    journal.directory.mkdir()
    path = journal.directory / "disk-loop0.json"
    path.write_text(text.replace("BOOT", boot_id()))
    found = leftovers.restore(journal)
    assert len(found.problems) == 1
    assert str(path) in found.problems[0] and "not a record" in found.problems[0]
    assert leftovers.forget(journal, "loop0") == "loop0: record discarded; it stays as it is"
    assert journal.keys() == []
    with pytest.raises(InputError, match="--forget: no record of 'loop0'"):
        leftovers.forget(journal, "loop0")


@pytest.mark.parametrize("what", ["directory", "record"])
@pytest.mark.parametrize("how", ["owner", "mode"])
def test_records_that_another_user_can_write_are_ignored(
    loop: Queue, journal: Journal, what: str, how: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    key, before = f"disk-{loop.name}", loop.settings()
    settings = before | {"read_ahead_kb": "4"}
    with journal.locked(key, loop.name):
        identity = (loop.disk / "queue").stat().st_ino
        journal.write(key, "disk", {"disk": loop.name, "queue": identity, "settings": settings})
    place = journal.directory if what == "directory" else journal.directory / f"{key}.json"
    if how == "owner":
        os.chown(place, 65534, 65534)
    else:
        place.chmod(place.stat().st_mode | 0o002)
    why = "it belongs to user nobody" if how == "owner" else "other users may write to it"
    if what == "record":
        [problem] = leftovers.restore(journal).problems
        assert why in problem
    else:
        for act in (
            lambda: leftovers.restore(journal),
            lambda: journal.locked("a", "a").__enter__(),
        ):
            with pytest.raises(InputError, match=f"not trusted as the journal .*: {why}"):
                act()
    assert loop.settings() == before


def test_a_record_is_a_file_and_no_link_or_pipe(journal: Journal, tmp_path: Path) -> None:
    with journal.locked("disk-a", "it"):
        journal.write("disk-a", "disk", {})
    (journal.directory / "disk-a.json").rename(tmp_path / "elsewhere")
    (journal.directory / "disk-a.json").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(journal.directory / "disk-b.json")
    problems = leftovers.restore(journal).problems
    assert len(problems) == 2
    assert all("not a record of blklab's" in line for line in problems)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_killed_while_it_writes_the_record_down_nothing_stays_after_the_next_start(
    loop: Queue, tmp_path: Path, journal: Journal, signals: Signals, call: str
) -> None:
    before = loop.settings()

    def files_then_disk() -> None:
        with files.laid_in(tmp_path, journal, Signals(), []):
            _be_killed_at(call)
            borrowing([loop], journal, Signals(), []).__enter__()

    def only_files() -> None:
        _be_killed_at(call)
        files.laid_in(tmp_path, journal, Signals(), []).__enter__()

    for what in (files_then_disk, only_files):
        child = os.fork()
        if child == 0:
            # The fork must never continue as a second pytest.
            try:
                what()
            finally:
                os._exit(1)
        assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    kinds = [key.partition("-")[0] for key in journal.unfinished()]
    assert (kinds, len(journal.keys())) == (["disk", files.KIND], 1)
    found = leftovers.restore(journal)
    assert (found.problems, found.busy, loop.settings()) == ([], [], before)
    # A disk's lock is kept for the next command.
    assert [path.name for path in journal.directory.iterdir()] == [f"disk-{loop.name}.lock"]
    with borrowing([loop], journal, signals, []):
        assert journal.keys() == [f"disk-{loop.name}"]


def test_a_journal_on_a_full_disk_is_one_line_and_nothing_of_it_stays(
    loop: Queue, journal: Journal, signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with (
        pytest.raises(InputError, match=r"cannot hold the journal .*: No space left on device"),
        borrowing([loop], journal, signals, []),
    ):
        pass
    assert (journal.keys(), journal.unfinished()) == ([], [])


def _be_killed_at(call: str) -> None:
    """Kills this process at that call, between writing a record and making it visible."""

    def die(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(os, call, die)


def _killed_while_changed(loop: Queue, journal: Journal) -> None:
    before = loop.settings()
    for _ in range(1000):
        with forked(journal, loop.name):
            time.sleep(0.02)
        if loop.settings() != before and journal.keys():
            return
        leftovers.restore(journal)
    pytest.fail("never killed while something was changed")
