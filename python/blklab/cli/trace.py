"""``blklab trace``: traces of I/O: what is wrong with one, its figures, and recordings of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

import blklab
from blklab.api import trace_served
from blklab.base.plain import plain
from blklab.base.text import shown
from blklab.base.units import duration_text, number_text, rate_text, size_text
from blklab.cli import complete, console, trace_edits, trace_parts
from blklab.cli.options import DeviceName, FormatName, TraceFile, bytes_of
from blklab.errors import InputError
from blklab.timelines import window
from blklab.timelines.served import process_text

if TYPE_CHECKING:
    from blklab import PerfettoTrace
    from blklab._core import TraceCgroup, TraceFigures, TraceFinding, TraceProcess, TraceReading

_NS_PER_S = 1e9
_SECTOR_BYTES = 512
_ROWS = 10
"""Processes, devices and sizes that are listed."""
_COMMON = 3
"""Sizes that are listed for each operation."""
_UNUSABLE = "unusable"
_LEAST_SHARE = 0.0005

app = typer.Typer(
    name="trace",
    help="Check, show, import and change traces of I/O.",
    rich_markup_mode=None,
    add_completion=False,
)

NoSpread = Annotated[
    bool,
    typer.Option(
        "--no-spread",
        help="I/Os of one step of a coarse clock keep its time; else they are spread over it.",
    ),
]
DiskSize = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="The disk's size, such as 500GB or 931GiB: I/O beyond it is found."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable.")]


class _Reads(TypedDict):
    """How a trace is read."""

    trace_format: str | None
    device: str | None
    keep_steps: bool


@app.callback(invoke_without_command=True)
def group(context: typer.Context) -> None:
    """Check, show, import and change traces of I/O."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command("check")
def check(
    file: TraceFile,
    trace_format: FormatName = None,
    device: DeviceName = None,
    no_spread: NoSpread = False,
    disk_size: DiskSize = None,
    as_json: AsJson = False,
) -> None:
    """Find what is wrong with a trace; exit code 1 if it cannot be used as it is."""
    reading = blklab.read_trace(
        file,
        trace_format=trace_format,
        device=device,
        keep_steps=no_spread,
        capacity_bytes=None if disk_size is None else bytes_of("--disk-size", disk_size),
    )
    if as_json:
        console.print_json(_head(reading) | {"findings": plain(reading.findings)})
    else:
        _print_head(file, reading)
        _print_findings(reading.findings)
    if any(finding.weight == _UNUSABLE for finding in reading.findings):
        raise typer.Exit(1)


@app.command("show")
def show(
    file: TraceFile,
    trace_format: FormatName = None,
    device: DeviceName = None,
    no_spread: NoSpread = False,
    as_json: AsJson = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Also write a page with pictures over time to this file."),
    ] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option("--beside", help="With --html: another trace over the same time; repeatable."),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="Show what was served in a part of the trace, from here on: 4s, 250ms.",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="The end of that part. [default: the trace's]"),
    ] = None,
    slowest: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=trace_served.SLOWEST_MAX,
            help="Show this many of the slowest I/Os, of that part or of the whole trace, and what "
            f"the disk did meanwhile. [default: one of each of {trace_served.SLOWEST} processes]",
        ),
    ] = None,
    perfetto: Annotated[
        Path | None,
        typer.Option(
            help="Also write the I/Os, of that part or of the whole trace, for "
            "https://ui.perfetto.dev to this file."
        ),
    ] = None,
    requests: Annotated[
        int,
        typer.Option(min=1, max=10_000_000, help="With --perfetto: the first so many I/Os."),
    ] = trace_served.PERFETTO_MAX,
) -> None:
    """Show a trace's figures: mix, sizes, places, times, depth, processes; or what was served in a
    part of it."""
    reads: _Reads = {"trace_format": trace_format, "device": device, "keep_steps": no_spread}
    asked = window.parse(from_ or "0s", until)
    is_part = not (from_ is None and until is None and slowest is None)
    _check_show(file, html, beside, is_part=is_part)
    if is_part:
        served = blklab.served_trace(
            file,
            from_ns=asked.from_ns,
            until_ns=asked.until_ns,
            slowest=trace_served.SLOWEST if slowest is None else slowest,
            distinct=slowest is None,
            **reads,
        )
        if as_json:
            console.print_json(plain(served))
        else:
            trace_parts.print_served(file, served, until_ns=asked.until_ns)
    else:
        if html is None:
            reading = blklab.read_trace(file, **reads)
        else:
            reading = blklab.trace_page(file, html, beside=beside or (), **reads)
        if as_json:
            console.print_json(plain(reading))
        else:
            _print_reading(file, reading, html)
    if perfetto is not None:
        made = blklab.trace_perfetto(
            file,
            perfetto,
            from_ns=asked.from_ns,
            until_ns=asked.until_ns,
            most=requests,
            **reads,
        )
        if not as_json:
            _print_perfetto(made)


