"""A disposable machine: namespaces, an overlay over every file, disks on loop devices.

`enter` turns a process that ``unshare`` has started (`UNSHARED`) into the first process of a
machine that reads this machine's files, writes none of them, and has only its own disks. blklab
runs there as installed, with its usual paths: ``/etc/udev/rules.d``, ``/var/lib/blklab`` and
``/tmp``. `World` has the machine's disks, file systems, and the user's files.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tests import loop_device, real_tracefs, virtual_machine

UNSHARED = ("setpriv", "--pdeathsig", "KILL", "--", "unshare", "--mount", "--pid", "--ipc",
            "--fork", "--kill-child=KILL", "--propagation", "private", "--")  # fmt: skip
"""A prefix for a command: its mounts and processes end with it."""

OWN = Path("/mnt")
"""A tmpfs in the new root: images, mount points, the overlay's changed files."""
CHANGED = OWN / "changed"
"""Each file of the machine that was written, made or (a device 0:0) removed."""
MACHINE = OWN / "machine"
"""The real machine's files."""
BENEATH = OWN / "beneath"
"""`OWN` again without the mounts inside it: the files below mount points."""
HOME = OWN / "home"
STATE = Path("/var/lib/blklab")
STATE_BYTES = 256 << 10
BLOCK = Path("/sys/block")
_BY_ID = Path("/dev/disk/by-id")
MIB = 1 << 20

CGROUPS = Path("/sys/fs/cgroup")
_HIERARCHIES = {
    ("cgroup", "-o", "blkio"): CGROUPS / "blkio",
    ("cgroup2",): CGROUPS / "unified",
}
"""The cgroup hierarchies that can have I/O weights."""
_CGROUP = "blklab-machine-"
_CLONE_NEWCGROUP = 0x02000000
"""From linux/sched.h; Python has it since 3.12."""
_OLD = Path("/tmp")
_EMPTY = (Path("/tmp"), Path("/mnt"), Path("/run"))
"""The disposable machine has empty directories of its own there."""
_NUMBERS = range(64)
_FIRST_DEVICE, _DEVICES = 1000, 8
"""The first loop device of machine number 0, and the count per machine. Other tests use lower
numbers."""
_PROCESSES = 400
"""The distance between the process numbers of two machines: instances of tracefs, which is shared,
are named after them."""
_SECONDS = 10.0


def missing() -> str:
    """The reason why such a machine is impossible here; empty if it is possible."""
    if reason := loop_device.missing():
        return reason
    needed = {"unshare": "util-linux", "setpriv": "util-linux", "mkfs.ext4": "e2fsprogs",
              "fio": "fio"}  # fmt: skip
    if absent := [name for name in needed if not shutil.which(name)]:
        packages = " ".join(dict.fromkeys(needed[name] for name in absent))
        return f"needs {', '.join(absent)}: apt-get install {packages}"
    checkout = Path(__file__).resolve()
    if hidden := [place for place in _EMPTY if checkout.is_relative_to(place)]:
        return f"needs a checkout elsewhere: the machine has an empty {hidden[0]} of its own"
    if "\toverlay\n" not in Path("/proc/filesystems").read_text():
        return "needs overlayfs: modprobe overlay"
    return ""


def enter(*, virtual: bool) -> int:
    """Gives this process, the first of its PID namespace, a machine; returns the machine's number,
    which is unique meanwhile. In a virtual machine (`virtual`, `tests.virtual_machine`) it is all
    of that one, with udev; elsewhere it has a root of its own."""
    assert os.getpid() == 1, f"to be started by {' '.join(UNSHARED)}"
    number = _own_number()
    _take_cgroups(number)
    _take_virtual() if virtual else _enter_new_root()
    for kind, place in _HIERARCHIES.items():
        if place.is_dir():
            _run("umount", "--lazy", str(place))
            _mount("-t", *kind, "none", str(place))
    real_tracefs.mount()
    Path("/proc/sys/kernel/ns_last_pid").write_text(str((number + 1) * _PROCESSES))
    STATE.mkdir(parents=True, exist_ok=True)
    HOME.mkdir()
    BENEATH.mkdir()
    _mount("--bind", str(OWN), str(BENEATH))
    # The environment of the tests' caller must not affect them.
    os.umask(0o022)
    os.chdir(HOME)
    return number


