"""A distribution's own kernel in an emulated computer, which sees this machine's files.

For what no loop device and no container shows: udev's real events, schedulers that are modules,
disks that are pulled out, a reset in the middle. All writes stay in the virtual machine but those
to the directory that it shares with its owner.
"""

from __future__ import annotations

import compileall
import functools
import lzma
import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import blklab
from blklab.rigs.kernel import cache

CHANGED = Path("/var/lib/machine/changed")
"""In the virtual machine: each file that was written there."""
HOST = Path("/var/lib/machine/host")
"""In the virtual machine: the files of its owner's machine as they are."""

_PACKAGE = "linux-image-6.12-amd64"
"""Debian's; stands for the newest of its line."""
_PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "cpio": "cpio",
    "depmod": "kmod",
    "udevadm": "udev",
    "fio": "fio",
}
_FIRST = ("netfs", "9pnet", "9pnet_virtio", "9p", "overlay")
"""Modules that bring in the root directory, in the order in which they need each other."""

_HEADERS_BYTES = 4096
"""Where a program names what loads its libraries, if it has any."""

_CPU = "max,-avx,-avx2"
"""numpy's sorting by AVX2 ends in a segmentation fault under QEMU 7.2, which has it newly."""

_DISK_BYTES = 256 << 20

_INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc none /proc; mount -t devtmpfs none /dev
for module in {modules}; do insmod /$module.ko; done
share() {{ mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,"$3" "$1" "$2"; }}
share host /host ro,cache=loose; mount -t tmpfs none /over; mkdir /over/upper /over/work
mount -t overlay -o lowerdir=/host,upperdir=/over/upper,workdir=/over/work none /root
cd /root
mount -t proc none proc; mount -t sysfs none sys; mount -t devtmpfs none dev
for place in run dev/shm; do mkdir -p $place; mount -t tmpfs none $place; done
mkdir -p tmp/share var/lib/blklab lib/modules/{release}
share share tmp/share cache=none
mount --bind tmp/share/state var/lib/blklab
mount --bind {modules_directory} lib/modules/{release}
mkdir -p {machine}/changed {machine}/host
mount --bind /over/upper {machine}/changed; mount --bind /host {machine}/host
umount /proc
exec switch_root . /bin/bash /tmp/share/first.sh
"""

_FIRST_PROGRAM = """
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp TERM=dumb
cd /tmp/share
modprobe virtio_scsi; modprobe sd_mod
/lib/systemd/systemd-udevd --daemon
udevadm trigger; udevadm settle
setsid bash /tmp/share/steps.sh </dev/null >/tmp/share/log 2>&1
sync; echo 1 >/proc/sys/kernel/sysrq; echo o >/proc/sysrq-trigger; sleep 60
"""


@dataclass(frozen=True)
class Ended:
    """How a step ended."""

    exit_code: int
    output: str
    """stdout and stderr."""


@functools.cache
def missing() -> str | None:
    """Why there can be no virtual machine here; None if there can."""
    if platform.machine() != "x86_64":
        return "the virtual machine is an x86-64"
    if os.geteuid() != 0:
        return "the virtual machine sees all files as root"
    absent = [package for name, package in _PROGRAMS.items() if shutil.which(name) is None]
    if absent:
        return f"needs {', '.join(absent)}: apt-get install {' '.join(absent)}"
    if b"/ld-linux" in Path(shutil.which("busybox") or "").read_bytes()[:_HEADERS_BYTES]:
        return "needs a busybox without libraries: apt-get install busybox-static"
    try:
        _kernel()
    except (subprocess.SubprocessError, OSError) as error:
        said = getattr(error, "stderr", "") or str(error)
        return f"no kernel for the virtual machine: {said.strip().splitlines()[-1]}"
    return None


@functools.cache
def _kernel() -> Path:
    """The kernel's files as its package has them, in the user's cache."""
    described = _said("apt-cache", "depends", _PACKAGE)
    found = re.search(r"Depends: (linux-image-\S+)", described)
    if found is None:
        raise OSError(f"no package {_PACKAGE}; see: apt-get update")
    place = cache.root().parent / "virtual-machine" / found[1]
    if not place.is_dir():
        with cache.locked(place), cache.whole_directory(place) as begun:
            _said("apt-get", "download", "-qq", found[1], cwd=begun)
            (package,) = begun.glob("*.deb")
            _said("dpkg-deb", "--extract", str(package), str(begun))
            package.unlink()
            _said("depmod", "-b", str(begun), _release(begun))
    return place


def _release(kernel: Path) -> str:
    (modules,) = (kernel / "lib/modules").iterdir()
    return modules.name


def _said(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True, timeout=600)
    return done.stdout


class Machine:
    """A virtual machine with two SCSI disks, one that turns and one that does not.

    What it keeps when it is switched off: the disks, and the directory `share`, which its
    programs know as /tmp/share and where its /var/lib/blklab lies.
    """

    def __init__(self, share: Path, cpus: int = 1) -> None:
        self.share = share
        # One takes a fifth less of the owner's time than two, which keep their memories in step.
        self._cpus = cpus
        (share / "state").mkdir()
        for disk in ("turning", "flash"):
            with (share / f"{disk}.img").open("wb") as image:
                image.truncate(_DISK_BYTES)
        self._kernel = _kernel()
        # An emulated computer takes twenty times as long to compile them.
        compileall.compile_dir(Path(blklab.__file__).parent, quiet=2)
        self._make_first_files()

    def run(self, steps: dict[str, str], timeout_s: float = 900) -> dict[str, Ended]:
        """Switch it on, run these steps of bash, switch it off; how those ended that did."""
        lines = []
        for name, text in steps.items():
            (self.share / f"{name}.step").write_text(text)
            into = f"/tmp/share/{name}"
            lines.append(f". {into}.step >{into}.output 2>&1; echo $? >{into}.code")
        (self.share / "steps.sh").write_text("\n".join(lines) + "\n")
        (self.share / "first.sh").write_text(_FIRST_PROGRAM)
        command = self._command()
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=timeout_s
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return {
            name: Ended(
                int((self.share / f"{name}.code").read_text()),
                (self.share / f"{name}.output").read_text(),
            )
            for name in steps
            if (self.share / f"{name}.code").exists()
        }

    def _command(self) -> list[str]:
        release = _release(self._kernel)
        disks = [
            word
            for name, rpm in (("turning", 7200), ("flash", 1))
            for word in (
                *("-drive", f"file={self.share / name}.img,if=none,id={name},format=raw"),
                *("-device", f"scsi-hd,drive={name},serial={name},rotation_rate={rpm}"),
            )
        ]
        shared = "local,security_model=none,multidevs=remap"
        return [
            "qemu-system-x86_64",
            *("-accel", "tcg", "-cpu", _CPU, "-smp", str(self._cpus), "-m", "2G"),
            *("-nographic", "-no-reboot", "-kernel", str(self._kernel / f"boot/vmlinuz-{release}")),
            *("-initrd", str(self.share / "first.cpio"), "-append", "console=ttyS0 quiet panic=-1"),
            *("-virtfs", f"{shared},path=/,mount_tag=host,readonly=on"),
            *("-virtfs", f"{shared},path={self.share},mount_tag=share"),
            *("-device", "virtio-scsi-pci", *disks),
        ]

    def _make_first_files(self) -> None:
        """The first files: what it takes to see this machine's."""
        release = _release(self._kernel)
        first = self.share / "first"
        for place in ("bin", "proc", "dev", "host", "over", "root"):
            (first / place).mkdir(parents=True)
        shutil.copy(shutil.which("busybox") or "", first / "bin")
        modules = self._kernel / "lib/modules" / release
        for name in _FIRST:
            (packed,) = modules.rglob(f"{name}.ko.xz")
            (first / f"{name}.ko").write_bytes(lzma.decompress(packed.read_bytes()))
        init = first / "init"
        init.write_text(
            _INIT.format(
                modules=" ".join(_FIRST),
                release=release,
                modules_directory=f"/host{modules}",
                machine=CHANGED.parent.relative_to("/"),
            )
        )
        init.chmod(0o755)
        names = "\n".join(str(path.relative_to(first)) for path in first.rglob("*"))
        archive = subprocess.run(
            ["cpio", "--create", "--format=newc", "--quiet"],
            cwd=first, input=names.encode(), capture_output=True, check=True,
        ).stdout  # fmt: skip
        (self.share / "first.cpio").write_bytes(archive)
