"""``blklab kernel run``: any program before a modelled disk, under a kernel's scheduler."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blklab.base import limits
from blklab.base.files import check_directory
from blklab.base.units import duration_text
from blklab.cli import complete
from blklab.cli.models import DataPlace, DiskName, ShareOption
from blklab.errors import InputError
from blklab.host import reading

if TYPE_CHECKING:
    from blklab.domain.experiment import Disk
    from blklab.rigs.kernel.program import Ran

_SECTOR_BYTES = 512
_CLOCK_OF_FIO = (
    "fio reads the CPU's own clock, which is this machine's and not the guest's; its times are "
    "right with fio --clocksource=clock_gettime"
)


def run(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="-- COMMAND...",
            help="A program of this machine and its arguments; {disk} is the disk.",
        ),
    ],
    disk: DiskName,
    scheduler: Annotated[
        str,
        typer.Option(
            help="name[:tunable=value,...], any that the kernel has.",
            autocompletion=complete.scheduler,
        ),
    ] = "none",
    kernel: Annotated[
        str | None,
        typer.Option(
            help="Kernel by name. [default: the last without changes]",
            autocompletion=complete.kernel,
        ),
    ] = None,
    mkfs: Annotated[
        str | None,
        typer.Option(
            help="Make a file system on the disk: ext4; xfs or btrfs if the kernel has them."
        ),
    ] = None,
    mount: Annotated[Path, typer.Option(help="With --mkfs: the mount point.")] = Path("/mnt"),
    data: DataPlace = "memory",
    overwrite_data: Annotated[
        bool,
        typer.Option(
            "--overwrite-data", help="With --mkfs and --data FILE: even if the file holds data."
        ),
    ] = False,
    share: ShareOption = None,
    memory: Annotated[
        int, typer.Option(min=64, max=65536, help="The guest's memory, in MiB.")
    ] = 512,
    scratch: Annotated[
        int,
        typer.Option(
            min=16,
            max=65536,
            help="Limit for the program's output, the trace, and its first directory "
            "without --mkfs, in MiB of this machine's memory.",
        ),
    ] = 1024,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory for the block layer's events."),
    ] = None,
    trace_format: Annotated[
        str | None,
        typer.Option(
            metavar="events|blktrace",
            help="With --trace: text as tracefs prints it, or records for blkparse and btt. "
            "[default: events]",
        ),
    ] = None,
    time_travel: Annotated[
        str,
        typer.Option(
            help="The guest's clock: inf-cpu (virtual, CPU work takes no time), on (virtual, CPU "
            "work takes time) or off (the host's)."
        ),
    ] = "inf-cpu",
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=2**63 - 1,
            help="Seed of the platter's position and of all randomness in the guest.",
        ),
    ] = 1,
    timeout: Annotated[
        float, typer.Option(min=1, max=limits.TIMEOUT_S_MAX, help="End it after this many seconds.")
    ] = 3600.0,
) -> None:
    """Run a program in a guest, on a disk model, and print the disk's counters.

    This machine's programs are there, this directory and what the command names, read-only. The
    program starts in the disk's file system, or without --mkfs in an empty directory that goes with
    it; what it prints is shown when it has ended, and its exit code is passed on.
    """
    from blklab.domain import specs
    from blklab.rigs.kernel import cache, program, view
    from blklab.rigs.kernel.boot import checked_time_travel

    if trace is not None:
        check_directory(trace)
    elif trace_format is not None:
        raise InputError("--trace-format: needs --trace with a directory for the events")
    seen = view.shared(command, share or ())
    task = program.Program(
        command=command,
        disk=specs.disk(disk),
        scheduler=scheduler,
        seed=seed,
        data=data,
        overwrite_data=overwrite_data,
        shared=seen.paths,
        file_system=mkfs,
        mount=mount,
        memory_mib=memory,
        scratch_mib=scratch,
        time_travel=checked_time_travel(time_travel),
        timeout_s=timeout,
        trace=trace,
        trace_format=trace_format or program.TRACE_FORMATS[0],
    )
    chosen = cache.chosen(kernel)
    if task.time_travel != "off" and _fio_reads_the_cpus_clock(command):
        print(f"blklab: {_CLOCK_OF_FIO}", file=sys.stderr)
    if seen.note is not None:
        print(f"blklab: {seen.note}", file=sys.stderr)
    ran = program.run(chosen, task, sys.stdout.buffer, sys.stderr.buffer)
    for line in _told(ran, chosen.text, task.disk):
        print(f"blklab: {line}", file=sys.stderr)
    if trace is not None:
        kept = ran.outcome["trace"]
        lost = f", {kept['lost']} more lost" if kept["lost"] else ""
        print(f"blklab: {trace / kept['file']}: {kept['events']} events{lost}", file=sys.stderr)
    sys.exit(ran.exit_code)


def _fio_reads_the_cpus_clock(command: Sequence[str]) -> bool:
    """Whether fio is run, and neither the command nor a job file that it names says otherwise."""
    words = " ".join(command).split()
    if not any(Path(word).name == "fio" for word in words):
        return False
    texts = list(words)
    for word in words:
        # One that is not there, or not for us, is fio's to refuse.
        with contextlib.suppress(OSError):
            texts += [reading.content(Path(word))] if word.endswith(".fio") else []
    return not any("clocksource" in text for text in texts)


def _told(ran: Ran, kernel: str, on: Disk) -> list[str]:
    """What the disk did, and whether it can be believed."""
    from blklab.rigs.kernel.outcome import notes, too_late

    found = ran.outcome
    disk, late = found["disk"], found["disk"]["lateness"]
    spans = (f"{name} {duration_text(late[f'{name}_ns'])}" for name in ("p50", "p99", "max"))
    lines = [
        f"{_moved(disk, 'read')}, {_moved(disk, 'write')}, {disk['flushes']} flushes; "
        f"lateness {', '.join(spans)}",
        f"{found['scheduler']} on {kernel}: "
        f"{duration_text(found['program']['duration_ns'])} there, "
        f"{duration_text(ran.wall_s * 1e9)} here",
    ]
    counters = found["counters"]
    ticks_ms = counters["read_ticks_ms"] + counters["write_ticks_ms"]
    ios = counters["read_ios"] + counters["write_ios"]
    invalid = too_late(late, ticks_ms * 1e6 / max(ios, 1))
    return [*lines, *notes(found, on), *([invalid] if invalid else [])]


def _moved(disk: dict[str, Any], what: str) -> str:
    size_mb = disk[f"{what}_sectors"] * _SECTOR_BYTES / 1e6
    return f"{disk[f'{what}s']} {what}s of {size_mb:.1f} MB"
