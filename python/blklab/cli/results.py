"""``blklab results`` and ``blklab report``: stored comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

import blklab
from blklab.api.names import EXPORT_FORMATS
from blklab.base.files import check_files
from blklab.base.plain import plain
from blklab.base.text import shown
from blklab.cli import complete, console, streams
from blklab.cli.listening import Terminal
from blklab.cli.options import StoreName
from blklab.domain.stored import local, numbers
from blklab.errors import InputError, nearest

if TYPE_CHECKING:
    from blklab.api.compare import Objective
    from blklab.api.results import ExportFormat

_LINE = 40
"""Characters of a line of names."""
_NAME = 32

app = typer.Typer(
    name="results",
    help="List, show, compare, export and remove stored comparisons.",
    rich_markup_mode=None,
    add_completion=False,
)


@app.callback(invoke_without_command=True)
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
    filters = {"disks": disk, "workloads": workload, "schedulers": scheduler, "rigs": rig}
    given = {name: chosen for name, chosen in filters.items() if chosen}
    rows = blklab.results(**given, since_=since, store=store, listener=Terminal())
    where = blklab.store_text(store)
    if as_json:
        console.print_json({"store": where, "comparisons": [asdict(row) for row in rows]})
    elif rows:
        _print_list(rows)
    else:
        print("no match" if given or since else f"no results yet in {where}")


def _print_list(rows: Sequence[blklab.Listed]) -> None:
    from rich.text import Text

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
        # A complete comparison with fewer runs than planned was stopped by its budget.
        ended = [] if row.is_complete else [row.state]
        table.add_row(
            str(row.id),
            local(row.begun_at),
            Text(shown(row.rig)),
            "\n".join([runs, *ended]),
            Text("\n".join(lines)),
        )
    console.console().print(table)


def _short(names: Sequence[str]) -> str:
    """As many names as fit on a line, long ones shortened."""
    kept: list[str] = []
    for name in map(shown, names):
        cut = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
        if kept and len(", ".join([*kept, cut, f"+{len(names)}"])) > _LINE:
            break
        kept.append(cut)
    more = len(names) - len(kept)
    return ", ".join(kept) + (f" +{more}" if more else "")


@app.command("show")
def show(
    which: Annotated[
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
    from blklab.cli import comparison

    found = blklab.stored(
        which, objective=cast("Objective | None", objective), store=store, listener=Terminal()
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


def _head(found: blklab.Stored) -> None:
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


@app.command("diff")
def diff(
    first: Annotated[
        str,
        typer.Argument(
            metavar="A", help="ID, or several: 3,5.", autocompletion=complete.kept
        ),
    ],
    second: Annotated[
        str, typer.Argument(metavar="B", help="ID, or several.", autocompletion=complete.kept)
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    store: StoreName = None,
) -> None:  # fmt: skip
    """Compare two sets of comparisons: B's figures divided by A's."""
    from blklab.cli import difference

    found = blklab.difference(numbers(first), numbers(second), store=store, listener=Terminal())
    if as_json:
        console.print_json(plain(found))
    else:
        difference.show(found)


@app.command("export")
def export(
    which: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Which.", autocompletion=complete.kept)
    ],
    output_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="json: everything, for import elsewhere; csv, parquet: a row for each run. "
            "[default: by the name of --out, else json]",
            autocompletion=complete.export_format,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The file to write. [default: standard output]")
    ] = None,
    store: StoreName = None,
) -> None:
    """Export comparisons with all their runs."""
    chosen = _format(output_format, out)
    if out is not None:
        check_files(out)
    elif chosen == "parquet":
        raise InputError("--format parquet: not for a terminal or a pipe; name a file with --out")
    wanted = [number for text in which for number in numbers(text)]
    content = blklab.export(wanted, chosen, out=out, store=store, listener=Terminal())
    if out is None:
        streams.write_bytes(content)


def _format(form: str | None, out: Path | None) -> ExportFormat:
    if form is not None and form not in EXPORT_FORMATS:
        raise InputError(f"--format: no '{form}'{nearest(form, EXPORT_FORMATS)}")
    ending = out.suffix.removeprefix(".").lower() if out else ""
    found = form or (ending if ending in EXPORT_FORMATS else "json")
    return cast("ExportFormat", found)


@app.command("import")
def imported(
    file: Annotated[Path, typer.Argument(help="A JSON file of 'blklab results export'.")],
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    store: StoreName = None,
) -> None:
    """Import another machine's export, completely or not at all."""
    found = blklab.import_results(file, store=store, listener=Terminal())
    if as_json:
        console.print_json({"imported": found.new, "there_already": found.there_already})
        return
    if found.new:
        print(f"imported as {', '.join(map(str, found.new))}")
    if found.there_already:
        print(f"already there: {', '.join(map(str, found.there_already))}")
    if not found.new and not found.there_already:
        print("the export is empty")


@app.command("remove")
def remove(
    which: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Which.", autocompletion=complete.kept)
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    store: StoreName = None,
) -> None:
    """Remove comparisons with all their runs; it cannot be undone."""
    wanted = [number for text in which for number in numbers(text)]
    removed = blklab.remove_results(wanted, store=store, listener=Terminal())
    if as_json:
        console.print_json({"removed": removed})
    else:
        print(f"removed: {', '.join(map(str, removed))}")


def report(
    results: Annotated[
        str,
        typer.Argument(
            help="The number of a comparison, see: blklab results; results.json, or its "
            "directory; the directory of a study.",
            autocompletion=complete.kept,
        ),
    ],
    objective: Annotated[
        str | None,
        typer.Option(
            help="throughput, latency or both; a study has its own. [default: the comparison's "
            "own; both, for a directory]",
            autocompletion=complete.objective,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The page to write (for a study the directory); default: beside it, for a number "
            "reports/NUMBER/report.html."
        ),
    ] = None,
    store: StoreName = None,
) -> None:
    """Write the report again from stored results, without running anything."""
    page = blklab.write_report(
        results,
        objective=cast("Objective | None", objective),
        out=out,
        store=store,
        listener=Terminal(),
    )
    print(f"Report: {page}")
