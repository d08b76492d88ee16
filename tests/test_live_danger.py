"""The targets of I/O, and devices that are never written to without their full id."""

from __future__ import annotations

import os
import shutil
import stat
import struct
import subprocess
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from blklab.errors import InputError
from blklab.host.roots import HERE
from blklab.rigs.live import danger, target
from tests import loop_device
from tests.fake_sysfs import Machine

_SECTOR = 512


def ext4(node: Path) -> None:
    subprocess.run(["mkfs.ext4", "-q", str(node)], check=True)


def swap(node: Path) -> None:
    subprocess.run(["mkswap", str(node)], check=True, capture_output=True)


def lvm(node: Path) -> None:
    """A physical volume's label, as LVM2 writes it into the second sector."""
    body = struct.pack("<I8s32s", 32, b"LVM2 001", b"0123456789abcdefghijABCDEFGHIJkl")
    body = body.ljust(_SECTOR - 20, b"\0")
    crc = zlib.crc32(body, 0xF597A6CF ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
    label = struct.pack("<8sQI", b"LABELONE", 1, crc) + body
    with node.open("r+b") as file:
        file.seek(_SECTOR)
        file.write(label)


def table(node: Path) -> None:
    """A DOS partition table with one partition of 4 MiB."""
    entry = struct.pack("<B3xB3xII", 0, 0x83, 2048, 8192)
    with node.open("r+b") as file:
        file.write(bytes(446) + entry + bytes(48) + b"\x55\xaa")


def test_a_device_with_nothing_on_it_is_written_to_only_if_that_is_meant(bare: str) -> None:
    with (
        pytest.raises(InputError, match=f"/dev/{bare}: the job writes.* --write-device"),
        danger.kept_for_writing(bare, allowed=False, overwrite=None),
    ):
        pass
    with danger.kept_for_writing(bare, allowed=True, overwrite=None):
        pass


@pytest.mark.parametrize(
    ("write", "what"),
    [(ext4, "it holds ext4"), (swap, "it holds swap"), (lvm, "it holds LVM2_member"),
     (table, "it holds dos")],
)  # fmt: skip
def test_a_device_with_known_data_is_written_to_only_under_its_full_id(
    bare: str, write: object, what: str
) -> None:
    assert callable(write)
    write(Path(f"/dev/{bare}"))
    with pytest.raises(InputError) as refused:
        danger.check(bare, allowed=True, overwrite=None)
    identity = danger.full_id(bare)
    assert what in str(refused.value)
    assert f"--overwrite {identity}" in str(refused.value)
    for wrong in ("", bare, f"/dev/{bare}", identity[:-1], identity + "x", "yes"):
        with pytest.raises(InputError, match="is not the full id of"):
            danger.check(bare, allowed=True, overwrite=wrong)
    danger.check(bare, allowed=False, overwrite=identity)


def refused(name: str) -> str:
    """The reason, for any option, even with its full id."""
    said = set()
    for allowed in (False, True):
        for overwrite in (None, danger.full_id(name), "wrong"):
            with (
                pytest.raises(InputError) as why,
                danger.kept_for_writing(name, allowed=allowed, overwrite=overwrite),
            ):
                pass
            said.add(str(why.value))
    [line] = said
    assert line.endswith(
        ". The job writes, and nothing was written; a device in use is never written to"
    )
    return line.removeprefix(f"/dev/{name}: ").partition(". The job writes")[0]


def test_a_mounted_device_is_never_written_to(tmp_path: Path) -> None:
    with loop_device.file_system(tmp_path) as mounted:
        name = target.find(str(mounted)).disks[0]
        assert refused(name) == f"it is mounted at {mounted}"
        with danger.kept(name):
            pass


def test_a_device_mounted_in_another_namespace_is_never_written_to(tmp_path: Path) -> None:
    loop_device.require()
    with loop_device.attached(tmp_path) as name:
        ext4(Path(f"/dev/{name}"))
        elsewhere = ["unshare", "--mount", "sh", "-c", f"mount /dev/{name} /mnt && echo && cat"]
        with subprocess.Popen(elsewhere, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdin and other.stdout
            if other.stdout.readline() != b"\n":
                pytest.skip("needs namespaces, which this container refuses")
            assert refused(name) == "a program has opened it exclusively"
            other.stdin.close()


def test_swap_in_use_is_never_written_to(bare: str) -> None:
    node = f"/dev/{bare}"
    subprocess.run(["mkswap", node], check=True, capture_output=True)
    if subprocess.run(["swapon", node], capture_output=True, check=False).returncode:
        pytest.skip("needs swapon to be allowed")
    try:
        assert refused(bare) == "it is swap space"
    finally:
        subprocess.run(["swapoff", node], check=True)


def test_a_device_opened_exclusively_is_never_written_to(bare: str) -> None:
    with danger.kept_for_writing(bare, allowed=True, overwrite=None):
        assert refused(bare) == "a program has opened it exclusively"
    with danger.kept_for_writing(bare, allowed=True, overwrite=None):
        pass


def test_nothing_can_take_a_device_while_it_is_written_to(bare: str, tmp_path: Path) -> None:
    ext4(Path(f"/dev/{bare}"))
    mount = ["mount", f"/dev/{bare}", str(tmp_path)]
    with danger.kept_for_writing(bare, allowed=False, overwrite=danger.full_id(bare)):
        assert subprocess.run(mount, check=False, capture_output=True).returncode != 0
    subprocess.run(mount, check=True)
    subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.fixture
def parted(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A loop device with a partition, which holds a file system."""
    loop_device.require()
    own = tmp_path / "parted"
    own.mkdir()
    with loop_device.attached(own) as name:
        node, part = Path(f"/dev/{name}"), f"{name}p1"
        table(node)
        # Not every kernel reads the table itself.
        subprocess.run(["addpart", str(node), "1", "2048", "8192"], check=True)
        try:
            ext4(Path(f"/dev/{part}"))
            yield name, part
        finally:
            subprocess.run(["delpart", str(node), "1"], check=True)


def test_partitions_and_disks_with_them_are_refused(
    parted: tuple[str, str], tmp_path: Path
) -> None:
    whole, part = parted
    found = danger.held(whole)
    assert f"it has partitions ({part})" in found
    assert f"its partition {part} holds ext4" in found
    assert danger.in_use(whole) == danger.in_use(part) == []
    assert danger.held(part) == ["it holds ext4"]
    assert danger.full_id(part) == f"loop:{tmp_path}/parted/loop.img-part1"
    assert target.find(f"/dev/{part}").disks == (whole,)
    with danger.kept_for_writing(whole, allowed=False, overwrite=danger.full_id(whole)):
        assert refused(part) == "a program has opened it exclusively"


def test_a_disk_with_a_mounted_partition_is_never_written_to(
    parted: tuple[str, str], tmp_path: Path
) -> None:
    whole, part = parted
    subprocess.run(["mount", f"/dev/{part}", str(tmp_path)], check=True)
    try:
        assert refused(whole) == f"its partition {part} is mounted at {tmp_path}"
        assert refused(part) == f"it is mounted at {tmp_path}"
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_device_below_a_loop_device_is_never_written_to(
    bare: str, parted: tuple[str, str], tmp_path: Path
) -> None:
    # By any node that leads to it.
    node = tmp_path / "node"
    os.mknod(node, 0o600 | stat.S_IFBLK, Path(f"/dev/{bare}").stat().st_rdev)
    for at, over_what in (
        (f"/dev/{bare}", "it"),
        (str(node), "it"),
        (f"/dev/{parted[0]}", "disk"),
    ):
        over = loop_device.losetup("--find", "--show", at)
        try:
            if over_what == "it":
                assert refused(bare) == f"it is below {Path(over).name}"
            else:
                assert refused(parted[0]) == f"it is below {Path(over).name}"
                assert refused(parted[1]) == f"its disk {parted[0]} is below {Path(over).name}"
        finally:
            loop_device.losetup("--detach", over)


def test_a_node_that_leads_to_another_device_is_refused(bare: str, tmp_path: Path) -> None:
    node = tmp_path / bare
    os.mknod(node, 0o600 | stat.S_IFBLK, Path("/dev/loop0").stat().st_rdev)
    for kept in (
        danger.kept(bare, replace(HERE, dev=tmp_path)),
        danger.kept_for_writing(
            bare, allowed=True, overwrite=None, roots=replace(HERE, dev=tmp_path)
        ),
    ):
        with pytest.raises(InputError, match=f"the node does not lead to {bare}"), kept:
            pass


@pytest.mark.parametrize("missing", ["wipefs", "blkid"])
def test_without_the_programs_nothing_is_written(
    bare: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setattr(
        shutil, "which", lambda name, path=None: None if name == missing else f"/sbin/{name}"
    )
    with pytest.raises(InputError, match=f"{missing} is missing .apt-get install util-linux."):
        danger.check(bare, allowed=True, overwrite=None)


def test_the_reason_why_a_device_is_in_use_is_reported(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    sda = machine.disk("sda")
    part = machine.partition(sda, "sda1", number="8:1")
    machine.write(f"{part.relative_to(tmp_path)}/holders/dm-0", "")
    machine.write("proc/self/mountinfo", "25 1 8:1 / /mnt/a\\040b rw - ext4 /dev/sda1 rw")
    machine.write("proc/swaps", "Filename Type Size Used Priority")
    found = danger.in_use("sda", machine.roots)
    assert "its partition sda1 is mounted at /mnt/a b" in found
    assert "its partition sda1 is in use by dm-0" in found


def test_the_full_id_is_the_one_that_a_person_knows(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    sda = machine.disk("sda", files={"device/wwid": "naa.5000  \x1b[31m"})
    assert danger.full_id("sda", machine.roots) == "sda-naa.5000-\x1b[31m"
    with pytest.raises(InputError) as refused:
        machine.write("proc/self/mountinfo", "")
        danger.check("sda", allowed=False, overwrite=None, roots=machine.roots)
    assert "\x1b" not in str(refused.value)
    machine.partition(sda, "sda1", number="8:1")
    for link, to in {"wwn-0x5": "sda", "ata-Disk_123": "sda", "ata-Disk_123-part1": "sda1"}.items():
        machine.link(f"dev/disk/by-id/{link}", Path(f"../../{to}"))
    assert danger.full_id("sda", machine.roots) == "ata-Disk_123"
    assert danger.full_id("sda1", machine.roots) == "ata-Disk_123-part1"


def test_a_directory_is_resolved_to_the_disks_below_all_layers(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    for number, name in enumerate(("sda", "sdb")):
        disk = machine.disk(name, number=f"8:{number * 16}")
        machine.partition(disk, f"{name}1", number=f"8:{number * 16 + 1}")
    for number, (name, below) in enumerate({"md0": ("sda1", "sdb1"), "dm-0": ("md0",)}.items()):
        disk = machine.disk(name, number=f"9:{number}", queue={"scheduler": "none"})
        for lower in below:
            machine.write(f"{disk.relative_to(tmp_path)}/slaves/{lower}", "")
    assert target.find("/dev/dm-0", machine.roots).disks == ("sda", "sdb")
    here = tmp_path / "here"
    here.mkdir()
    machine.write(
        "proc/self/mountinfo",
        f"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:99 / {here} rw shared:1 - btrfs /dev/dm-0 rw",
    )
    assert target.find(str(here), machine.roots).disks == ("sda", "sdb")
    machine.write("proc/self/mountinfo", f"2 1 0:99 / {here} rw - nfs4 server:/export rw")
    with pytest.raises(InputError, match=r"is on nfs4 \(server:/export\), with no disk"):
        target.find(str(here), machine.roots)


def test_a_target_that_is_neither_directory_nor_device_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"expected a directory.* found a file"):
        target.find(str(tmp_path / "file"))
    with pytest.raises(InputError, match=r"/none: no such directory$"):
        target.find(str(tmp_path / "none"))
    with pytest.raises(InputError, match="/dev/nosuchdisk: no such device"):
        target.find("/dev/nosuchdisk")
    with pytest.raises(InputError, match="found an empty name"):
        target.find("")
    with pytest.raises(InputError, match="no block device 'nosuchdisk'"):
        target.find("nosuchdisk")
    with pytest.raises(InputError, match="not a block device"):
        target.find("/dev/null")


def test_a_loop_devices_directory_is_its_own_disk(tmp_path: Path) -> None:
    with loop_device.file_system(tmp_path) as mounted:
        found = target.find(str(mounted))
        number = mounted.stat().st_dev
        assert found.device is None
        dev = Path(f"/sys/block/{found.disks[0]}/dev").read_text().strip()
        assert dev == f"{os.major(number)}:{os.minor(number)}"