def _check_show(file: Path, html: Path | None, beside: list[Path] | None, *, is_part: bool) -> None:
    """InputError if the options do not go together."""
    if is_part and html is not None:
        raise InputError("--html: has the whole trace; choose the part on the page")
    if beside and html is None:
        raise InputError("--beside: needs --html PAGE")
    if html is not None and "-" in map(str, [file, *(beside or ())]):
        raise InputError("--html: reads a trace twice, and standard input only once; save it")


def _print_reading(file: Path, reading: TraceReading, html: Path | None) -> None:
    _print_head(file, reading)
    if reading.count:
        _print_figures(reading)
    heavy = [finding for finding in reading.findings if finding.weight != "note"]
    if heavy:
        print(f"{len(heavy)} findings; to see them: blklab trace check {shown(str(file))}")
    if html is not None:
        print(f"Page: {shown(str(html))}")


def _print_perfetto(made: PerfettoTrace) -> None:
    left = f"; {made.left_out:,} I/Os are left out: --requests, --from" if made.left_out else ""
    print(f"Perfetto trace: {shown(str(made.path))}, {made.ios:,} I/Os{left}")


@app.command("import")
def imported(
    file: TraceFile,
    out: Annotated[Path, typer.Option(help="The recording to write; must not exist.")],
    trace_format: FormatName = None,
    device: DeviceName = None,
    no_spread: NoSpread = False,
    disk_size: DiskSize = None,
) -> None:
    """Make a recording of a trace, with which every later step is faster."""
    found = blklab.import_trace(
        file,
        out,
        trace_format=trace_format,
        device=device,
        keep_steps=no_spread,
        capacity_bytes=None if disk_size is None else bytes_of("--disk-size", disk_size),
    )
    reading = found.reading
    _print_head(file, reading)
    if heavy := [finding for finding in reading.findings if finding.weight != "note"]:
        _print_findings(heavy)
    each = found.recording_bytes / reading.count
    size = size_text(found.recording_bytes)
    print(f"\n{shown(str(found.path))}: {size}, {number_text(each)} bytes for each I/O")


@app.command("to-fio")
def to_fio(
    file: TraceFile,
    out: Annotated[Path, typer.Option(help="The job file to write.")],
    trace_format: FormatName = None,
    device: DeviceName = None,
    disk: Annotated[
        str | None,
        typer.Option(
            help="A disk model, on which both are run: shows how near the job comes.",
            autocompletion=complete.disk,
        ),
    ] = None,
    scheduler: Annotated[
        str, typer.Option(help="Its scheduler.", autocompletion=complete.scheduler)
    ] = "none",
) -> None:
    """Make a fio job file that resembles a trace, for a machine where blklab is not."""
    found = blklab.trace_job(
        file,
        out,
        trace_format=trace_format,
        device=device,
        disk=disk,
        scheduler=scheduler,
    )
    left = f"; {found.left_out} I/Os are not in it" if found.left_out else ""
    print(f"{shown(str(out))}: {found.jobs} jobs, {found.ios} I/Os{left}")
    if found.near:
        table = console.table("figure", "trace, replayed", "job", "off", right=(1, 2, 3))
        for row in found.near:
            off = f"{100 * (row.job / row.trace - 1):+.0f} %" if row.trace else ""
            cells = (f"{number_text(value)} {row.unit}" for value in (row.trace, row.job))
            table.add_row(row.name, *cells, off)
        console.console().print(table)


@app.command("formats")
def formats() -> None:
    """List the formats of traces."""
    console.print_names([(row.name, row.about) for row in blklab.trace_formats()])


app.command("cut")(trace_edits.cut)
app.command("scale")(trace_edits.scale)
app.command("merge")(trace_edits.merge)
app.command("anonymise")(trace_edits.anonymise)


def _head(reading: TraceReading) -> dict[str, Any]:
    names = ("format", "source", "compression", "files", "level", "resolution_ns", "spread")
    found = {name: getattr(reading, name) for name in names}
    return found | {"count": reading.count, "last_ns": reading.last_ns}


def _print_head(file: Path, reading: TraceReading) -> None:
    source = reading.source or reading.format
    files = f", {reading.files} files" if reading.files > 1 else ""
    packed = f", {reading.compression}" if reading.compression else ""
    print(
        f"{shown(str(file))}: {shown(source)}{files}{packed}; level {reading.level}, "
        f"clock {duration_text(reading.resolution_ns)}"
    )
    span = duration_text(reading.last_ns)
    print(f"{reading.count:,} I/Os in {span}")


def _print_findings(findings: Iterable[TraceFinding]) -> None:
    rows = [*findings]
    if not rows:
        print("nothing is wrong with it")
        return
    for finding in rows:
        count = f"{finding.count:,}"
        place = f", first at {finding.first:,}" if finding.first else ""
        found = f" ({shown(finding.found)})" if finding.found else ""
        head = f"{finding.weight}: {finding.kind}"
        print(console.folded(f"{head}: {count}{place}{found}: {finding.text}", "", "  "))


