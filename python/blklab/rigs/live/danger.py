"""Finds the data that writes to a device would destroy, before a run that writes to one.

Every unknown counts as a reason to refuse: a missing program, or one that fails. The programs are
from util-linux; none of them writes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shlex
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from blklab.base.as_root import or_as_root
from blklab.base.text import shown
from blklab.errors import InputError
from blklab.host import reading
from blklab.host.devices import identity, mounts, probe, queue, stack
from blklab.host.roots import HERE, Roots

_TIMEOUT_S = 60.0
# The most readable of a disk's many names in by-id; the others are numbers.
_PLAIN_IDS = ("nvme-eui.", "wwn-", "dm-uuid-", "lvm-pv-uuid-", "scsi-0", "scsi-3")


def full_id(device: str, roots: Roots = HERE) -> str:
    """The unique id of this disk or partition: its name in ``/dev/disk/by-id``, else its reported
    identity in sysfs; for a loop device its file."""
    links = stack.ids(roots).get(device, [])
    plain = [name for name in links if not name.startswith(_PLAIN_IDS)]
    if links:
        return (plain or links)[0]
    disk = queue.disk_of(device, roots)
    number = reading.value(roots.sys / "class/block" / device / "partition")
    part = f"-part{number}" if number else ""
    if file := stack.backing_file(disk, roots):
        return f"loop:{file}{part}"
    told = identity.identity(roots.sys / "block" / disk)
    said = told.wwid or told.serial
    if not said:
        said = f"diskseq{reading.value(roots.sys / 'block' / disk / 'diskseq')}"
    return f"{disk}-{'-'.join(said.split())}{part}"


def in_use(device: str, roots: Roots = HERE) -> list[str]:
    """The users of the device or a part of it, a clause each: no option allows writes then."""
    place = roots.sys / "class/block" / device
    inside = [device, *stack.partitions(place)]
    every, swaps = mounts.mounts(roots), mounts.swaps(roots)
    found = []
    for name in inside:
        own = _own(name, device)
        number = reading.value(roots.sys / "class/block" / name / "dev")
        found += [
            f"{own} is mounted at {shown(mount.point)}"
            for mount in mounts.of_device(name, number, every, roots)
        ]
        found += [f"{own} is swap space"] if name in swaps else []
        holders = reading.names(roots.sys / "class/block" / name / "holders")
        found += [f"{own} is in use by {shown(holder)}" for holder in holders]
    whole = queue.disk_of(device, roots)
    for name in dict.fromkeys((*inside, whole)):
        own = f"its disk {shown(name)}" if name not in inside else _own(name, device)
        # Loop devices do not claim the device below them.
        found += [
            f"{own} is below {other}"
            for other in queue.disks(roots)
            if _lies_on(stack.backing_file(other, roots), name, roots)
        ]
    return found


def held(device: str, roots: Roots = HERE) -> list[str]:
    """The data that would be lost, a clause each."""
    inside = [device, *stack.partitions(roots.sys / "class/block" / device)]
    found = []
    if len(inside) > 1:
        found.append(f"it has partitions ({', '.join(map(shown, inside[1:]))})")
    for name in inside:
        found += [f"{_own(name, device)} holds {what}" for what in _signatures(name, roots)]
    return found


def check(device: str, *, allowed: bool, overwrite: str | None, roots: Roots = HERE) -> None:
    """InputError with all reasons and the option to type, if `device` may not be written to: always
    if it is in use; if it holds data, unless `overwrite` is its full id; and even without any data,
    unless it is `allowed`."""
    node = shown(str(_node(device, roots)))
    if users := in_use(device, roots):
        raise InputError(_used(node, users))
    identity = full_id(device, roots)
    quoted = shlex.quote(shown(identity))
    if overwrite is not None:
        if overwrite == identity:
            return
        raise InputError(
            f"--overwrite: '{shown(overwrite)}' is not the full id of {node}, which is {quoted}"
        )
    if against := held(device, roots):
        raise InputError(
            f"{node}: {'; '.join(against)}. The job writes, and nothing was written. If all its "
            f"data may be lost: --overwrite {quoted}"
        )
    if not allowed:
        raise InputError(
            f"{node}: the job writes, and all on the device would be lost; if that is meant: "
            "--write-device (or name a directory, where a test file is harmless)"
        )


@contextlib.contextmanager
def kept_for_writing(
    device: str, *, allowed: bool, overwrite: str | None, roots: Roots = HERE
) -> Iterator[None]:
    """Claims the device exclusively, for writing; InputError as in `check`.

    It is claimed first, as by mount and swapon, and checked then, so that its state cannot change
    afterwards.
    """
    try:
        handle = _opened(device, os.O_EXCL, roots)
    except OSError as error:
        node = shown(str(_node(device, roots)))
        if error.errno != errno.EBUSY:
            raise InputError(f"{node}: {_why(error)}") from error
        users = in_use(device, roots) or ["a program has opened it exclusively"]
        raise InputError(_used(node, users)) from error
    with _closing(handle):
        check(device, allowed=allowed, overwrite=overwrite, roots=roots)
        yield


@contextlib.contextmanager
def kept(device: str, roots: Roots = HERE) -> Iterator[None]:
    """Keeps the device open, so that udev does not probe it after each run (systemd's "Locking
    Block Device Access"). InputError if it cannot be opened."""
    try:
        handle = _opened(device, 0, roots)
    except OSError as error:
        raise InputError(f"{shown(str(_node(device, roots)))}: {_why(error)}") from error
    with _closing(handle):
        yield


@contextlib.contextmanager
def _closing(handle: int) -> Iterator[None]:
    try:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _opened(device: str, how: int, roots: Roots) -> int:
    """A handle of the device itself: a node may have another device's numbers. OSError."""
    handle = os.open(_node(device, roots), os.O_RDONLY | os.O_CLOEXEC | how)
    number = os.fstat(handle).st_rdev
    told = reading.value(roots.sys / "class/block" / device / "dev")
    if told != f"{os.major(number)}:{os.minor(number)}":
        os.close(handle)
        raise OSError(errno.ENODEV, f"the node does not lead to {shown(device)}, which is {told}")
    return handle


def _node(device: str, roots: Roots) -> Path:
    return roots.dev / device.replace("!", "/")


def _own(name: str, device: str) -> str:
    return "it" if name == device else f"its partition {shown(name)}"


def _used(node: str, users: list[str]) -> str:
    return (
        f"{node}: {'; '.join(users)}. The job writes, and nothing was written; a device in use is "
        "never written to"
    )


def _lies_on(file: str, device: str, roots: Roots) -> bool:
    """Whether the file of a loop device is this device, through any node."""
    if not file:
        return False
    node = _node(device, roots)
    number = reading.value(roots.sys / "class/block" / device / "dev")
    with contextlib.suppress(OSError):
        found = Path(file).stat()
        if stat.S_ISBLK(found.st_mode):
            return number == f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
    return file == str(node)


def _why(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"no permission to open it{or_as_root()}"
    return error.strerror or str(error)


def _signatures(device: str, roots: Roots) -> list[str]:
    """The contents of the device according to ``wipefs`` and ``blkid``."""
    node = str(_node(device, roots))
    found = []
    for program, arguments in (
        ("wipefs", ["--no-act", "--json", "--", node]),
        ("blkid", ["--probe", "--output", "export", "--", node]),
    ):
        path = probe.found(program)
        if path is None:
            return [f"unknown data: {program} is missing (apt-get install util-linux)"]
        try:
            done = subprocess.run(
                [path, *arguments],
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=_TIMEOUT_S,
                check=False,
                env=os.environ | {"LC_ALL": "C"},
            )
        except subprocess.TimeoutExpired:
            return [f"unknown data: {program} did not end within {_TIMEOUT_S:.0f} s"]
        found.append((program, done))
    (_, wiped), (_, probed) = found
    if wiped.returncode != 0:
        return [f"unknown data: wipefs: {shown(wiped.stderr.strip() or 'failed')}"]
    try:
        rows = json.loads(wiped.stdout or '{"signatures": []}')["signatures"]
        kinds = [str(row["type"]) for row in rows]
    except (ValueError, KeyError, TypeError):
        return ["unknown data: the output of wipefs is not valid"]
    # 2: nothing found. 8: several signatures, so that the type is ambiguous.
    if probed.returncode not in (0, 2, 8):
        return [f"unknown data: blkid: {shown(probed.stderr.strip() or 'failed')}"]
    lines = dict(line.split("=", 1) for line in probed.stdout.splitlines() if "=" in line)
    kinds += [lines[key] for key in ("TYPE", "PTTYPE") if key in lines]
    if probed.returncode == 8 and not kinds:  # noqa: PLR2004
        kinds.append("several things")
    return [shown(kind) for kind in dict.fromkeys(kinds)]
