"""``blklab explain``: one run, process by process, with what the scheduler decided."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import blklab
from blklab.base import limits
from blklab.base.units import size_text
from blklab.cli import complete, console
from blklab.cli.listening import Terminal
from blklab.cli.options import (
    DiskName,
    DriverName,
    HostValues,
    IgnoreUnsupported,
    KernelName,
    PluginFiles,
    RigName,
    spec,
    use_plugins,
)
from blklab.domain import specs

if TYPE_CHECKING:
    from rich.table import Table

    from blklab import Timeline


def explain(
    job: Annotated[
        str,
        typer.Argument(
            help="A fio job file, a recording, or a workload's name.",
            autocompletion=complete.workload,
        ),
    ],
    disk: DiskName,
    scheduler: Annotated[
        str, typer.Option(help="name[:tunable=value,...].", autocompletion=complete.scheduler)
    ] = "none",
    from_: Annotated[
        str, typer.Option("--from", metavar="TIME", help="Start of the window: 4s, 250ms, 80us.")
    ] = "0s",
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="End of the window. [default: the run's end]")
    ] = None,
    process: Annotated[
        list[str] | None,
        typer.Option(
            help="Show only this process: a job's name, or name.0 for its first clone; "
            "kernel: its writeback and flushes; repeatable."
        ),
    ] = None,
    requests: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100_000,
            help="Maximum number of requests; the others are counted. "
            f"[default: {limits.TEXT_REQUESTS} as text, {limits.FILE_REQUESTS} in a file]",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write an HTML page with the timeline to this file, instead of text."),
    ] = None,
    perfetto: Annotated[
        Path | None,
        typer.Option(
            help="Write a trace for https://ui.perfetto.dev to this file, instead of text."
        ),
    ] = None,
    rig: RigName = "sim",
    kernel: KernelName = None,
    driver: DriverName = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="The same seed gives the same result.")
    ] = 1,
    host: HostValues = None,
    ignore_unsupported: IgnoreUnsupported = False,
    plugin: PluginFiles = None,
) -> None:
    """Show what happened to each request of a run, and the scheduler's decisions, over time."""
    use_plugins(plugin)
    from blklab.timelines import summary

    timeline = blklab.explain(
        job,
        disk=disk,
        scheduler=scheduler,
        from_=from_,
        until=until,
        processes=process or (),
        requests=requests,
        rig=spec(rig, kernel=kernel, driver=driver),
        seed=seed,
        host=specs.host(host or ()),
        ignore_unsupported=ignore_unsupported,
        page_file=out,
        perfetto_file=perfetto,
        listener=Terminal(),
    )
    if not (out or perfetto):
        _print(timeline)
        return
    for what, written in (("Timeline", out), ("Perfetto trace", perfetto)):
        if written:
            print(f"{what}: {written}")
    console.print_notes(filter(None, [summary.left_out(timeline)]))


def _print(timeline: Timeline) -> None:
    from rich.text import Text

    from blklab.timelines import summary, text

    out = console.console()
    out.print(f"{text.head(timeline)}\n{summary.sentence(timeline)}")
    table = console.table("ms", "process", "what", right=(0,))
    for line in text.lines(timeline):
        style = "bold cyan" if line.decided else ""
        table.add_row(f"{line.at_ns / 1e6:,.3f}", Text(line.process), Text(line.what, style=style))
    out.print(table)
    out.print(_shares(timeline))
    for note in filter(None, [summary.left_out(timeline)]):
        out.print(note)


def _shares(timeline: Timeline) -> Table:
    from rich.text import Text

    from blklab.timelines import summary

    shares = summary.shares(timeline)
    heads = ["process", "requests", "data", "queue time", "service time"]
    turns = any(share.turns for share in shares)
    heads += ["turns", "in turn", "idled for"] if turns else []
    table = console.table(*heads, right=range(1, len(heads)))
    table.columns[0].no_wrap = True
    for share in shares:
        row = [
            f"{share.requests:,}",
            size_text(share.bytes),
            summary.text(share.waited_ns),
            summary.text(share.with_disk_ns),
        ]
        more = [f"{share.turns}", summary.text(share.turn_ns), summary.text(share.idle_ns)]
        table.add_row(Text(share.name), *row, *(more if turns else []))
    return table
