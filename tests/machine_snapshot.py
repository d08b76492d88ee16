"""Everything that blklab could change on a machine, in one flat table.

A key has the kind, the owner and the name: ``queue/raw/nr_requests``, ``file/big/thesis``,
``machine/etc/udev/rules.d/99-blklab.rules``, ``mount/...``, ``process/...``. The value is the
whole of it or a digest, so two tables are compared with ``==``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from tests.machine_world import (
    BENEATH,
    BLOCK,
    CGROUPS,
    CHANGED,
    MACHINE,
    STATE,
    Disk,
    World,
    settle_udev,
)

Snapshot = dict[str, str]

_TRACING = Path("/sys/kernel/tracing")
_QUIET_S = 5.0
"""The time in which a process must end after its parent."""
_BELOW_MACHINE = "var/lib/blklab"
"""The mount point of `STATE`, created for it."""


def snapshot(world: World, started: Collection[int] = ()) -> Snapshot:
    """The present state; `started` are the ids of all blklab processes so far."""
    settle_udev()
    found: Snapshot = {}
    for disk in world.disks:
        found |= _of_disk(disk)
    found |= _of_machines_disks(world)
    for disk in world.with_files:
        found |= _tree(BENEATH / disk.role, f"beneath/{disk.role}")
        if disk.is_mounted():
            found |= _tree(disk.point, f"file/{disk.role}")
    found |= _tree(STATE, "state") | _tree(Path("/tmp"), "tmp") | _tree(Path("/dev/shm"), "shm")
    found |= _changed_files() | mounts() | _left_processes() | _shared_memory()
    found |= _cgroups() | _tracing(started)
    return found


def is_seen(key: str, world: World) -> bool:
    """Whether the key can be observed now: files need a mounted file system, settings a present
    disk."""
    kind, role, *_ = key.split("/")
    disk = next((disk for disk in world.disks if disk.role == role), None)
    if disk is None:
        return True
    return {
        "file": disk.is_mounted,
        "beneath": lambda: True,
        "queue": disk.is_there,
        "loop": disk.is_there,
        "data": disk.is_there,
    }[kind]()


def settings(disk: Disk) -> dict[str, str]:
    """Every readable attribute of the queue; of `scheduler` only the active one."""
    found = {}
    for place in (disk.queue, disk.queue / "iosched"):
        for path in _files(place):
            with contextlib.suppress(OSError):
                text = path.read_text().strip()
                name = str(path.relative_to(disk.queue))
                found[name] = text.partition("[")[2].partition("]")[0] or text
    return found


def _of_disk(disk: Disk) -> Snapshot:
    if not disk.is_there():
        return {}
    found = {f"queue/{disk.role}/{name}": value for name, value in settings(disk).items()}
    for path in _files(BLOCK / disk.name / "loop"):
        found[f"loop/{disk.role}/{path.name}"] = path.read_text().strip()
    if disk.content:
        with disk.node.open("rb") as file:
            content = file.read(disk.size_bytes)
        middle = disk.size_bytes // 2
        found[f"data/{disk.role}/first"] = _digest(content[:middle])
        found[f"data/{disk.role}/second"] = _digest(content[middle:])
    return found


def _of_machines_disks(world: World) -> Snapshot:
    """The queues of the real machine's disks, which must not change; without loop devices."""
    ours = {disk.name for disk in world.disks}
    return {
        f"machines/{path.relative_to('/sys/class/block')}": path.read_text()
        for queue in Path("/sys/class/block").glob("*/queue")
        if queue.parent.name not in ours and not queue.parent.name.startswith(("loop", "ram"))
        for path in _files(queue)
        if os.access(path, os.R_OK)
    }


def _files(place: Path) -> list[Path]:
    try:
        return sorted(path for path in place.iterdir() if path.is_file())
    except OSError:
        return []


def _tree(top: Path, prefix: str) -> Snapshot:
    """Every name below `top`, with mode and content."""
    found = {}
    for path in _walk(top):
        with contextlib.suppress(FileNotFoundError):
            found[f"{prefix}/{path.relative_to(top)}"] = told(path)
    return found


def _walk(top: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(top):
        for name in sorted((*folders, *files)):
            yield Path(folder) / name


def told(path: Path) -> str:
    """Mode, owner and content."""
    status = path.lstat()
    told = f"{stat.filemode(status.st_mode)} {status.st_uid}:{status.st_gid}"
    if stat.S_ISLNK(status.st_mode):
        return f"{told} -> {path.readlink()}"
    if stat.S_ISREG(status.st_mode):
        return f"{told} {status.st_size} {_digest(path.read_bytes())}"
    return told


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _changed_files() -> Snapshot:
    """Files that differ from those of the real machine."""
    found = {}
    for path in _walk(CHANGED):
        name = path.relative_to(CHANGED)
        now, machine = told(path), MACHINE / name
        # The overlay has a directory as soon as something in it has changed.
        same = path.is_dir() and machine.is_dir() and now == told(machine)
        if not (same or _BELOW_MACHINE.startswith(str(name))):
            found[f"machine/{name}"] = now
    return found


def mounts() -> Snapshot:
    """Each mount with its options, including several mounts at one path."""
    found: Snapshot = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        words = line.split()
        dash = words.index("-")
        point, options, kind = words[4], words[5], words[dash + 1]
        key = f"mount/{point}"
        while key in found:
            key += "+"
        found[key] = f"{kind} {options} {words[dash + 3]}"
    return found


def _left_processes() -> Snapshot:
    """Processes that should have ended; zombies without a waiting parent are reaped."""
    deadline = time.monotonic() + _QUIET_S
    while found := _processes():
        if time.monotonic() > deadline:
            break
        time.sleep(0.005)
    return found


def _processes() -> Snapshot:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return {
        f"process/{pid}": words for pid, words in processes().items() if pid not in (1, os.getpid())
    }


def processes() -> dict[int, str]:
    """All processes of the machine with their command lines."""
    found = {}
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            with contextlib.suppress(OSError):
                words = (
                    (place / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                )
                found[int(place.name)] = words or (place / "comm").read_text().strip()
    return found


def _shared_memory() -> Snapshot:
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return {f"shm/{line.split()[1]}": line for line in lines}


def _cgroups() -> Snapshot:
    return {
        f"cgroup/{name}/{path.relative_to(CGROUPS / name)}": "there"
        for name in ("blkio", "unified")
        for path in (CGROUPS / name).rglob("*/")
    }


def _tracing(started: Collection[int]) -> Snapshot:
    return {
        f"tracing/{path.name}": "there"
        for pid in started
        for path in (_TRACING / "instances").glob(f"blklab-{pid}-*")
    }
