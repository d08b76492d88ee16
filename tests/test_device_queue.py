"""One disk's queue: found by any of its names, read, set and read back, with each error."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from blklab.base.text import shown
from blklab.errors import InputError
from blklab.host.devices import queue
from blklab.host.devices.queue import (
    DeniedError,
    DifferentError,
    GoneError,
    MissingError,
    Queue,
    RefusedError,
)
from tests import loop_device
from tests.fake_sysfs import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_disk_is_found_by_its_name_its_node_a_link_to_it_and_a_partition(
    machine: Machine,
) -> None:
    sda = machine.disk("sda")
    machine.partition(sda, "sda1", number="8:1")
    machine.link("dev/disk/by-id/ata-Disk_1", Path("../../sda"))
    machine.disk("cciss!c0d0", number="104:0")
    for what in ("sda", "/dev/sda", "sda1", "/dev/sda1", "/dev/disk/by-id/ata-Disk_1"):
        assert queue.find(what, machine.roots).name == "sda"
    assert queue.find("/dev/cciss/c0d0", machine.roots).name == "cciss!c0d0"
    assert queue.device_name("/dev/sda1", machine.roots) == "sda1"


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("sdb", "no block device 'sdb'; did you mean 'sda'?"),
        ("/dev/sdb", "/dev/sdb: no such device; did you mean '/dev/sda'?"),
        ("/dev/disk/by-id/nothing", "no such device"),
        ("/dev/notes", "/dev/notes: not a block device"),
        ("/dev/round", "/dev/round: "),
        ("/dev/a\0b", r"/dev/a\\x00b: "),
        ("..", "no block device '..'"),
        ("/dev", "/dev: not a block device"),
        ("\x1b[2J", r"no block device '\\x1b\[2J'"),
    ],
)
def test_a_name_of_no_block_device_is_reported(machine: Machine, what: str, message: str) -> None:
    machine.disk("sda")
    machine.write("dev/notes", "no device")
    machine.link("dev/round", Path("round"))
    with pytest.raises(InputError, match=message):
        queue.find(what, machine.roots)


def test_the_queue_is_read_as_the_kernel_shows_it(machine: Machine) -> None:
    machine.disk("sda", queue={"iosched/front_merges": "1"})
    found = queue.find("sda", machine.roots)
    assert found.schedulers().active == "mq-deadline"
    assert found.schedulers().available == ("none", "mq-deadline", "kyber", "bfq")
    assert found.tunables() == {"fifo_batch": "16", "front_merges": "1", "read_expire": "500"}
    assert found.attributes()["scheduler"] == "mq-deadline"
    assert found.attributes()["logical_block_size"] == "512"
    assert "logical_block_size" not in found.settings()
    assert found.settings()["iosched/fifo_batch"] == "16"


def test_a_disk_without_scheduler_or_without_choice(machine: Machine) -> None:
    machine.disk("zram0", queue={"scheduler": None, "iosched/fifo_batch": None})
    machine.disk("dm-0", number="253:0", queue={"scheduler": "none"})
    assert "scheduler" not in queue.find("zram0", machine.roots).settings()
    assert queue.find("dm-0", machine.roots).schedulers() == queue.Schedulers("none", ("none",))
    with pytest.raises(
        MissingError, match=r"^zram0: scheduler: this disk has none: .*; see: blklab devices zram0$"
    ):
        queue.find("zram0", machine.roots).read("scheduler")


def test_a_setting_is_written_before_those_that_it_resets() -> None:
    names = ["iosched/slice_idle_us", "wbt_lat_usec", "iosched/slice_idle", "scheduler"]
    names += ["iosched/strict_guarantees", "nr_requests", "iosched/async_depth"]
    order = queue.in_order(names)
    assert order[:3] == ["scheduler", "nr_requests", "iosched/strict_guarantees"]
    assert order.index("iosched/slice_idle") < order.index("iosched/slice_idle_us")
    assert queue.in_order(["read_ahead_kb", "rotational"]) == ["rotational", "read_ahead_kb"]
    assert set(order) == set(names)


@pytest.mark.parametrize("value", ["", " ", "1\n2", "bfq\0", "\x1b[2J"])
def test_a_value_is_one_line_of_text(machine: Machine, value: str) -> None:
    machine.disk("sda")
    with pytest.raises(InputError, match="expected a value in one line"):
        queue.find("sda", machine.roots).write("nr_requests", value)


def test_another_disk_that_took_the_name_is_not_set(machine: Machine) -> None:
    disk = machine.disk("sda")
    found = queue.find("sda", machine.roots)
    (disk / "diskseq").write_text("2\n")
    with pytest.raises(GoneError, match="sda: nr_requests: the disk is gone"):
        found.write("nr_requests", "32")
    assert (disk / "queue/nr_requests").read_text() == "64\n"


def test_a_vanished_disk_is_reported(machine: Machine) -> None:
    machine.disk("sda")
    found = queue.find("sda", machine.roots)
    (machine.top / "sys/block/sda").unlink()
    for what in (found.schedulers, found.tunables, lambda: found.write("nr_requests", "32")):
        with pytest.raises(GoneError, match="the disk is gone"):
            what()


@pytest.mark.parametrize(
    ("number", "kind", "message"),
    [
        (errno.ENODEV, GoneError, "the disk is gone"),
        (errno.EINVAL, RefusedError, "the kernel refuses 32: Invalid argument"),
        (errno.EBUSY, RefusedError, "the kernel refuses 32: Device or resource busy"),
        (errno.EROFS, DeniedError, "mounted read-only, as in a container"),
        (errno.EACCES, DeniedError, "not permitted; type: sudo sh -c 'echo 32 > /.*/nr_requests'"),
    ],
)
def test_an_error_of_the_kernel_is_one_line(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    kind: type[Exception],
    message: str,
) -> None:
    machine.disk("sda")
    found = queue.find("sda", machine.roots)

    def failing(handle: int, text: bytes) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "write", failing)
    with pytest.raises(kind, match=f"^sda: nr_requests: .*{message}"):
        found.write("nr_requests", "32")


def test_escape_codes_line_ends_and_marks_of_direction_are_shown_as_text() -> None:
    assert shown("a\x1b[31m\nb\u202ec\x9b") == "a\\x1b[31m\\nb\\u202ec\\x9b"
    assert shown("Diskö 1") == "Diskö 1"


def test_each_scheduler_of_a_real_disk_is_set_and_read_back(loop: Queue) -> None:
    for name in loop.schedulers().available:
        loop.write("scheduler", name)
        assert loop.schedulers().active == name


def test_a_tunable_of_a_real_disk_is_set_and_read_back(loop: Queue) -> None:
    loop.write("scheduler", "mq-deadline")
    loop.write("iosched/fifo_batch", "1")
    assert loop.tunables()["fifo_batch"] == "1"


@pytest.mark.parametrize("attribute", ["max_sectors_kb", "rotational", "iostats", "add_random"])
def test_setting_a_limit_leaves_the_read_ahead_as_it_was(loop: Queue, attribute: str) -> None:
    loop.write("read_ahead_kb", "64")
    other = {"0": "1", "1": "0"}.get(loop.read(attribute), "64")
    loop.write(attribute, other)
    assert loop.read(attribute) == other
    assert loop.read("read_ahead_kb") == "64"


def test_refused_and_clipped_tunables_are_reported(loop: Queue) -> None:
    loop.write("scheduler", "mq-deadline")
    with pytest.raises(RefusedError, match="refuses cfq: Invalid argument; it has none, "):
        loop.write("scheduler", "cfq")
    with pytest.raises(RefusedError, match="iosched/fifo_batch: the kernel refuses many"):
        loop.write("iosched/fifo_batch", "many")
    with pytest.raises(DifferentError, match="set to -5 and read back as 0"):
        loop.write("iosched/fifo_batch", "-5")
    with pytest.raises(MissingError, match=r"no such tunable; did you mean 'fifo_batch'\?"):
        loop.write("iosched/fifo_bath", "1")
    with pytest.raises(MissingError, match=r"no such setting; did you mean 'nr_requests'\?"):
        loop.write("nr_request", "1")
    with pytest.raises(DeniedError, match="hw_sector_size: the kernel does not allow changes"):
        loop.write("hw_sector_size", "512")


@pytest.mark.parametrize("scheduler", ["none", "mq-deadline", "kyber", "bfq"])
def test_all_settings_of_a_real_disk_come_back_from_under_any_scheduler(
    loop: Queue, scheduler: str
) -> None:
    loop.write("scheduler", "bfq")
    wanted = {"iosched/strict_guarantees": "1", "iosched/slice_idle_us": "500", "nr_requests": "48"}
    loop.write_all(wanted | {"read_ahead_kb": "256"})
    before = loop.settings()
    assert before.items() >= wanted.items()
    loop.write("scheduler", scheduler)
    loop.write("nr_requests", "16")
    loop.write_all(before)
    assert loop.settings() == before
    assert loop.write_all(before) == []


def test_a_real_disk_that_was_detached_and_made_anew_is_another(
    loop: Queue, tmp_path: Path
) -> None:
    node, file = f"/dev/{loop.name}", str(tmp_path / "loop.img")
    loop_device.losetup("--detach", node)
    loop_device.losetup(node, file)
    with pytest.raises(GoneError):
        loop.write("nr_requests", "32")