def _take_cgroups(number: int) -> None:
    """Puts this process and its children into a cgroup that is the root for them. An earlier
    machine with this number may have left cgroups in it."""
    for place in _HIERARCHIES.values():
        own = place / f"{_CGROUP}{number}"
        deadline = time.monotonic() + _SECONDS
        while place.is_dir():
            _remove_cgroup(own)
            if own.exists() and time.monotonic() < deadline:
                # Its processes have not ended yet.
                time.sleep(0.05)
                continue
            own.mkdir()
            # Another machine that has ended may just have removed it.
            with contextlib.suppress(FileNotFoundError):
                (own / "cgroup.procs").write_text("0")
                break
    assert ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWCGROUP) == 0, os.strerror(
        ctypes.get_errno()
    )


def remove_cgroups() -> None:
    """Removes cgroups of ended machines; running machines keep theirs, even empty ones."""
    for place in _HIERARCHIES.values():
        for own in place.glob(f"{_CGROUP}*"):
            with contextlib.suppress(OSError):
                if not (own / "cgroup.procs").read_text():
                    _remove_cgroup(own)


def _remove_cgroup(top: Path) -> None:
    """Removes a cgroup and those below it, if they are empty."""
    for path in sorted((top, *top.rglob("*/")), reverse=True):
        with contextlib.suppress(OSError):
            path.rmdir()


def _enter_new_root() -> None:
    _mount("-t", "tmpfs", "none", str(_OLD))
    for name in ("changed", "work", "root"):
        (_OLD / name).mkdir()
    root, layers = _OLD / "root", f"upperdir={_OLD}/changed,workdir={_OLD}/work"
    _mount("-t", "overlay", "-o", f"lowerdir=/,{layers}", "none", str(root))
    _mount("--rbind", "/dev", str(root / "dev"))
    _mount("-t", "tmpfs", "none", str(root / "dev/shm"))
    _mount("-t", "proc", "proc", str(root / "proc"))
    _mount("--rbind", "/sys", str(root / "sys"))
    for place in _EMPTY:
        _mount("-t", "tmpfs", "none", str(root / place.relative_to("/")))
    for there, here in ((_OLD / "changed", CHANGED), (Path("/"), MACHINE)):
        place = root / here.relative_to("/")
        place.mkdir()
        _mount("--bind", str(there), str(place))
    # No command finds, lists or sets a real disk.
    _mount("-t", "tmpfs", "none", str(root / BLOCK.relative_to("/")))
    os.chroot(root)
    os.chdir("/")


def _take_virtual() -> None:
    _mount("-t", "tmpfs", "none", str(OWN))
    _mount("-t", "proc", "proc", "/proc")
    for there, here in ((virtual_machine.CHANGED, CHANGED), (virtual_machine.HOST, MACHINE)):
        here.mkdir()
        _mount("--bind", str(there), str(here))


def _own_number() -> int:
    for number in _NUMBERS:
        # Held until the process ends, without a file.
        held = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(OSError):
            held.bind(f"\0blklab-machine-{number}")
            held.detach()
            return number
        held.close()
    raise AssertionError(f"{len(_NUMBERS)} machines at once")


