"""``blklab results``: every comparison that is kept, the latest first."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from blklab.base.text import shown
from blklab.cli import complete, console
from blklab.cli.listening import Terminal
from blklab.cli.resuming import StoreName
from blklab.store.since import local

if TYPE_CHECKING:
    from collections.abc import Sequence

    from blklab.store.read import Listed

_LINE = 40
"""Characters of a line of names."""
_NAME = 32


def listed(
    context: typer.Context,
    disk: Annotated[
        list[str] | None,
        typer.Option(help="Only with this disk, or part of its name; repeatable.",
                     autocompletion=complete.disk),
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(help="Only with this workload; repeatable.", autocompletion=complete.workload),
    ] = None,
    scheduler: Annotated[
        list[str] | None,
        typer.Option(
            help="Only with this scheduler; repeatable.", autocompletion=complete.scheduler
        ),
    ] = None,
    rig: Annotated[
        list[str] | None,
        typer.Option(help="Only of this rig; repeat for several.", autocompletion=complete.rig),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="2026-11-22, or 30m, 12h, 7d ago.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    store: StoreName = None,
) -> None:  # fmt: skip
    """List the stored comparisons, the latest first."""
    if context.invoked_subcommand is not None:
        return
    from blklab.api.results import results
    from blklab.store import place

    filters = {"disks": disk, "workloads": workload, "schedulers": scheduler, "rigs": rig}
    given = {name: chosen for name, chosen in filters.items() if chosen}
    rows = results(**given, since_=since, store=store, listener=Terminal())
    where = place.find(store)
    if as_json:
        console.print_json({"store": where.text, "comparisons": [asdict(row) for row in rows]})
    elif rows:
        _print(rows)
    else:
        print("no match" if given or since else f"no results yet in {where.text}")


def _print(rows: Sequence[Listed]) -> None:
    from rich.text import Text

    from blklab.store.read import COMPLETE

    table = console.table(
        "id", "begun", "rig", "runs", "disks; workloads; schedulers", right=(0, 3)
    )
    for name in range(4):
        table.columns[name].no_wrap = True
    for row in rows:
        lines = [_short(names) for names in (row.disks, row.workloads, row.schedulers)]
        if row.imported_at:
            lines.append(f"of {_short([row.machine])}")
        runs = str(row.kept) if row.kept == row.planned else f"{row.kept} of {row.planned}"
        # What has fewer runs than planned and is complete was stopped by its own rule.
        ended = [] if row.state == COMPLETE else [row.state]
        table.add_row(
            str(row.id),
            local(row.begun_at),
            Text(shown(row.rig)),
            "\n".join([runs, *ended]),
            Text("\n".join(lines)),
        )
    console.console().print(table)


def _short(names: Sequence[str]) -> str:
    """As many of them as a line has room for, each not too long."""
    kept: list[str] = []
    for name in map(shown, names):
        cut = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
        if kept and len(", ".join([*kept, cut, f"+{len(names)}"])) > _LINE:
            break
        kept.append(cut)
    more = len(names) - len(kept)
    return ", ".join(kept) + (f" +{more}" if more else "")
