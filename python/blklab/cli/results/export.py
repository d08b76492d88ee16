"""``blklab results export``: comparisons for other machines and other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blklab.base.files import check_files, write_together
from blklab.cli import complete, console, streams
from blklab.cli.results.opening import opened
from blklab.cli.resuming import StoreName
from blklab.errors import InputError, nearest


def export(
    numbers: Annotated[
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
    from blklab.store import exchange, ids, read, tables

    chosen = _format(output_format, out)
    if out is not None:
        check_files(out)
    elif chosen == "parquet":
        raise InputError("--format parquet: not for a terminal or a pipe; name a file with --out")
    kept = opened(store)
    wanted = dict.fromkeys(number for text in numbers for number in ids.numbers(text))
    several = [
        read.comparison(kept, number, raw=chosen == "json", tell=console.print_note)
        for number in wanted
    ]
    content = {
        "json": lambda: exchange.to_bytes(several),
        "csv": lambda: tables.csv_text(several).encode(),
        "parquet": lambda: tables.parquet(several),
    }[chosen]()
    if out is None:
        streams.write_bytes(content)
    else:
        write_together({out: content})


def _format(told: str | None, out: Path | None) -> str:
    if told is not None and told not in complete.EXPORT_FORMATS:
        raise InputError(f"--format: no '{told}'{nearest(told, complete.EXPORT_FORMATS)}")
    ending = out.suffix.removeprefix(".").lower() if out else ""
    return told or (ending if ending in complete.EXPORT_FORMATS else "json")
