"""``blklab.record_run`` and ``blklab.record_machine``: the I/O of a job on a disk model, and of
this machine's disks, as a recording."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blklab import _core
from blklab.api.listener import SILENT, Listener
from blklab.api.simulate import job_entry
from blklab.base.catalogue import Entry
from blklab.base.files import check_directory, new_file
from blklab.base.journal import Journal, default_directory
from blklab.base.signals import Signals
from blklab.base.text import shown
from blklab.domain import specs
from blklab.domain.experiment import Disk, Experiment, RigSpec, SchedulerSpec
from blklab.domain.result import Result
from blklab.errors import InputError, RunError
from blklab.host.devices import mounts, queue, stack
from blklab.host.roots import HERE, Roots
from blklab.rigs import check_workload, find_disk, of_workloads
from blklab.rigs import rig as rig_of
from blklab.rigs.kernel import recording as of_guests
from blklab.rigs.kernel.rig import KernelRig
from blklab.rigs.live import recording
from blklab.rigs.sim import SimRig

_POLL_S = 0.1
_MAPPED = ("dm", "md")
FOREVER = None
"""The time of a recording that ends with Ctrl-C."""


@dataclass(frozen=True)
class MachineRecording:
    """A recording of this machine that has ended."""

    path: Path
    """The recording."""
    recording_bytes: int
    """Its size."""
    disks: tuple[str, ...]
    """The recorded disks, by the kernel's names."""
    ios: int
    """The number of recorded I/Os."""
    lost: int
    """Events of the kernel that were lost because its buffer was full."""
    command_code: int | None = None
    """The exit code of the recorded command."""


def record_run(
    job: str | os.PathLike[str] | Entry,
    out: str | os.PathLike[str],
    *,
    disk: str | os.PathLike[str] | Disk,
    scheduler: str | SchedulerSpec = "none",
    seed: int = 1,
    host: Mapping[str, int] | None = None,
    ignore_unsupported: bool = False,
    rig: str | RigSpec = "sim",
) -> Result:
    """Run a fio job on a disk model, or replay a trace there, and write the I/O as a recording; on
    the kernel rig also a program, whose I/O is recorded while it is measured.

    On the kernel rig the recording is made of the kernel's own block events, which do not tell the
    priorities of I/Os.

    Args:
        out: the recording's file, which must not exist.
        job, disk, scheduler, seed, host, ignore_unsupported: see `simulate`.
        rig: ``sim`` or ``kernel``, or one of them with its options.

    Raises:
        InputError: a name, file or value is wrong; `out` exists.
        RunError: the run cannot go on; `out` cannot be written.
    """
    spec = RigSpec.of(rig)
    if spec.name not in ("sim", "kernel"):
        raise InputError(f"--rig: '{spec.name}' records no job; expected sim or kernel")
    entry = job_entry(job)
    place = rig_of(of_workloads(spec, [entry]))
    check_workload(place.spec, entry)
    experiment = Experiment(
        entry,
        find_disk(place, disk),
        specs.scheduler(scheduler),
        seed,
        dict(host or {}),
        ignore_unsupported,
    )
    path = Path(out)
    if isinstance(place, SimRig):
        with new_file(path) as part:
            return place.record(experiment, part)
    assert isinstance(place, KernelRig)
    if os.path.lexists(path):
        raise InputError(f"{path}: exists already")
    recorded = of_guests.record(place, experiment, path)
    if not recorded.ios:
        raise RunError(f"{entry.name}: no I/O to record: it does none while it is measured")
    return recorded.result


def is_disk_here(disk: str | os.PathLike[str], roots: Roots = HERE) -> bool:
    """Whether it is a directory or a block device of this machine, and no disk model."""
    text = os.fspath(disk)
    path = Path(text)
    known = text in queue.disks(roots)
    return known or path.is_dir() or path.is_block_device() or text.startswith("/dev/")


def recorded_disks(disk: str | os.PathLike[str] = ".", roots: Roots = HERE) -> list[str]:
    """The disks whose requests `record_machine` records: of a partition its disk, of a mapped or a
    RAID device the disks that it lies on, of a directory those of its file system.

    Raises:
        InputError: there is no such device or directory, or no disk below it.
    """
    text = os.fspath(disk)
    path = Path(text)
    if path.is_dir():
        every = mounts.mounts(roots)
        mount = mounts.holding(str(path.resolve()), every)
        names = mounts.sources(mount, roots) if mount else []
        if not names:
            kind = mount.type if mount else "no known file system"
            raise InputError(f"{shown(text)}: its files are on no disk ({shown(kind)})")
    else:
        names = [queue.device_name(text, roots)]
    found: dict[str, None] = {}
    while names:
        name = names.pop(0)
        whole = queue.disk_of(name, roots)
        lower = stack.below(whole, [], roots) if whole.startswith(_MAPPED) else []
        names += lower
        if not lower:
            found[whole] = None
    return list(found)


