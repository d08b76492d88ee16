"""``blklab results show``: one comparison that is kept."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, cast

import typer

from blklab.base.text import shown
from blklab.cli import complete
from blklab.cli.listening import Terminal
from blklab.cli.resuming import StoreName
from blklab.store.since import local

if TYPE_CHECKING:
    from blklab.api.compare import Objective
    from blklab.api.results import Stored


def show(
    number: Annotated[
        str,
        typer.Argument(metavar="ID", help="The comparison's number.", autocompletion=complete.kept),
    ],
    objective: Annotated[
        str | None,
        typer.Option(
            help="Rank by throughput, latency or both. [default: the comparison's own]",
            autocompletion=complete.objective,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    store: StoreName = None,
) -> None:
    """Show the results of a comparison, and when, where and on what it ran."""
    from blklab.api.results import stored
    from blklab.cli import comparison, console

    found = stored(
        number, objective=cast("Objective | None", objective), store=store, listener=Terminal()
    )
    if as_json:
        head = asdict(found.listed) | {"facts": found.facts, "setup": found.setup}
        console.print_json(head | found.summary())
        return
    _head(found)
    if found.analysis.cells:
        out = console.console()
        comparison.show_cells(found.analysis, out, requests=comparison.are_told(found.setup))
        comparison.show_not_validated(found.setup, out)
        comparison.show_advice(found.analysis, out)
    else:
        print("\nno repeat is complete yet, there is nothing to compare")


def _head(found: Stored) -> None:
    row, machine = found.listed, found.facts.get("machine") or {}
    versions = found.facts.get("versions") or {}
    names = [name for name in ("blklab", "kernel", "fio", "python") if versions.get(name)]
    rig = str((found.setup.get("rig_setup") or {}).get("text") or "")
    of_study = f", part {row.part} of study {row.study}" if row.study else ""
    lines = [
        f"{row.id}: {row.state}, {row.kept} of {row.planned} runs{of_study}",
        f"begun {local(row.begun_at)}" + (f", ended {local(row.ended_at)}" if row.ended_at else ""),
        f"rig {row.rig}" + (f": {rig}" if rig else ""),
        f"machine {row.machine}: {machine.get('cpu') or 'CPU not known'}, "
        f"{machine.get('system') or 'system not known'}",
        ", ".join(f"{name} {versions[name]}" for name in names),
        f"disks: {', '.join(row.disks)}",
        f"workloads: {', '.join(row.workloads)}",
        f"schedulers: {', '.join(row.schedulers)}",
    ]
    if row.imported_at:
        lines.insert(2, f"imported {local(row.imported_at)}")
    for line in lines:
        print(shown(line))
