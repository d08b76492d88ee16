"""``blklab workloads``: the job files that ship with blklab, and the user's own."""

from __future__ import annotations

from typing import Annotated

import typer

from blklab.cli import complete


def workloads(
    name: Annotated[
        str | None,
        typer.Argument(help="Tell everything about this one.", autocompletion=complete.workload),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """List the workloads; with a name or a .fio file, the job file and what it means."""
    from blklab import specs
    from blklab.cli import console
    from blklab.rigs import sim
    from blklab.workloads import WORKLOADS, summary

    if name is None:
        entries = [WORKLOADS.read(path) for path in WORKLOADS.paths().values()]
        rows = [(entry.name, summary(entry.text)) for entry in entries]
        if as_json:
            console.print_json([{"name": n, "summary": text} for n, text in rows])
        else:
            console.print_names(rows)
        return
    entry = specs.workload(name)
    if as_json:
        console.print_json(sim.describe_job(entry, ignore_unsupported=True))
        return
    print(f"# {entry.path}\n{entry.text.rstrip()}")
    for ignored in sim.ignored_options(entry, ignore_unsupported=True):
        print(f"# not simulated: {ignored}")
