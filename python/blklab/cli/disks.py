"""``blklab disks``: what can be modelled, and where each number comes from."""

from __future__ import annotations

from typing import Annotated

import typer


def disks(
    name: Annotated[str | None, typer.Argument(help="Tell everything about this one.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """List the disk models; with a name, all parameters with their sources."""
    from blklab import specs
    from blklab.cli import console
    from blklab.disks import DISKS
    from blklab.rigs import Disk, sim

    if name is None:
        known = [sim.describe_disk(Disk(DISKS.read(path))) for path in DISKS.paths().values()]
        if as_json:
            console.print_json(known)
        else:
            console.print_names([(disk["name"], disk["summary"]) for disk in known])
        return
    model = specs.disk(name)
    disk = sim.describe_disk(model)
    if as_json:
        console.print_json(disk)
        return
    print(f"{disk['name']}: {disk['summary']}")
    print(f"{disk['kind']}, {disk['transport']}; {model.file.path}\n")
    out = console.console()
    parameters = console.table("parameter", "value", "unit", "meaning and source", right=[1])
    for row in disk["parameters"]:
        source = f"{row['help']} [{row['source']}]" if row["source"] else row["help"]
        parameters.add_row(row["key"], str(row["value"]), row["unit"], source)
    out.print(parameters)
