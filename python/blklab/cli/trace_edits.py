"""``blklab trace cut``, ``scale``, ``merge``, ``anonymise``: recordings made of traces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import blklab
from blklab.base.text import shown
from blklab.base.units import duration_text, number_text, size_text
from blklab.cli import complete, console
from blklab.cli.options import DISK_HELP, DeviceName, FormatName, bytes_of
from blklab.cli.whatif import fit_of
from blklab.domain import recordings
from blklab.errors import InputError
from blklab.timelines import window

if TYPE_CHECKING:
    from blklab import EditedTrace
    from blklab._core import TraceReading

_SECTOR_BYTES = 512
_LAST_BYTE = 2**63 - 1
_FITS = "; ".join(f"{name}: {what}" for name, what in recordings.FITS.items())

TraceFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="The trace, compressed or not; no pipe. Of blktrace's files, any one.",
    ),
]
Out = Annotated[Path, typer.Option(help="The recording to write; must not exist.")]


def cut(
    file: TraceFile,
    out: Out,
    from_: Annotated[
        str, typer.Option("--from", metavar="TIME", help="Start of the kept part: 4s, 250ms.")
    ] = "0s",
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Its end. [default: the trace's]")
    ] = None,
    process: Annotated[
        list[str] | None, typer.Option(help="A process's name or number; repeatable.")
    ] = None,
    cgroup: Annotated[
        list[str] | None,
        typer.Option(help="A cgroup's path, with all below it, or its number; repeatable."),
    ] = None,
    operation: Annotated[
        list[str] | None, typer.Option(help="read, write, flush, discard; repeatable.")
    ] = None,
    place: Annotated[
        str | None, typer.Option(metavar="FROM..TO", help="A part of the disk: 0..10GiB.")
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            "--size", metavar="FROM..TO", help="Sizes of I/Os, both included: 4KiB..64KiB."
        ),
    ] = None,
    trace_format: FormatName = None,
    device: DeviceName = None,
) -> None:
    """Write a part of a trace: a time, processes, cgroups, operations, a place, sizes, a device."""
    asked = window.parse(from_, until)
    made = blklab.cut_trace(
        file,
        out,
        from_ns=asked.from_ns,
        until_ns=None if until is None else asked.until_ns,
        processes=process or (),
        cgroups=cgroup or (),
        operations=operation or (),
        place_bytes=_range("--place", place),
        size_bytes=_range("--size", sizes),
        trace_format=trace_format,
        device=device,
    )
    _print_edited([file], made)


def scale(
    file: TraceFile,
    out: Out,
    time: Annotated[
        float,
        typer.Option(help="Times between arrivals are multiplied by this: 0.5 is twice as fast."),
    ] = 1.0,
    disk_size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="Places are scaled to a disk of this size: 500GB, 931GiB."
        ),
    ] = None,
    trace_format: FormatName = None,
    device: DeviceName = None,
) -> None:
    """Change a trace's speed, or the size of its disk; shows what that does to it."""
    made = blklab.scale_trace(
        file,
        out,
        stretch=time,
        capacity_bytes=None if disk_size is None else bytes_of("--disk-size", disk_size),
        trace_format=trace_format,
        device=device,
    )
    _print_edited([file], made)


def merge(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE FILE...", help="Two traces or more; all begin at the same time."
        ),
    ],
    out: Out,
    apart: Annotated[
        bool,
        typer.Option(
            "--apart", help="One behind the other on the disk; else each at its own places."
        ),
    ] = False,
    trace_format: FormatName = None,
    device: DeviceName = None,
) -> None:
    """Put several loads together on one disk."""
    made = blklab.merge_traces(files, out, apart=apart, trace_format=trace_format, device=device)
    _print_edited(files, made)


def anonymise(
    file: TraceFile,
    out: Out,
    disk: Annotated[
        str | None,
        typer.Option(
            "--disk",
            help=f"Also replay both on this disk, and show the differences. {DISK_HELP}",
            autocompletion=complete.disk,
        ),
    ] = None,
    fit: Annotated[
        str, typer.Option(help=f"With --disk: I/O beyond the end of the disk. {_FITS}.")
    ] = "refuse",
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=2**64 - 1, help="A secret; decides the places. [default: random]"),
    ] = None,
    trace_format: FormatName = None,
    device: DeviceName = None,
) -> None:
    """Replace names, numbers and places, so that a trace can be shared."""
    how = fit_of(fit)
    model = None if disk is None else blklab.find_disk(disk)
    made = blklab.anonymise_trace(file, out, seed=seed, trace_format=trace_format, device=device)
    _print_edited([file], made)
    if disk is None or model is None:
        return
    rows = blklab.trace_fidelity(
        file, out, disk=disk, fit=how, trace_format=trace_format, device=device
    )
    table = console.table("replayed on " + shown(disk), "rate", "p99", right=(1, 2))
    for row in rows:
        ratios = (row.bytes_per_s, row.latency)
        changes = ("-" if ratio is None else f"{ratio - 1:+.1%}" for ratio in ratios)
        table.add_row(row.scheduler, *changes)
    console.console().print(table)


def _range(option: str, text: str | None) -> tuple[int, int] | None:
    """``4KiB..64KiB``, ``..1MiB``, ``10GiB..``, in bytes."""
    if text is None:
        return None
    first, dots, last = text.partition("..")
    if not dots:
        raise InputError(f"{option}: found '{shown(text)}'; expected a range such as 4KiB..64KiB")
    return (
        bytes_of(option, first) if first.strip() else 0,
        bytes_of(option, last) if last.strip() else _LAST_BYTE,
    )


def _print_edited(files: list[Path], made: EditedTrace) -> None:
    """Both sides, figure by figure."""
    several = len(files) > 1
    names = [f"{number}" for number, _ in enumerate(files, 1)] if several else ["before"]
    readings = [*made.before, made.after]
    table = console.table("", *names, "after", right=range(1, len(names) + 2))
    for label, figures in zip(_FIGURES, zip(*map(_figures, readings), strict=True), strict=True):
        table.add_row(label, *figures)
    console.console().print(table)
    each = made.recording_bytes / made.after.count
    size_ = size_text(made.recording_bytes)
    print(f"\n{shown(str(made.path))}: {size_}, {number_text(each)} bytes for each I/O")


_FIGURES = (
    "I/Os",
    "span",
    "I/Os a second",
    "processes",
    "sequential",
    "median seek",
    "p90 seek",
    "highest address",
    "mean depth",
)


def _figures(reading: TraceReading) -> list[str]:
    span_s = reading.last_ns / 1e9
    placed = sum(row.count for row in reading.operations if row.bytes)
    seeks = reading.seeks_sectors
    return [
        f"{reading.count:,}",
        duration_text(reading.last_ns),
        number_text(reading.count / span_s) if span_s else "-",
        f"{reading.process_count:,}",
        f"{100 * reading.sequential / placed:.1f} %" if placed else "-",
        size_text(seeks.p50 * _SECTOR_BYTES) if seeks.count else "-",
        size_text(seeks.p90 * _SECTOR_BYTES) if seeks.count else "-",
        size_text(reading.end_sector * _SECTOR_BYTES),
        number_text(reading.depth.mean) if reading.depth.count else "-",
    ]
