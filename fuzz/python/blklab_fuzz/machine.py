"""Files of the machine from other programs: rules, profiles, units, tables of the kernel, names
reported by disks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from blklab.host.devices import cgroups, identity, modules, mounts
from blklab.host.devices.deciders import boot, cmdline, order, tuned, units
from blklab.host.devices.queue import SCHEDULER, Queue, named
from blklab.host.roots import Roots
from blklab.host.udev import judge
from blklab.host.udev.parse import parse as rules
from blklab.settings import keys, rule
from blklab_fuzz.checks import refusing, scratch

_SEPARATOR = b"\f"
_DISK = "sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda"
_DEVICE = str(Path(_DISK).parent.parent)


def udev_rules(data: bytes) -> None:
    """A rules file: every line of it is judged, at both events."""
    place = _write("etc/udev/rules.d/50-fuzz.rules", data)
    roots, disk = _machine()
    with refusing(data):
        for line in rules(place):
            assert line.number > 0
        judge.broken(roots)
        for action in judge.ACTIONS:
            for effect in judge.effects(disk.disk, action, roots):
                assert effect.line.file == place
    place.unlink()


def tuned_profile(data: bytes) -> None:
    """A profile of tuned, and one that it may include, after a form feed."""
    own, _, other = data.partition(_SEPARATOR)
    _write("etc/tuned/active_profile", b"fuzz\n")
    _write("etc/tuned/fuzz/tuned.conf", own)
    _write("usr/lib/tuned/other/tuned.conf", other)
    roots, disk = _machine()
    with refusing(data):
        for found in tuned.influences(disk, roots):
            assert found.attribute and found.line > 0


def boot_files(data: bytes) -> None:
    """tmpfiles.d, sysfsutils, rc.local, TLP, a unit and the kernel's command line, with form feeds
    between."""
    places = (
        "etc/tmpfiles.d/fuzz.conf",
        "etc/sysfs.conf",
        "etc/rc.local",
        "etc/tlp.conf",
        "etc/systemd/system/fuzz.service",
        "proc/cmdline",
    )
    parts = data.split(_SEPARATOR)
    for place, part in zip(places, [*parts, *[b""] * len(places)], strict=False):
        _write(place, part)
    (_top() / "etc/rc.local").chmod(0o700)
    roots, disk = _machine()
    with refusing(data):
        deciders = (cmdline.influences, boot.tmpfiles, boot.sysfs_conf, units.influences,
                    boot.rc_local, boot.tlp)  # fmt: skip
        for one in deciders:
            for found in one(disk, roots):
                assert found.attribute and found.file


def kernel_tables(data: bytes) -> None:
    """mountinfo, swaps, modules.dep, modules.alias, a configuration, ``io.max``, with form feeds
    between."""
    places = (
        "proc/self/mountinfo",
        "proc/swaps",
        "lib/modules/7.3.4/modules.dep",
        "lib/modules/7.3.4/modules.alias",
        "boot/config-7.3.4",
        "sys/fs/cgroup/fuzz/io.max",
    )
    parts = data.split(_SEPARATOR)
    for place, part in zip(places, [*parts, *[b""] * len(places)], strict=False):
        _write(place, part)
    roots, _ = _machine()
    with refusing(data):
        every = mounts.mounts(roots)
        for mount in every:
            mounts.sources(mount, roots)
        mounts.of_device("sda", "8:0", every, roots)
        mounts.holding("/mnt/a/b", every)
        mounts.swaps(roots)
        modules.loadable(roots)
        modules.configured(roots)
        cgroups.settings(every, roots)


_ATTRIBUTES = (
    f"{_DISK}/queue/scheduler",
    f"{_DEVICE}/model",
    f"{_DEVICE}/wwid",
    f"{_DISK}/serial",
    f"{_DISK}/uevent",
    f"{_DEVICE}/vpd_pg80",
    "run/udev/data/b8:0",
)


def disk_names(data: bytes) -> None:
    """A disk's reported identity, and udev's stored properties, separated by form feeds. A rule
    made from them is a single rule and contains only comparisons."""
    parts = data.split(_SEPARATOR)
    before = {place: (_top() / place).read_bytes() for place in _ATTRIBUTES} if _machine() else {}
    try:
        for place, part in zip(_ATTRIBUTES, parts, strict=False):
            _write(place, part)
        roots, disk = _machine()
        with refusing(data):
            assert identity.identity(disk.disk)
        with refusing(data):
            order.decide(disk, roots)
        for kind in keys.KINDS:
            with refusing(data):
                for key in keys.key(kind, disk, roots):
                    _check_key(key)
    finally:
        for place, content in before.items():
            _write(place, content)


def _check_key(key: keys.Key) -> None:
    keys.check(key)
    written = scratch() / "99-key.rules"
    written.write_text(rule.text([rule.Part(key, {SCHEDULER: "none"})]), encoding="utf-8")
    lines = rules(written)
    assert [bool(line.error) for line in lines] == [False, False], lines
    sets = [token for token in lines[0].tokens if not token.is_match]
    assert [token.key for token in sets] == ["ATTR", "GOTO"], sets


@cache
def _top() -> Path:
    top = scratch() / "machine"
    files: Mapping[str, bytes] = {
        f"{_DISK}/dev": b"8:0\n",
        f"{_DISK}/size": b"2048\n",
        f"{_DISK}/queue/scheduler": b"none [mq-deadline] kyber bfq\n",
        f"{_DISK}/queue/rotational": b"1\n",
        f"{_DISK}/queue/nr_requests": b"64\n",
        f"{_DISK}/queue/iosched/fifo_batch": b"16\n",
        f"{_DISK}/uevent": b"MAJOR=8\nMINOR=0\nDEVNAME=sda\nDEVTYPE=disk\n",
        f"{_DISK}/serial": b"",
        f"{_DEVICE}/uevent": b"DEVTYPE=scsi_device\nDRIVER=sd\n",
        f"{_DEVICE}/model": b"ST3320620AS     \n",
        f"{_DEVICE}/wwid": b"naa.5000c50012345678\n",
        f"{_DEVICE}/vpd_pg80": b"\0\x80\0\x08 5QF01234",
        "run/udev/data/b8:0": b"E:ID_SERIAL=ST3320620AS_5QF01234\nE:ID_FS_TYPE=ext4\n",
        "proc/sys/kernel/osrelease": b"7.3.4\n",
        "proc/cmdline": b"quiet\n",
        "dev/sda": b"",
    }
    for place, content in files.items():
        path = top / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for place in ("sys/block/sda", "sys/class/block/sda", "sys/dev/block/8:0"):
        (top / place).parent.mkdir(parents=True, exist_ok=True)
        (top / place).symlink_to(top / _DISK)
    (top / _DISK / "subsystem").symlink_to(top / "sys/class/block")
    return top


def _machine() -> tuple[Roots, Queue]:
    roots = Roots.under(_top())
    return roots, named("sda", roots)


def _write(place: str, content: bytes) -> Path:
    path = _top() / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
