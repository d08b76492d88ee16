"""``blklab devices``: this machine's block devices, and who decides their schedulers."""

from __future__ import annotations

from typing import Annotated

import typer

from blklab.cli import complete, console, device_text


def devices(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DEVICE",
            help="Show all details of these: sda, /dev/sda, /dev/disk/by-id/...; of a "
            "directory: the disks below it.",
            autocompletion=complete.device,
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="List partitions and empty devices too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Show this machine's disks: schedulers, settings, contents, and what sets them."""
    from blklab.api.machine import devices as described

    found = described(names or ())
    if as_json:
        console.print_json(found.to_json())
        return
    if names:
        print(
            "\n\n".join("\n".join(device_text.full(one, found.partitions)) for one in found.devices)
        )
    else:
        device_text.print_table(found.devices, every=every)
    console.print_notes(device_text.unreadable(found.unreadable_rules))
