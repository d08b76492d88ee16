"""``blklab studies``: what there is to run, and what each asks."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from blklab.cli import complete
from blklab.errors import InputError
from blklab.studies import STUDIES


def studies(
    name: Annotated[
        str | None,
        typer.Argument(help="Show all details of this one.", autocompletion=complete.study),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """List the studies; with a name or a .toml file, its parts and published statements."""
    from blklab import study
    from blklab.cli import console, judgements

    if name is not None:
        chosen = study.find(name)
        if as_json:
            console.print_json(asdict(chosen) | {"file": str(chosen.file.path)})
        else:
            judgements.describe(chosen)
        return
    rows = []
    for label, path in STUDIES.paths().items():
        try:
            rows.append((label, study.parse(STUDIES.read(path)).title))
        except InputError as error:
            # One's own broken file must not hide the others.
            rows.append((label, f"cannot run: {error}"))
    if as_json:
        console.print_json([{"name": label, "title": title} for label, title in rows])
    else:
        console.print_names(rows)
