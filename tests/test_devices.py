"""Block devices: their identities, their stacking, and the command."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blklab.cli import app
from blklab.host import roots
from blklab.host.devices import device, modules, queue
from blklab.host.devices.device import Device, Surroundings
from blklab.host.devices.mounts import Filesystem
from tests import loop_device
from tests.fake_sysfs import Machine

_SATA = "pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0"
_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
_HOSTILE = "Evil\x1b[2J\nDisk\u202e"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def look(machine: Machine, name: str) -> Device:
    return device.describe(name, Surroundings.read(machine.roots))


def run(machine: Machine, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    monkeypatch.setattr(roots, "HERE", machine.roots)
    done = CliRunner().invoke(app, ["devices", *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def swapped(text: str, size: int) -> bytes:
    padded = text.ljust(size).encode()
    return b"".join(padded[place : place + 2][::-1] for place in range(0, size, 2))


def mounted(machine: Machine, *lines: str) -> None:
    machine.write("proc/self/mountinfo", "\n".join(lines))


def test_a_sata_disk_tells_its_whole_name_in_page_89(machine: Machine) -> None:
    disk = machine.disk("sda", bus=_SATA, files={"device/x": ""})
    (disk / "device").mkdir(exist_ok=True)
    for name, text in {"vendor": "ATA", "model": "WDC WD10EZRX-00A", "rev": "1A01"}.items():
        (disk / "device" / name).write_text(f"{text}\n")
    (disk / "device/queue_depth").write_text("32\n")
    identify = bytearray(512)
    identify[46:54] = swapped("01.01A01", 8)
    identify[54:94] = swapped("WDC WD10EZRX-00A8LB0", 40)
    (disk / "device/vpd_pg89").write_bytes(bytes(60) + bytes(identify))
    (disk / "device/vpd_pg80").write_bytes(b"\0\x80\0\x0cWD-WCC1S0000")
    found = look(machine, "sda")
    assert found.identity is not None
    assert (found.identity.vendor, found.identity.model) == ("", "WDC WD10EZRX-00A8LB0")
    assert (found.identity.firmware, found.identity.serial) == ("01.01A01", "WD-WCC1S0000")
    assert found.identity.transport == "sata"
    assert (found.queue_depth, found.rotational) == (32, True)
    assert found.size_bytes == 1 << 20


def test_an_nvme_disk_has_its_words_elsewhere_and_a_depth_for_each_queue(machine: Machine) -> None:
    disk = machine.disk(
        "nvme0n1",
        number="259:0",
        bus="pci0000:00/0000:01:00.0/nvme/nvme0",
        queue={"rotational": "0", "scheduler": "[none] mq-deadline kyber", "iosched/x": None},
        files={"wwid": "eui.0025", "device/model": "SAMSUNG MZQLB960", "device/serial": "S4",
               "device/firmware_rev": "EDA5202Q", "device/transport": "pcie"},
    )  # fmt: skip
    for number in range(4):
        machine.write(f"{disk.relative_to(machine.top)}/mq/{number}/nr_tags", "1023")
    found = look(machine, "nvme0n1")
    assert found.identity is not None
    assert (found.identity.transport, found.identity.firmware) == ("nvme", "EDA5202Q")
    assert (found.queue_depth, found.hardware_queues) == (1023, 4)
    assert found.decision is not None
    assert (found.decision.default, found.decision.text) == ("none", "kernel default")


def test_a_stack_is_resolved_down_to_its_disks(machine: Machine) -> None:
    for letter, minor in (("a", 0), ("b", 16)):
        disk = machine.disk(f"sd{letter}", number=f"8:{minor}", bus=f"{_SATA}{letter}")
        machine.partition(disk, f"sd{letter}1", number=f"8:{minor + 1}")
    made = {
        "md0": ("9:0", ["sda1", "sdb1"]),
        "dm-0": ("253:0", ["md0"]),
        "dm-1": ("253:1", ["dm-0"]),
    }
    files = {
        "md0": {"md/level": "raid1"},
        "dm-0": {"dm/name": "secret", "dm/uuid": "CRYPT-LUKS2-00"},
        "dm-1": {"dm/name": "vg-home", "dm/uuid": "LVM-abc"},
    }
    for name, (number, lower) in made.items():
        disk = machine.disk(name, number=number, bus="virtual", queue={"scheduler": "none"},
                            files=files[name])  # fmt: skip
        for one in lower:
            machine.link(f"{disk.relative_to(machine.top)}/slaves/{one}", Path("x"))
            machine.link(f"sys/class/block/{one}/holders/{name}", Path("x"))
    mounted(machine, r"20 1 253:1 / /home/my\040files rw - ext4 /dev/mapper/vg-home rw")
    kinds = {name: look(machine, name).kind for name in ("dm-1", "dm-0", "md0", "sda1", "sda")}
    assert list(kinds.values()) == ["lvm", "crypt", "raid1", "partition", "disk"]
    top = look(machine, "dm-1")
    assert (top.below, top.disks) == (("dm-0",), ("sda", "sdb"))
    assert [mount.point for mount in top.mounts] == ["/home/my files"]
    assert top.filesystem == Filesystem("ext4")
    assert top.decision is not None
    assert top.decision.text == "there is nothing to choose"
    assert look(machine, "sda1").above == ("md0",)
    assert look(machine, "sda").disks == ("sda",)


def test_a_loop_device_lies_on_the_disk_that_its_file_is_on(machine: Machine) -> None:
    disk = machine.disk("sda")
    machine.partition(disk, "sda1", number="8:1")
    machine.disk("loop0", number="7:0", bus="virtual",
                 files={"loop/backing_file": "/srv/images/a b.img (deleted)"})  # fmt: skip
    mounted(machine, "1 0 0:9 / / rw - tmpfs tmpfs rw", "2 1 8:1 / /srv rw - ext4 /dev/sda1 rw")
    found = look(machine, "loop0")
    assert (found.kind, found.below, found.disks) == ("loop", ("sda1",), ("sda",))
    assert found.backing_file == "/srv/images/a b.img"


def test_a_btrfs_is_on_all_of_its_disks(machine: Machine) -> None:
    for letter, minor in (("a", 0), ("b", 16)):
        machine.disk(f"sd{letter}", number=f"8:{minor}", bus=f"{_SATA}{letter}")
        machine.write(f"sys/fs/btrfs/1234/devices/sd{letter}/x", "")
    mounted(machine, "2 1 0:44 /@ / rw - btrfs /dev/sda rw")
    assert [mount.point for mount in look(machine, "sdb").mounts] == ["/"]
    assert look(machine, "sda").filesystem == Filesystem("btrfs")


def test_a_circle_of_devices_has_an_end(machine: Machine) -> None:
    for name, other, minor in (("dm-0", "dm-1", 0), ("dm-1", "dm-0", 1)):
        disk = machine.disk(name, number=f"253:{minor}", bus="virtual")
        machine.link(f"{disk.relative_to(machine.top)}/slaves/{other}", Path("x"))
    assert look(machine, "dm-0").disks == ()


def test_file_systems_that_are_not_mounted_come_from_udev(machine: Machine) -> None:
    machine.disk("sda")
    machine.write(
        "run/udev/data/b8:0", "E:ID_FS_TYPE=xfs\nE:ID_FS_LABEL_ENC=my\\x20data\nE:ID_FS_UUID=1-2"
    )
    assert look(machine, "sda").filesystem == Filesystem("xfs", "my\\x20data", "1-2")


def test_facts_that_udev_lacks_are_read_from_the_device(machine: Machine) -> None:
    if shutil.which("mkfs.ext4", path=_PATH) is None or shutil.which("blkid", path=_PATH) is None:
        pytest.skip("needs mkfs.ext4 and blkid: apt-get install e2fsprogs util-linux")
    machine.disk("sda")
    node = machine.write("dev/sda", "")
    os.truncate(node, 4 << 20)
    uuid = "00000000-0000-0000-0000-000000000001"
    command = ("mkfs.ext4", "-q", "-L", "own", "-U", uuid, str(node))
    subprocess.run(command, check=True, env={"PATH": _PATH})
    assert look(machine, "sda").filesystem == Filesystem("ext4", "own", uuid)
    # udev has probed it, and found nothing.
    machine.write("run/udev/data/b8:0", "E:ID_SERIAL=1")
    assert look(machine, "sda").filesystem is None


def test_a_zfs_is_on_all_disks_of_its_pool(machine: Machine) -> None:
    for letter, minor, pool in (("a", 0, "tank"), ("b", 16, "tank"), ("c", 32, "spare")):
        machine.disk(f"sd{letter}", number=f"8:{minor}", bus=f"{_SATA}{letter}")
        machine.write(f"run/udev/data/b8:{minor}", f"E:ID_FS_TYPE=zfs_member\nE:ID_FS_LABEL={pool}")
    mounted(machine, "2 1 0:44 / /home rw - zfs tank/home rw", "3 1 0:45 / /x rw - zfs gone/x rw")
    assert [mount.point for mount in look(machine, "sdb").mounts] == ["/home"]
    assert look(machine, "sdc").mounts == ()
    assert look(machine, "sda").filesystem == Filesystem("zfs_member", "tank")


def test_swap_is_reported(machine: Machine) -> None:
    machine.disk("sda")
    machine.write("proc/swaps", "Filename Type Size Used Priority\n/dev/sda partition 8 0 -2")
    assert look(machine, "sda").swap


def test_schedulers_that_could_be_loaded_are_named_with_their_modules(machine: Machine) -> None:
    machine.disk("sda", queue={"scheduler": "none [mq-deadline]"})
    machine.write("proc/sys/kernel/osrelease", "6.12.1")
    directory = "lib/modules/6.12.1"
    machine.write(
        f"{directory}/modules.dep",
        "kernel/block/bfq.ko.xz:\nkernel/block/kyber-iosched.ko.zst: a.ko\nkernel/x.ko:",
    )
    machine.write(f"{directory}/modules.alias", "alias bfq-iosched bfq\nalias adios-iosched adios")
    assert look(machine, "sda").loadable == {
        "bfq": "bfq",
        "kyber": "kyber-iosched",
        "adios": "adios",
    }
    machine.write("etc/modprobe.d/no.conf", "# no\nblacklist bfq")
    blocked = modules.blocked(["bfq", "kyber-iosched"], machine.roots)
    assert blocked == {"bfq": str(machine.top / "etc/modprobe.d/no.conf:2")}


def test_the_configuration_has_the_options_of_the_build(machine: Machine) -> None:
    machine.write("proc/sys/kernel/osrelease", "6.12.1")
    assert modules.configured(machine.roots) == {}
    machine.write(
        "boot/config-6.12.1", "CONFIG_IOSCHED_BFQ=m\n# CONFIG_MQ_IOSCHED_KYBER is not set"
    )
    assert modules.configured(machine.roots)["bfq"] == "m"
    packed = gzip.compress(b"CONFIG_IOSCHED_BFQ=y\nCONFIG_MQ_IOSCHED_DEADLINE=y\n")
    machine.write("proc/config.gz", "").write_bytes(packed)
    known = modules.configured(machine.roots)
    assert (known["bfq"], known["mq-deadline"], known["kyber"]) == ("y", "y", "n")


def test_weights_limits_and_costs_of_cgroups_are_found(machine: Machine) -> None:
    machine.disk("sda")
    mounted(machine, "2 1 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw")
    top = "sys/fs/cgroup"
    machine.write(f"{top}/io.cost.qos", "8:0 enable=1 ctrl=auto")
    machine.write(f"{top}/db.slice/io.weight", "default 100\n8:0 500\n8:16 50")
    machine.write(f"{top}/db.slice/pg/io.bfq.weight", "default 300")
    found = [(one.cgroup, one.file, one.number, one.value) for one in look(machine, "sda").cgroups]
    assert found == [
        ("/", "io.cost.qos", "8:0", "enable=1 ctrl=auto"),
        ("/db.slice", "io.weight", "8:0", "500"),
        ("/db.slice/pg", "io.bfq.weight", "default", "300"),
    ]


def test_hostile_names_reach_the_terminal_and_the_json_escaped(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.disk("sda", files={"device/model": _HOSTILE, "device/serial": "\udcff\x07"})
    mounted(machine, "2 1 8:0 / /mnt/\\012\\033]0;x rw,\x9b1m - ext4 /dev/sda rw")
    machine.write("etc/udev/rules.d/60-\x1b[31m.rules", 'ATTR{queue/scheduler}="\x1b[1m"')
    for arguments in ([], ["sda"], ["--json"], ["--json", "/dev/sda"], ["--all"]):
        text = run(machine, monkeypatch, *arguments)
        assert all(sign.isprintable() or sign == "\n" for sign in text)
        assert "[2J" in text
    (found,) = json.loads(run(machine, monkeypatch, "--json"))["devices"]
    assert found["identity"]["model"] == _HOSTILE


def test_the_table_omits_empty_drives_with_a_note(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = machine.disk("sda", files={"device/model": "ST3320620AS"})
    machine.partition(disk, "sda1", number="8:1")
    machine.disk("sr0", number="11:0", sectors=0, bus="x")
    mounted(machine, "2 1 8:1 / /srv rw - ext4 /dev/sda1 rw")
    text = run(machine, monkeypatch)
    assert "ST3320620AS, /srv" in text
    assert "sr0" not in text
    assert "not listed: 1 partition, 1 empty device; see --all" in text
    assert max(map(len, text.splitlines())) <= 80
    everything = run(machine, monkeypatch, "--all")
    assert "sda1" in everything
    assert "sr0" in everything


def test_a_device_is_found_by_any_name_and_shown_with_all_settings(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = machine.disk("sda")
    machine.partition(disk, "sda1", number="8:1")
    machine.link("dev/disk/by-id/ata-Disk_1", Path("../../sda"))
    mounted(machine, "2 1 8:1 / /srv rw - ext4 /dev/sda1 rw")
    text = run(machine, monkeypatch, "/dev/disk/by-id/ata-Disk_1")
    for expected in (
        "/dev/sda: ",
        "/dev/disk/by-id/ata-Disk_1",
        "fifo_batch = 16",
        "sda1",
        "nr_requests = 64",
        "read_ahead_kb = 128",
        "wbt_lat_usec = 75000",
    ):
        assert expected in text
    assert "that of sda" in run(machine, monkeypatch, "sda1")


def test_a_machine_without_block_devices(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(machine, monkeypatch) == "no block devices here\n"


def test_every_device_of_this_machine_as_any_user() -> None:
    command = [sys.executable, "-m", "blklab", "devices", "--json"]
    if os.geteuid() == 0:
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
    before = set(queue.disks())
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd="/")
    assert done.stderr == ""
    found = json.loads(done.stdout)["devices"]
    whole = [one["name"] for one in found if one["kind"] != "partition"]
    # Other tests may create and remove devices meanwhile, also several times under one name.
    of_tests = {f"loop{number}" for number in loop_device.OWN_NUMBERS}
    assert before & set(queue.disks()) - of_tests <= set(whole)
    assert len(whole) == len(set(whole))


def test_a_disk_that_disappears_while_all_are_listed_is_left_out(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.disk("sda")
    listed = queue.disks(machine.roots)
    monkeypatch.setattr(queue, "disks", lambda _: [*listed, "sdz"])
    assert [one.name for one in device.devices(machine.roots)] == ["sda"]


def test_devices_are_counted_up_and_those_of_a_directory_are_found(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for number in (10, 9, 1):
        machine.disk(f"loop{number}", number=f"7:{number}")
    rows = json.loads(run(machine, monkeypatch, "--json"))["devices"]
    assert [row["name"] for row in rows] == ["loop1", "loop9", "loop10"]
    here = tmp_path / "mounted"
    here.mkdir()
    device = here.stat().st_dev
    link = machine.top / f"sys/dev/block/{os.major(device)}:{os.minor(device)}"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(machine.top / "sys/block/loop9")
    assert run(machine, monkeypatch, str(here)).startswith("/dev/loop9: ")


def test_a_real_loop_device_lies_on_the_disk_of_its_file(tmp_path: Path) -> None:
    loop_device.require()
    with loop_device.attached(tmp_path) as name:
        found = device.describe(name, Surroundings.read())
    assert found.backing_file == str(tmp_path / "loop.img")
    assert found.size_bytes == loop_device.SIZE_BYTES
    number = f"{os.major(tmp_path.stat().st_dev)}:{os.minor(tmp_path.stat().st_dev)}"
    expected = queue.disk_of(Path(f"/sys/dev/block/{number}").resolve().name)
    assert found.disks == (expected,)


@pytest.mark.parametrize("name", ["sdz", "/dev/null", "/dev/disk/by-id/no"])
def test_a_name_of_no_block_device_is_one_line(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from blklab.cli import main

    monkeypatch.setattr(sys, "argv", ["blklab", "devices", name])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    text = capfd.readouterr().err
    assert text.startswith("blklab: ")
    assert text.count("\n") == 1
