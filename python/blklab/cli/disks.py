"""``blklab disks``: what can be modelled, and where each number comes from."""

from __future__ import annotations

from typing import Annotated

import typer

from blklab.cli import complete, console
from blklab.disks import DISKS
from blklab.domain.experiment import Disk


def disks(
    name: Annotated[
        str | None,
        typer.Argument(help="Show all details of this one.", autocompletion=complete.disk),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """List the disk models; with a name, all parameters with their sources."""
    from blklab.domain import core, specs

    if name is None:
        known = {
            key: core.describe_disk(Disk(DISKS.read(path))) for key, path in DISKS.paths().items()
        }
        if as_json:
            console.print_json(known)
        else:
            console.print_names(
                [(key, f"{disk['name']}: {disk['summary']}") for key, disk in known.items()]
            )
        return
    model = specs.disk(name)
    disk = core.describe_disk(model)
    if as_json:
        console.print_json(disk)
        return
    print(f"{model.label}: {disk['name']}\n{disk['summary']}\n{model.file.path}\n")
    console.print_terms(
        (
            f"{row['key']} = {row['value']} {row['unit']}".rstrip(),
            f"{row['help']} [{row['source']}]" if row["source"] else row["help"],
        )
        for row in disk["parameters"]
    )
