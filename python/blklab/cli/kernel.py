"""``blklab kernel``: kernels to try, as programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import blklab
from blklab.api.names import DEFAULT_KERNEL
from blklab.base import limits
from blklab.base.units import duration_text
from blklab.cli import complete, console, streams
from blklab.cli.listening import Terminal
from blklab.cli.options import DataPlace, DiskName, ShareOption

app = typer.Typer(
    name="kernel",
    help="Build Linux as a program, patched or not, store it and start it.",
    rich_markup_mode=None,
    add_completion=False,
)


@app.callback(invoke_without_command=True)
def group(context: typer.Context) -> None:
    """Build Linux as a program, patched or not, store it and start it."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command("build")
def build(
    source: Annotated[
        str | None,
        typer.Option(
            help="Version (7.3, 6.12.107), tarball, your own directory, or a commit of it "
            "(DIRECTORY@COMMIT). "
            f"[default: {DEFAULT_KERNEL}]",
        ),
    ] = None,
    patch: Annotated[
        list[Path] | None,
        typer.Option(help="Patch to apply, as with patch -p1; repeatable, in this order."),
    ] = None,
    add: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE.c",
            help="Your own C file, such as a new scheduler, for the kernel's block/; "
            "repeatable. It replaces a file of the same name.",
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(help="Option of the kernel's configuration: NAME=y; repeatable."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="The kernel's name. [default: from source and patches]",
            autocompletion=complete.kernel,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1, max=limits.JOBS_MAX, help="Maximum parallel compilers; default: one per CPU."
        ),
    ] = None,
    refresh: Annotated[
        bool,
        typer.Option(help="Ask the mirror for a newer source, even if one is cached."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Build Linux as a program (user-mode Linux) and store it; needs no root."""
    built = blklab.build_kernel(
        source,
        patch or (),
        name=name,
        added=add or (),
        config=config or (),
        max_parallel=jobs,
        refresh=refresh,
        listener=Terminal(),
    )
    kernel = built.kernel
    if as_json:
        console.print_json(kernel.to_json() | {"fresh": built.fresh})
        return
    called = name or kernel.names[0]
    if built.fresh:
        print(f"{called}: Linux {kernel.version}, built in {kernel.build_s:.0f} s "
              f"({kernel.compiled} files compiled)")  # fmt: skip
    else:
        print(f"{called}: Linux {kernel.version}, from the cache")
    print(f"source: {kernel.source}")
    if kernel.patches:
        print(f"patches: {', '.join(kernel.patches)}")
    if kernel.added:
        print(f"added: {', '.join(kernel.added)}")
    print(kernel.image)


@app.command("list")
def listed(
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """List the built kernels, the latest first, the size of the cache, and what confines
    guests here."""
    found = blklab.list_kernels()
    console.print_notes(found.damaged)
    if as_json:
        console.print_json(found.to_json())
        return
    if not found.kernels:
        print("no kernels yet; build one: blklab kernel build")
    for kernel in found.kernels:
        print(", ".join(kernel.names) or kernel.key)
        print(f"    Linux {kernel.version} of {kernel.source}")
        if kernel.patches:
            print(f"    patched with {', '.join(kernel.patches)}")
        if kernel.added:
            print(f"    with {', '.join(kernel.added)} in block/")
        if kernel.config:
            print(f"    with {', '.join(kernel.config)}")
        print(f"    built {kernel.built_at} in {kernel.build_s:.0f} s, "
              f"{kernel.size_bytes / 1e6:.0f} MB, key {kernel.key}")  # fmt: skip
    used = ", ".join(f"{part} {count / 1e6:.0f} MB" for part, count in found.used_bytes.items())
    print(f"\n{found.cache}: {used}")
    print(found.refused or f"guests are confined by {found.confined_by}")


@app.command("remove")
def remove(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="Kernels by name or key.", autocompletion=complete.kernel
        ),
    ] = None,
    sources: Annotated[
        bool,
        typer.Option(
            "--sources", help="Also downloads, sources and objects: nearly all of the space."
        ),
    ] = False,
) -> None:
    """Remove kernels from the cache; sources and objects stay for the next build."""
    removed = blklab.remove_kernels(names or (), sources=sources)
    for name, is_gone in removed.names.items():
        print(f"{name}: removed" if is_gone else f"{name}: only the name; the kernel has others")
    if sources:
        print(f"downloads, sources and objects: {removed.source_bytes / 1e6:.0f} MB removed")


@app.command("run", context_settings={"allow_interspersed_args": False})
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
            help="Kernel by name. [default: the newest without changes]",
            autocompletion=complete.kernel,
        ),
    ] = None,
    mkfs: Annotated[
        str | None,
        typer.Option(
            help="Make a file system on the disk: ext4; xfs, btrfs or f2fs if a kernel has them; "
            "with options of mount and mkfs: ext4:data=journal,-b=1024; ext4:aged=80 is one after "
            "years of use."
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
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The recording of the disk's I/O to write; new."),
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
    ran = blklab.run_in_kernel(
        command,
        disk=disk,
        scheduler=scheduler,
        kernel=kernel,
        file_system=mkfs,
        mount=mount,
        data=data,
        overwrite_data=overwrite_data,
        share=share or (),
        memory_mib=memory,
        scratch_mib=scratch,
        trace=trace,
        trace_format=trace_format,
        record=record,
        time_travel=time_travel,
        seed=seed,
        timeout_s=timeout,
        stdout=sys.stdout.buffer,
        stderr=sys.stderr.buffer,
        listener=Terminal(),
    )
    for line in _told(ran):
        print(f"blklab: {line}", file=sys.stderr)
    sys.exit(ran.exit_code)


def _told(ran: blklab.ProgramRun) -> list[str]:
    """Lines with the disk's statistics, the run's validity, and the path of the trace."""
    spans = (f"{name} {duration_text(late_ns)}" for name, late_ns in ran.lateness_ns.items())
    lost = f", {ran.trace_lost} more lost" if ran.trace_lost else ""
    return [
        f"{ran.reads} reads of {ran.read_bytes / 1e6:.1f} MB, "
        f"{ran.writes} writes of {ran.write_bytes / 1e6:.1f} MB, {ran.flushes} flushes; "
        f"lateness {', '.join(spans)}",
        f"{ran.scheduler} on {ran.kernel}: {duration_text(ran.duration_ns)} there, "
        f"{duration_text(ran.wall_s * 1e9)} here",
        *ran.notes,
        *([f"{ran.trace}: {ran.trace_events} events{lost}"] if ran.trace else []),
        *([f"{ran.recording.path}: {ran.recording.reading.count} I/Os"] if ran.recording else []),
    ]


@app.command("shell")
def shell(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Kernel by name. [default: the newest without changes]",
            autocompletion=complete.kernel,
        ),
    ] = None,
    disk: Annotated[
        str | None,
        typer.Option(
            help="A disk model for the guest: name or file.toml[:key=value,...].",
            autocompletion=complete.disk,
        ),
    ] = None,
    scheduler: Annotated[
        str,
        typer.Option(
            help="With --disk: name[:tunable=value,...].", autocompletion=complete.scheduler
        ),
    ] = "none",
    memory: Annotated[int, typer.Option(min=64, max=65536, help="In MiB.")] = 512,
    time_travel: Annotated[
        str, typer.Option(help="The guest's clock: off (the host's), on or inf-cpu.")
    ] = "off",
    share: ShareOption = None,
    timeout: Annotated[
        float, typer.Option(min=1, max=limits.TIMEOUT_S_MAX, help="End it after this many seconds.")
    ] = 86400.0,
) -> None:
    """Start a kernel with a shell, which sees this machine's programs and this directory."""
    blklab.kernel_shell(
        name,
        disk=disk,
        scheduler=scheduler,
        memory_mib=memory,
        time_travel=time_travel,
        share=share or (),
        timeout_s=timeout,
        listener=Terminal(),
    )


@app.command("source")
def source(
    file: Annotated[
        str, typer.Argument(help="Path in the kernel's source: block/kyber-iosched.c.")
    ],
    of: Annotated[
        str | None,
        typer.Option(
            "--source",
            help=f"Version, tarball or directory, as for build. [default: {DEFAULT_KERNEL}]",
        ),
    ] = None,
) -> None:
    """Print a file of the kernel's source; downloads the source if needed."""
    content = blklab.kernel_source(file, of, listener=Terminal())
    streams.write_bytes(content)
