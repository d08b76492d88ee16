"""What would be lost if a device was written to: asked before a run that writes to one.

Whatever is not known counts as a reason: a program that is missing, one that fails. The programs
are util-linux's; none of them writes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shlex
import subprocess
from collections.abc import Iterator

from blklab.as_root import or_as_root
from blklab.devices import identity, mounts, probe, queue, reading, stack
from blklab.devices.roots import HERE, Roots
from blklab.devices.text import shown
from blklab.errors import InputError

_TIMEOUT_S = 60.0
# Which of a disk's many names in by-id says most to a person; the others are numbers.
_PLAIN_IDS = ("nvme-eui.", "wwn-", "dm-uuid-", "lvm-pv-uuid-", "scsi-0", "scsi-3")


def full_id(device: str, roots: Roots = HERE) -> str:
    """What tells this disk, or partition, from all others: its name in ``/dev/disk/by-id``, else
    what it says of itself in sysfs; of a loop device its file."""
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


def reasons(device: str, roots: Roots = HERE) -> list[str]:
    """Why it should not be written to, a clause each; empty if nothing speaks against it."""
    place = roots.sys / "class/block" / device
    inside = [device, *stack.partitions(place)]
    every, swaps = mounts.mounts(roots), mounts.swaps(roots)
    found = []
    for name in inside:
        own = "it" if name == device else f"its partition {shown(name)}"
        number = reading.value(roots.sys / "class/block" / name / "dev")
        found += [
            f"{own} is mounted at {shown(mount.point)}"
            for mount in mounts.of_device(name, number, every, roots)
        ]
        found += [f"{own} is swap space"] if name in swaps else []
        holders = reading.names(roots.sys / "class/block" / name / "holders")
        found += [f"{own} is in use by {shown(holder)}" for holder in holders]
        node = str(roots.dev / name.replace("!", "/"))
        # Loop devices do not claim what they lie on.
        found += [
            f"{own} is below {other}"
            for other in queue.disks(roots)
            if stack.backing_file(other, roots) == node
        ]
    if len(inside) > 1:
        found.append(f"it has partitions ({', '.join(map(shown, inside[1:]))})")
    if not found and _is_claimed(device, roots):
        found.append("a program has it open for itself alone")
    for name in inside:
        own = "it" if name == device else f"its partition {shown(name)}"
        found += [f"{own} holds {what}" for what in _signatures(name, roots)]
    return found


def check(device: str, *, allowed: bool, overwrite: str | None, roots: Roots = HERE) -> None:
    """InputError with all reasons and what to type, if `device` may not be written to: `allowed`
    it may if nothing speaks against it; if `overwrite` is its full id it may in any case."""
    identity = full_id(device, roots)
    node = shown(str(roots.dev / device.replace("!", "/")))
    quoted = shlex.quote(shown(identity))
    if overwrite is not None:
        if overwrite == identity:
            return
        raise InputError(
            f"--overwrite: '{shown(overwrite)}' is not the full id of {node}, which is {quoted}"
        )
    if against := reasons(device, roots):
        raise InputError(
            f"{node}: {'; '.join(against)}. The job writes, and nothing was written. If all on it "
            f"may be lost: --overwrite {quoted}"
        )
    if not allowed:
        raise InputError(
            f"{node}: the job writes, and all on the device would be lost; if that is meant: "
            "--write-device (or name a directory, where a test file is harmless)"
        )


@contextlib.contextmanager
def kept(device: str, *, alone: bool, roots: Roots = HERE) -> Iterator[None]:
    """Nobody mounts the device meanwhile, if `alone`; and udev does not look at it after each run
    (systemd's "Locking Block Device Access"). InputError if it is in use after all."""
    node = roots.dev / device.replace("!", "/")
    try:
        handle = os.open(node, os.O_RDONLY | os.O_CLOEXEC | (os.O_EXCL if alone else 0))
    except OSError as error:
        raise InputError(f"{shown(str(node))}: {_why(error)}") from error
    try:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _why(error: OSError) -> str:
    if error.errno == errno.EBUSY:
        return "in use: mounted, or opened by a program for itself alone"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"no permission to open it{or_as_root()}"
    return error.strerror or str(error)


def _is_claimed(device: str, roots: Roots) -> bool:
    try:
        os.close(os.open(roots.dev / device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        return error.errno == errno.EBUSY
    return False


def _signatures(device: str, roots: Roots) -> list[str]:
    """What ``wipefs`` and ``blkid`` know of what lies on it."""
    node = str(roots.dev / device.replace("!", "/"))
    found = []
    for program, arguments in (
        ("wipefs", ["--no-act", "--json", "--", node]),
        ("blkid", ["--probe", "--output", "export", "--", node]),
    ):
        path = probe.found(program)
        if path is None:
            return [f"nobody knows what: {program} is missing (apt-get install util-linux)"]
        try:
            done = subprocess.run(
                [path, *arguments],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIMEOUT_S,
                check=False,
                env=os.environ | {"LC_ALL": "C"},
            )
        except subprocess.TimeoutExpired:
            return [f"nobody knows what: {program} did not end within {_TIMEOUT_S:.0f} s"]
        found.append((program, done))
    (_, wiped), (_, probed) = found
    if wiped.returncode != 0:
        return [f"nobody knows what: wipefs: {shown(wiped.stderr.strip() or 'failed')}"]
    try:
        rows = json.loads(wiped.stdout or '{"signatures": []}')["signatures"]
        kinds = [str(row["type"]) for row in rows]
    except (ValueError, KeyError, TypeError):
        return ["nobody knows what: wipefs is not to be understood"]
    # 2: nothing found. 8: several things, so that it is not to be said which.
    if probed.returncode not in (0, 2, 8):
        return [f"nobody knows what: blkid: {shown(probed.stderr.strip() or 'failed')}"]
    lines = dict(line.split("=", 1) for line in probed.stdout.splitlines() if "=" in line)
    kinds += [lines[key] for key in ("TYPE", "PTTYPE") if key in lines]
    if probed.returncode == 8 and not kinds:  # noqa: PLR2004
        kinds.append("several things")
    return [shown(kind) for kind in dict.fromkeys(kinds)]
