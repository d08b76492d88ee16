"""``blklab disks``: what can be modelled, and where each number comes from."""

from __future__ import annotations

from typing import Annotated

import typer

from blklab.base.catalogue import Entry
from blklab.cli import complete, console
from blklab.disks import DISKS
from blklab.domain.experiment import Disk
from blklab.errors import InputError


def disks(
    name: Annotated[
        str | None,
        typer.Argument(help="Show all details of this one.", autocompletion=complete.disk),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    as_file: Annotated[
        bool, typer.Option("--file", help="Print its file, to write one of your own.")
    ] = False,
) -> None:
    """List the disk models; with a name, all parameters with their sources."""
    from blklab.domain import core, specs

    if name is None:
        if as_file:
            raise InputError("--file: of which disk? expected a name")
        known = {key: core.disk_model(Disk(DISKS.find(key))) for key in DISKS.names()}
        if as_json:
            console.print_json(known)
        else:
            console.print_names(
                [(key, f"{disk.name}: {disk.summary}") for key, disk in known.items()]
            )
        return
    model = specs.disk(name)
    if as_file:
        print(model.file.text, end="")
        return
    disk = core.disk_model(model)
    if as_json:
        console.print_json(disk)
        return
    print(f"{model.label}: {disk.name}\n{disk.summary}\n{_place(model.file)}\n")
    console.print_terms(
        (
            f"{row.key} = {row.value} {row.unit}".rstrip(),
            f"{row.help} [{row.source}]" if row.source else row.help,
        )
        for row in disk.parameters
    )


def _place(file: Entry) -> str:
    if file.in_core:
        return f"Ships with blklab. Its file: blklab disks {file.name} --file"
    return str(file.path)
