"""``blklab results export``: comparisons for other machines and other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from blklab.base.files import check_files
from blklab.cli import complete, streams
from blklab.cli.listening import Terminal
from blklab.cli.resuming import StoreName
from blklab.errors import InputError, nearest

if TYPE_CHECKING:
    from blklab.api.results import ExportFormat


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
    from blklab.api import results
    from blklab.store import ids

    chosen = _format(output_format, out)
    if out is not None:
        check_files(out)
    elif chosen == "parquet":
        raise InputError("--format parquet: not for a terminal or a pipe; name a file with --out")
    wanted = [number for text in numbers for number in ids.numbers(text)]
    content = results.export(wanted, chosen, out=out, store=store, listener=Terminal())
    if out is None:
        streams.write_bytes(content)


def _format(told: str | None, out: Path | None) -> ExportFormat:
    if told is not None and told not in complete.EXPORT_FORMATS:
        raise InputError(f"--format: no '{told}'{nearest(told, complete.EXPORT_FORMATS)}")
    ending = out.suffix.removeprefix(".").lower() if out else ""
    found = told or (ending if ending in complete.EXPORT_FORMATS else "json")
    return cast("ExportFormat", found)
