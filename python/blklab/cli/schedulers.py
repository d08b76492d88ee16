"""``blklab schedulers``: what there is, and what can be set."""

from __future__ import annotations

from typing import Annotated

import typer

from blklab.cli import complete, console


def schedulers(
    name: Annotated[
        str | None,
        typer.Argument(help="Show all details of this one.", autocompletion=complete.scheduler),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """List the I/O schedulers; with a name, its tunables."""
    from blklab.base.plain import plain
    from blklab.domain import core, scheduler

    known = {info.name: info for info in core.schedulers()}
    if name is None:
        if as_json:
            console.print_json(list(known.values()))
        else:
            console.print_names([(info.name, info.summary) for info in known.values()])
        return
    checked = scheduler.simulated(name)
    info = known[checked.name]
    if as_json:
        console.print_json(plain(info) | {"settings": checked.settings})
        return
    print(f"{info.name}: {info.summary}\nFollows {info.follows}.")
    own, of_queue = info.tunables, core.environment()["queue"]
    print(f"\nSet with --scheduler {info.name}:{(own or of_queue)[0].name}=VALUE,...\n")
    console.print_tunables(own, checked.settings)
    print("\nOf the queue, under every scheduler:\n")
    console.print_tunables(of_queue, checked.settings)
