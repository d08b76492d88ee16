"""``blklab host``: the modelled computer around the disk, and what can be set."""

from __future__ import annotations

from typing import Annotated

import typer

from blklab.cli import console


def host(
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Show the modelled host: CPUs, the CPU cost of I/O, memory and writeback."""
    from blklab.domain import core, specs

    tables = {name: rows for name, rows in core.environment().items() if name != "queue"}
    if as_json:
        console.print_json(tables)
        return
    values = core.check_host({})
    guest = ",".join(f"{name}={value}" for name, value in specs.GUEST.items())
    print("Set with --host NAME=VALUE,...")
    print(f"--host guest is what a guest of --rig kernel has: {guest}")
    for name, rows in tables.items():
        print(f"\n{name}\n")
        console.print_tunables(rows, values)
