"""``blklab devices``: this machine's block devices, and who decides their schedulers."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blklab.cli import complete, console, device_text
from blklab.host import roots
from blklab.host.devices import queue
from blklab.host.udev import judge
from blklab.rigs.live import target

if TYPE_CHECKING:
    from blklab.host.roots import Roots


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
    from blklab.host.devices import device, modules

    if names:
        around = device.Surroundings.read(roots.HERE)
        meant = dict.fromkeys(name for one in names for name in _meant(one, roots.HERE))
        found = [device.describe(name, around) for name in meant]
    else:
        found = sorted(device.devices(roots.HERE), key=lambda one: _as_counted(one.name))
    unreadable = judge.broken(roots.HERE)
    if as_json:
        console.print_json(
            {
                "format": 1,
                "kernel": modules.release(roots.HERE),
                "kernel_config": modules.configured(roots.HERE),
                "blocked_modules": modules.blocked(
                    modules.loadable(roots.HERE).values(), roots.HERE
                ),
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


def _meant(what: str, roots: Roots) -> Iterable[str]:
    """Names of what the user calls so."""
    if Path(what).is_dir():
        return target.find(what, roots).disks
    return [queue.device_name(what, roots)]


def _as_counted(name: str) -> list[tuple[int, str]]:
    """loop10 after loop9."""
    words: list[str] = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(int(word) if word[0] in string.digits else -1, word) for word in words]