@dataclass
class Disk:
    """A loop device and its content."""

    role: str
    number: int
    size_bytes: int
    content: bytes
    """The data at its beginning and in its middle; if empty, the disk has a file system."""

    @property
    def name(self) -> str:
        return f"loop{self.number}"

    @property
    def node(self) -> Path:
        return Path(f"/dev/{self.name}")

    @property
    def image(self) -> Path:
        return OWN / f"{self.role}.img"

    @property
    def point(self) -> Path:
        """The mount point of its file system."""
        return OWN / self.role

    @property
    def queue(self) -> Path:
        return BLOCK / self.name / "queue"

    def is_there(self) -> bool:
        """Whether it exists, with settings."""
        return self.queue.is_dir()

    def is_mounted(self) -> bool:
        return self.point.is_mount()

    def make(self) -> None:
        """Creates it, in place of an earlier device with its number."""
        if Path(f"/sys/class/block/{self.name}").exists():
            self.pull_out()
        with self.image.open("wb") as file:
            file.truncate(self.size_bytes)
        self.plug_in()
        self._make_content()

    def _make_content(self) -> None:
        with self.node.open("rb+") as file:
            for place in (0, self.size_bytes // 2):
                file.seek(place)
                file.write(self.content)
        if not self.content:
            _run("mkfs.ext4", "-q", "-F", str(self.node), str(self.size_bytes >> 10))
            self.point.mkdir(exist_ok=True)
            _mount(str(self.node), str(self.point))

    def plug_in(self) -> None:
        """Creates a new device with a new queue over the same image."""
        loop_device.add(self.number)
        loop_device.losetup(str(self.node), str(self.image))
        if BLOCK.is_mount():
            (BLOCK / self.name).symlink_to(f"../devices/virtual/block/{self.name}")

    def pull_out(self) -> None:
        """Removes the device and its queue."""
        if Path(f"/sys/class/block/{self.name}/loop/backing_file").exists():
            loop_device.losetup("--detach", str(self.node))
        deadline = time.monotonic() + _SECONDS
        # A lazily unmounted file system is in use a little longer.
        while True:
            try:
                loop_device.remove(self.number)
                break
            except OSError:
                assert time.monotonic() < deadline, f"{self.name} stays in use"
                time.sleep(0.01)
        if BLOCK.is_mount():
            (BLOCK / self.name).unlink(missing_ok=True)


class ScsiDisk(Disk):
    """A disk of the virtual machine, named by its role; it can be removed while in use."""

    @property
    def name(self) -> str:
        """The kernel's present name, which may change after a new insertion."""
        return self._link.resolve().name

    @property
    def _link(self) -> Path:
        serial = {"big": "turning", "raw": "flash"}[self.role]
        return next(_BY_ID.glob(f"*_{serial}"), _BY_ID / serial)

    def is_there(self) -> bool:
        return self._link.exists() and super().is_there()

    def make(self) -> None:
        if self.is_there():
            self.pull_out()
        self.plug_in()
        with self.node.open("rb+") as file:
            file.write(bytes(self.size_bytes))
        self._make_content()

    def plug_in(self) -> None:
        deadline = time.monotonic() + _SECONDS
        while not self.is_there():
            assert time.monotonic() < deadline, f"{self.role} does not come again"
            for host in Path("/sys/class/scsi_host").glob("*/scan"):
                host.write_text("- - -")
            settle_udev()

    def pull_out(self) -> None:
        (BLOCK / self.name / "device/delete").write_text("1")
        settle_udev()


class World:
    """Four disks: two file systems, one of them small; one with data and no file system; and one
    that no command names."""

    def __init__(self, number: int, *, virtual: bool) -> None:
        self.virtual = virtual
        first = _FIRST_DEVICE + number * _DEVICES
        kind = ScsiDisk if virtual else Disk
        self.big = kind("big", first, 40 * MIB, b"")
        self.small = Disk("small", first + 1, 12 * MIB, b"")
        self.raw = kind("raw", first + 2, 16 * MIB, b"what the user has on raw\n")
        self.other = Disk("other", first + 3, 8 * MIB, b"what the user has on the other\n")
        self.disks = (self.big, self.small, self.raw, self.other)
        self.with_files = (self.big, self.small)

    def make(self) -> None:
        """Creates everything anew: disks and the user's files, without state of blklab."""
        self.end()
        # Leftovers of a failed sequence must not count against the next one.
        for hierarchy in _HIERARCHIES.values():
            for left in hierarchy.glob("blklab-*/"):
                _remove_cgroup(left)
        for disk in self.with_files:
            shutil.rmtree(BENEATH / disk.role, ignore_errors=True)
        for place in (STATE, Path("/tmp"), HOME):
            if place.is_mount():
                _run("umount", "--lazy", str(place))
        _mount("-t", "tmpfs", "-o", f"mode=755,size={STATE_BYTES}", "none", str(STATE))
        _mount("-t", "tmpfs", "none", "/tmp")
        for path in [path for path in CHANGED.rglob("*") if path.is_file()]:
            name = path.relative_to(CHANGED)
            if not (MACHINE / name).exists():
                (Path("/") / name).unlink()
        for entry in HOME.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        for disk in self.disks:
            disk.make()
        for disk in self.with_files:
            (BENEATH / disk.role / "beneath").write_text(f"beneath {disk.role}\n")
            (disk.point / "thesis").write_text(f"the only copy, on {disk.role}\n")
            (disk.point / "0").write_text("called as test files are\n")
            (disk.point / ".blklab").mkdir()
            (disk.point / ".blklab/notes").write_text("called nearly as ours\n")

    def end(self) -> None:
        """Removes the devices, and all processes left by a failed sequence."""
        for place in Path("/proc").glob("[0-9]*"):
            if int(place.name) != os.getpid():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(place.name), signal.SIGKILL)
        for disk in self.disks:
            while disk.is_mounted():
                _run("umount", "--lazy", str(disk.point))
            if disk.is_there():
                disk.pull_out()


def settle_udev() -> None:
    """Waits until udev has handled all events, if it runs."""
    if Path("/run/udev/control").exists():
        _run("udevadm", "settle")


def _mount(*arguments: str) -> None:
    _run("mount", *arguments)


def _run(*words: str) -> None:
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
