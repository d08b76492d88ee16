"""``blklab disks``: what can be modelled, and where each number comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from blklab.base.catalogue import Entry
from blklab.base.units import number_text
from blklab.cli import complete, console
from blklab.disks import DISKS
from blklab.domain.experiment import Disk
from blklab.domain.validation import not_validated
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
        known = {key: core.describe_disk(Disk(DISKS.find(key))) for key in DISKS.names()}
        if as_json:
            console.print_json(known)
        else:
            console.print_names(
                [
                    (key, "; ".join(filter(None, (_line(disk), not_validated(disk)))))
                    for key, disk in known.items()
                ]
            )
        return
    model = specs.disk(name)
    if as_file:
        print(model.file.text, end="")
        return
    disk = core.describe_disk(model)
    if as_json:
        console.print_json(disk)
        return
    print(f"{model.label}: {disk['name']}\n{disk['summary']}\n{_place(model.file)}")
    print(f"{disk['validation']['text']}\n")
    console.print_terms(
        (f"{row['key']} = {row['value']} {row['unit']}".rstrip(), _about(row))
        for row in disk["parameters"]
    )
    if disk["published"]:
        print("\nPublished figures: calibrated (parameters were chosen from it) or checked\n")
        console.print_terms(
            (
                f"{row['figure']} = {row['value']:g} +-{row['tolerance_percent']:g} %",
                f"{row['role']}{'; not met: ' + row['not_met'] if row['not_met'] else ''} "
                f"[{row['source']}]",
            )
            for row in disk["published"]
        )


def _line(disk: Mapping[str, Any]) -> str:
    return f"{disk['name']}: {disk['summary']}"


def _about(row: Mapping[str, Any]) -> str:
    """Meaning, range and source of a parameter."""
    ends = row["range"]
    told = row["help"] if ends is None else f"{row['help']}; {' to '.join(map(number_text, ends))}"
    return f"{told} [{row['source']}]" if row["source"] else told


def _place(file: Entry) -> str:
    if file.in_core:
        return f"Ships with blklab. Its file: blklab disks {file.name} --file"
    return str(file.path)