def record_machine(
    out: str | os.PathLike[str],
    *,
    disk: str | os.PathLike[str] = ".",
    for_s: float | None = FOREVER,
    command: Sequence[str] = (),
    listener: Listener = SILENT,
) -> MachineRecording:
    """Record every I/O of a disk of this machine, from the kernel's block events.

    Args:
        out: the recording, which must not exist. It is written once a second.
        disk: a disk, or a directory whose files are on it.
        for_s: the time in seconds; None: until Ctrl-C or, if there is one, the command's end.
        command: is run meanwhile; the recording has the I/O of all programs.
        listener: is told what is recorded.

    Raises:
        InputError: `out` exists, or there is no such disk or command.
        RunError: the kernel cannot be traced here, or `out` cannot be written; it then has what was
            written before.
    """
    path = Path(out)
    if os.path.lexists(path):
        raise InputError(f"{path}: exists already")
    check_directory(path.parent)
    disks = [described_disk(name) for name in recorded_disks(disk)]
    if reason := recording.why_not():
        raise RunError(f"this machine's I/O cannot be recorded: {reason}")
    names = ", ".join(one.name for one in disks)
    if set(_disks_of(path.parent)) & {one.name for one in disks}:
        listener.note(f"{path} is on {names} itself: its own writes are recorded, too")
    told: list[str] = []
    code = None
    with Signals.guarding() as signals:
        try:
            with recording.recording(
                disks, path, Journal(default_directory()), signals, told
            ) as made:
                made.begin()
                listener.note(f"recording {names}; Ctrl-C ends it")
                try:
                    with contextlib.suppress(KeyboardInterrupt):
                        code = _wait(made, for_s, command)
                finally:
                    # Also where another signal ends the program.
                    made.finish()
        except InputError:
            # Nothing was recorded.
            path.unlink(missing_ok=True)
            raise
    for line in told:
        listener.note(line)
    _compact(path)
    if made.lost:
        listener.note(f"{made.lost} events were lost: the kernel's buffer was full")
    return MachineRecording(
        path, path.stat().st_size, tuple(one.name for one in disks), made.ios, made.lost, code
    )


def _disks_of(directory: Path) -> list[str]:
    """The disks of a directory's files; none for a file system in memory."""
    try:
        return recorded_disks(directory)
    except InputError:
        return []


def described_disk(name: str) -> recording.RecordedDisk:
    """What a recording says of a disk. InputError if there is none of that name."""
    place = HERE.sys / "block" / name
    try:
        number, size = (place / "dev").read_text().strip(), int((place / "size").read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{shown(name)}: no such disk") from error
    return recording.RecordedDisk(name, number, size, _active(name))


def _active(name: str) -> str:
    """Its scheduler; empty if that is not known."""
    try:
        return queue.Queue.of_disk(name).schedulers().active
    except (InputError, RunError):
        return ""


def _wait(made: recording.Recording, for_s: float | None, command: Sequence[str]) -> int | None:
    """Until the end; the command's exit code. KeyboardInterrupt after Ctrl-C."""
    ends_s = float("inf") if for_s is None else time.monotonic() + for_s
    if not command:
        while time.monotonic() < ends_s and not made.failed.wait(
            min(_POLL_S, max(0.0, ends_s - time.monotonic()))
        ):
            pass
        return None
    try:
        process = subprocess.Popen(list(command))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{shown(command[0])}: {reason}") from error
    try:
        while process.poll() is None and time.monotonic() < ends_s and not made.failed.is_set():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_S)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait()
    return process.returncode


def _compact(path: Path) -> None:
    """Batches of a second each become large ones, if there is room for both."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        _core.edit_traces([(path, _core.TraceEdit())], part)
        if part.stat().st_size < path.stat().st_size:
            part.replace(path)
    except (OSError, InputError):
        # It is whole as it is.
        pass
    finally:
        part.unlink(missing_ok=True)