def _print_figures(reading: TraceReading) -> None:
    out = console.console()
    span_s = reading.last_ns / _NS_PER_S
    table = console.table(
        "operation", "I/Os", "share", "IOPS", "rate", "mean size", "sizes", right=range(1, 6)
    )
    for row in reading.operations:
        table.add_row(
            row.name,
            f"{row.count:,}",
            _share(row.count, reading.count),
            number_text(row.count / span_s) if span_s else "-",
            rate_text(row.bytes / span_s) if span_s and row.bytes else "-",
            size_text(row.sizes_bytes.mean) if row.sizes_bytes.count else "-",
            ", ".join(
                f"{size_text(size)} {_share(count, row.count)}"
                for size, count in row.common_sizes[:_COMMON]
            ),
        )
    out.print(table)
    flags = [*_flags(reading)]
    if flags:
        print(f"flags: {', '.join(flags)}")
    with_place = sum(row.count for row in reading.operations if row.bytes)
    print(
        f"sequential: {_share(reading.sequential, with_place)} of I/Os begin where the one before "
        "ended"
    )
    seeks = reading.seeks_sectors
    if seeks.count:
        far = [size_text(value * _SECTOR_BYTES) for value in (seeks.p50, seeks.p90, seeks.max)]
        print(f"seeks: median {far[0]}, p90 {far[1]}, largest {far[2]}")
    print(
        f"highest address: {size_text(reading.end_sector * _SECTOR_BYTES)}; working set, in areas "
        f"of 1 MiB: {size_text(reading.working_set_bytes)}"
    )
    if reading.depth.count:
        depth = reading.depth
        print(f"depth at an arrival: mean {number_text(depth.mean)}, largest {depth.max:,}")
    _print_times(reading, out)
    _print_names(reading, out)


def _print_times(reading: TraceReading, out: Any) -> None:
    names = ("Q2Q", "Q2I", "I2D", "D2C", "Q2C", "think")
    meanings = (
        *("between arrivals", "to the scheduler", "in it", "at the disk", "in all"),
        "pauses of a process",
    )
    table = console.table(
        "time", "", "I/Os", "least", "mean", "p50", "p99", "most", right=range(2, 8)
    )
    for name, meaning in zip(names, meanings, strict=True):
        row: TraceFigures = getattr(reading, f"{name.lower()}_ns")
        if row.count:
            times = (row.min, row.mean, row.p50, row.p99, row.max)
            table.add_row(name, meaning, f"{row.count:,}", *map(duration_text, times))
    out.print(table)


def _print_names(reading: TraceReading, out: Any) -> None:
    if len(reading.devices) > 1:
        table = console.table("device", "I/Os", "share", right=(1, 2))
        for name, count in reading.devices[:_ROWS]:
            table.add_row(shown(name) or "-", f"{count:,}", _share(count, reading.count))
        out.print(table)
    if any(row.pid or row.name for row in reading.processes):
        _print_owners(
            out,
            "process",
            [(process_text(one.name, one.pid), one) for one in reading.processes[:_ROWS]],
        )
        if reading.process_count > _ROWS:
            print(f"and {reading.process_count - _ROWS} processes more")
    if reading.cgroups:
        _print_owners(
            out,
            "cgroup",
            [
                (shown(one.path) or (f"number {one.number}" if one.number else "not known"), one)
                for one in reading.cgroups[:_ROWS]
            ],
        )
        if reading.cgroup_count > _ROWS:
            print(f"and {reading.cgroup_count - _ROWS} cgroups more")
    if reading.areas_incomplete:
        print("working sets of processes and cgroups are at least as large: not all were counted")


def _print_owners(
    out: Any, head: str, rows: Iterable[tuple[str, TraceProcess | TraceCgroup]]
) -> None:
    """Processes or cgroups with their figures."""
    names = ("I/Os", "read", "written", "seq.", "working set", "mean Q2C", "think")
    table = console.table(head, *names, right=range(1, len(names) + 1))
    table.columns[0].no_wrap = True
    for name, one in rows:
        optional = [
            None if value is None else words(value)
            for value, words in (
                (one.working_set_bytes, size_text),
                (one.mean_q2c_ns, duration_text),
                (one.think_median_ns, duration_text),
            )
        ]
        table.add_row(
            name,
            f"{one.count:,}",
            size_text(one.read_bytes),
            size_text(one.written_bytes),
            _share(one.sequential, one.count),
            *("-" if text is None else text for text in optional),
        )
    out.print(table)


def _flags(reading: TraceReading) -> Iterator[str]:
    for row in reading.operations:
        for name in ("sync", "read_ahead", "meta", "fua", "preflush"):
            if count := getattr(row, name):
                yield f"{_share(count, row.count)} of {row.name} {name.replace('_', '-')}"


def _share(part: int, whole: int) -> str:
    if part and whole and part / whole < _LEAST_SHARE:
        return "<0.1 %"
    return f"{100 * part / whole:.1f} %" if whole else "-"
