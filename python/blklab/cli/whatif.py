"""``blklab whatif``: which scheduler would have served a recorded load best."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

import blklab
from blklab.api import whatif as api
from blklab.base.plain import plain
from blklab.base.text import shown
from blklab.base.units import duration_text, rate_text
from blklab.cli import complete, console
from blklab.cli.listening import Terminal
from blklab.cli.options import (
    DeviceName,
    DiskName,
    FormatName,
    PluginFiles,
    TraceFile,
    use_plugins,
)
from blklab.domain import recordings
from blklab.timelines import window

if TYPE_CHECKING:
    from blklab import WhatIf

_FITS = "; ".join(f"{name}: {what}" for name, what in recordings.FITS.items())
_CGROUPS = "; ".join(f"{name}: {what}" for name, what in recordings.CGROUPS.items())
_OBJECTIVES = "; ".join(f"{name}: {what}" for name, what in api.OBJECTIVES.items())


def whatif(
    file: TraceFile,
    disk: DiskName,
    scheduler: Annotated[
        list[str] | None,
        typer.Option(
            help="name[:tunable=value,...]; repeatable. [default: none, mq-deadline, kyber, bfq]",
            autocompletion=complete.scheduler,
        ),
    ] = None,
    objective: Annotated[str, typer.Option(help=f"What ranks. {_OBJECTIVES}.")] = "latency",
    fit: Annotated[str, typer.Option(help=f"I/O beyond the end of the disk. {_FITS}.")] = "refuse",
    draws: Annotated[
        int,
        typer.Option(
            min=0, max=100, help="Disks drawn from the ranges of the model's estimates; 0: none."
        ),
    ] = api.DRAWS,
    from_: Annotated[
        str, typer.Option("--from", metavar="TIME", help="Start of the replayed part: 4s, 250ms.")
    ] = "0s",
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Its end. [default: the trace's]")
    ] = None,
    cgroups: Annotated[str, typer.Option(help=f"The cgroups of I/O. {_CGROUPS}.")] = "recorded",
    cgroup_weight: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH=WEIGHT",
            help="The weight of a recorded cgroup, 10 to 1000; repeatable. [default: 100 for each]",
        ),
    ] = None,
    present: Annotated[
        str | None,
        typer.Option(
            help="Explain the answer against this one of the schedulers. "
            "[default: the recording's, else the worst]",
            autocompletion=complete.scheduler,
        ),
    ] = None,
    trace_format: FormatName = None,
    device: DeviceName = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32, help="The same seed gives the same result.")
    ] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    plugin: PluginFiles = None,
) -> None:
    """Replay a recorded load under several schedulers: which one would have served it best?"""
    use_plugins(plugin)
    asked = window.parse(from_, until)
    found = blklab.whatif(
        file,
        disk=disk,
        schedulers=scheduler or (),
        objective=objective,
        fit=fit_of(fit),
        draws=draws,
        seed=seed,
        trace_format=trace_format,
        device=device,
        from_ns=asked.from_ns,
        until_ns=None if until is None else asked.until_ns,
        cgroups=_cgroups(cgroups),
        cgroup_weights=_weights(cgroup_weight or ()),
        present=present,
        listener=Terminal(),
    )
    if as_json:
        console.print_json(_document(found))
    else:
        _print(file, found)


def fit_of(name: str) -> recordings.Fit:
    """What happens to addresses beyond the end of the disk, by its name."""
    if name not in recordings.FITS:
        raise blklab.InputError(f"--fit: no '{name}'; there is: {', '.join(recordings.FITS)}")
    return cast("recordings.Fit", name)


def _cgroups(name: str) -> recordings.Cgroups:
    if name not in recordings.CGROUPS:
        known = ", ".join(recordings.CGROUPS)
        raise blklab.InputError(f"--cgroups: no '{name}'; there is: {known}")
    return cast("recordings.Cgroups", name)


def _weights(given: Iterable[str]) -> dict[str, int]:
    """Weights by path; the last `=` is before the weight."""
    found = {}
    for one in given:
        path, _, weight = one.rpartition("=")
        if not path or not (weight.isascii() and weight.isdigit()):
            raise blklab.InputError(
                f"--cgroup-weight: expected PATH=WEIGHT, such as /backup=50, found '{shown(one)}'"
            )
        found[path] = int(weight)
    return found


def _print(file: Path, found: WhatIf) -> None:
    from rich.text import Text

    out = console.console()
    out.print(Text(found.sentence(), style="bold"))
    out.print(
        Text(f"{found.ios:,} I/Os in {duration_text(found.span_ns)} of {file} on {found.disk}")
    )
    ways = tuple(found.best)
    names = list(dict.fromkeys(row.scheduler for row in found.rows))
    figure = rate_text if found.objective == "throughput" else duration_text
    table = console.table("scheduler", *ways, right=range(1, len(ways) + 1))
    for name in names:
        cells = []
        for way in ways:
            [row] = [row for row in found.rows if (row.scheduler, row.way) == (name, way)]
            differ = len(found.best[way]) < len(names)
            style = "bold green" if differ and name in found.best[way] else ""
            cells.append(Text(figure(found.figure(row)), style=style))
        table.add_row(Text(name), *cells)
    out.print(table)
    out.print(Text(f"{found.objective}: {api.OBJECTIVES[found.objective]}", style="dim"))
    for way in ways:
        out.print(Text(f"{way}: {recordings.WAYS[way]}", style="dim"))
    if found.drawn:
        wins = {name: sum(name in best for best in found.drawn) for name in names}
        told = ", ".join(f"{name} {count}" for name, count in wins.items() if count)
        out.print(Text(f"Best on {len(found.drawn)} drawn disks: {told}"))
    _print_reasons(found)
    console.print_notes(found.notes)


def _print_reasons(found: WhatIf) -> None:
    """Why the best scheduler is better than the present one."""
    if not found.explained:
        return
    head = f"Why {found.explained}, and not {found.present}:"
    told = " ".join(reason.sentence for reason in found.reasons)
    none = "no single mechanism accounts for half of the difference."
    print(console.folded(f"{head} {told or none}", "", ""))


def _document(found: WhatIf) -> dict[str, object]:
    return {
        "disk": found.disk,
        "objective": found.objective,
        "ios": found.ios,
        "span_ns": found.span_ns,
        "answer": found.sentence(),
        "winners": list(found.winners),
        "best": {way: list(best) for way, best in found.best.items()},
        "drawn": [list(best) for best in found.drawn],
        "rows": [
            {
                "scheduler": row.scheduler,
                "way": row.way,
                "duration_ns": row.result.duration_ns,
                "bytes_per_s": row.bytes_per_s,
                "latency_ns": row.latency_ns,
            }
            for row in found.rows
        ],
        "explained": found.explained,
        "present": found.present,
        "reasons": plain(found.reasons),
        "notes": list(found.notes),
    }
