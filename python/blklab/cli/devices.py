"""``blklab devices``: this machine's block devices, and who decides their schedulers."""

from __future__ import annotations

from typing import Annotated

import typer

from blklab.cli import complete


def devices(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DEVICE",
            help="Tell everything about these: sda, /dev/sda, /dev/disk/by-id/...",
            autocompletion=complete.device,
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="List partitions and empty devices too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Show this machine's disks: schedulers, settings, what is on them, who decides."""
    from blklab.cli import console, device_text
    from blklab.devices import device, modules, queue
    from blklab.devices.roots import HERE
    from blklab.udev import judge

    if names:
        around = device.Surroundings.read(HERE)
        found = [device.describe(queue.device_name(name, HERE), around) for name in names]
    else:
        found = device.devices(HERE)
    unreadable = judge.broken(HERE)
    if as_json:
        console.print_json(
            {
                "format": 1,
                "kernel": modules.release(HERE),
                "kernel_config": modules.configured(HERE),
                "blocked_modules": modules.blocked(modules.loadable(HERE).values(), HERE),
                "unreadable_rules": [
                    {"file": str(line.file), "line": line.number, "error": line.error}
                    for line in unreadable
                ],
                "devices": [one.to_json() for one in found],
            }
        )
        return
    if names:
        parts = {name: device.describe(name, around) for one in found for name in one.partitions}
        print("\n\n".join("\n".join(device_text.full(one, parts)) for one in found))
    else:
        device_text.print_table(found, every=every)
    console.print_notes(device_text.unreadable(unreadable))
