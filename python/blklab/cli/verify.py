"""``blklab verify``: does the simulator agree with the real kernel?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import blklab
from blklab.base.limits import JOBS_DEFAULT, JOBS_MAX
from blklab.base.units import rate_text
from blklab.cli import complete, console
from blklab.cli.listening import Terminal


def verify(
    load: Annotated[
        list[str] | None, typer.Option(help="Only these workloads; repeatable. [default: all]")
    ] = None,
    scheduler: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these schedulers; repeatable. [default: those of the workload]",
            autocompletion=complete.scheduler,
        ),
    ] = None,
    disk: Annotated[
        list[str] | None,
        typer.Option(
            help="These disk models instead of the matrix's own; repeatable.",
            autocompletion=complete.disk,
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few workloads: some seconds.")] = False,
    kernel: Annotated[
        str | None,
        typer.Option(help="A kernel of `blklab kernel list`. [default: the last without changes]"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of all runs.")] = 1,
    jobs: Annotated[
        int, typer.Option(min=1, max=JOBS_MAX, help="Maximum parallel cells; default: one per CPU.")
    ] = JOBS_DEFAULT,
    out: Annotated[
        Path | None, typer.Option(help="Also write the cells to this file, as JSON.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON instead of the table.")
    ] = False,
) -> None:
    """Run the same workloads on the simulator and in a real kernel, and compare them.

    Ends with exit code 1 if the simulator misses its bar.
    """
    found = blklab.verify(
        workloads=load or (),
        schedulers=scheduler or (),
        disks=disk or (),
        quick=quick,
        kernel=kernel,
        seed=seed,
        out=out,
        max_parallel=jobs,
        listener=Terminal(),
    )
    if as_json:
        console.print_json(found.exported())
    else:
        _print(found)
    if not found.verdict.good:
        raise typer.Exit(1)


def _print(found: blklab.Agreement) -> None:
    cells = found.cells
    terminal = console.console()
    for place in dict.fromkeys(cell.place for cell in cells):
        table = console.table(
            *("workload", "scheduler", "kernel", "off", "p50", "p99", "order", ""),
            right=range(2, 7),
        )
        for cell in cells:
            if cell.place == place:
                table.add_row(
                    cell.load,
                    cell.scheduler,
                    rate_text(cell.kernel.bytes_per_s),
                    _percent(cell.off("bytes_per_s")),
                    _percent(cell.off("p50_ns")),
                    _percent(cell.off("p99_ns")),
                    "" if cell.order is None else f"{cell.order:.0%}",
                    "off" if cell in found.verdict.missed else "",
                )
        of_disk = next(cell.disk for cell in cells if cell.place == place)
        terminal.print(f"\n{place}: {of_disk}; how far the simulator is off:")
        terminal.print(table)
    terminal.print(found.text)


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"
