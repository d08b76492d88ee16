"""``blklab verify``: does the simulator agree with the real kernel?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

import blklab
from blklab.base.limits import JOBS_DEFAULT, JOBS_MAX
from blklab.base.units import rate_text
from blklab.cli import complete, console
from blklab.cli.differences import print_difference
from blklab.cli.listening import Terminal
from blklab.cli.options import HostValues, OnPlace, check_jobs
from blklab.domain import specs
from blklab.domain.defaults import LOCAL
from blklab.errors import InputError, RunError

_FIGURES = {"bytes_per_s": "throughput", "p50_ns": "p50", "p99_ns": "p99"}


def verify(
    context: typer.Context,
    job: Annotated[
        list[str] | None,
        typer.Argument(
            help="Job files, names of workloads or traces. [default: the matrix]",
            autocompletion=complete.workload,
        ),
    ] = None,
    random: Annotated[
        int,
        typer.Option(min=0, help="Draw this many jobs for each disk, by --seed."),
    ] = 0,
    show: Annotated[
        bool, typer.Option("--show", help="With --random: print the job files, and run nothing.")
    ] = False,
    buffered: Annotated[
        bool,
        typer.Option("--buffered", help="With --random: half of the processes use the page cache."),
    ] = False,
    misses: Annotated[
        Path | None,
        typer.Option(
            help="Write the job files that miss the bar or cannot be compared to this directory."
        ),
    ] = None,
    chance: Annotated[
        bool,
        typer.Option(
            "--chance",
            help="Also compare the simulator with itself on a disk that is slower by almost "
            "nothing: shows the effect of chance.",
        ),
    ] = False,
    differences: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Of the N cells that are furthest off, the first request that the simulator does "
            "not issue as the kernel does.",
        ),
    ] = 0,
    load: Annotated[
        list[str] | None,
        typer.Option(help="Only these workloads of the matrix; repeatable. [default: all]"),
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
            help="Only these disks of the matrix, or other models; repeatable.",
            autocompletion=complete.disk,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only a few workloads and disks: takes some seconds.")
    ] = False,
    sample: Annotated[
        int,
        typer.Option(min=0, help="Only this many cells of the matrix, drawn by --seed; 0: all."),
    ] = 0,
    fs: Annotated[
        list[str] | None,
        typer.Option(
            help="Files in this file system, not on the bare disk: ext4, xfs (both also with "
            ":lazytime), btrfs, btrfs:nodatacow or f2fs; repeatable. The matrix has three disks "
            "then.",
            metavar="NAME",
        ),
    ] = None,
    host: HostValues = None,
    kernel: Annotated[
        str | None,
        typer.Option(help="A kernel of `kernel list`. [default: the newest without changes]"),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="Seed of all runs, of --random and --sample.")
    ] = 1,
    jobs: Annotated[
        int, typer.Option(min=1, max=JOBS_MAX, help="Maximum parallel cells; default: one per CPU.")
    ] = JOBS_DEFAULT,
    on: OnPlace = LOCAL,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Also write the cells to this file, as JSON; after Ctrl-C those compared so far."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON instead of the table.")
    ] = False,
) -> None:
    """Run the same workloads on the simulator and in a real kernel, and compare them: those of a
    fixed matrix, your own job files, or jobs drawn at random. The host is that of all other
    commands, or of --host, such as --host guest, on which CPU work takes no time.

    Ends with exit code 1 if the simulator misses its bar, or if a cell cannot be compared because a
    run of it has failed; the other cells are compared all the same.
    """
    if show:
        _show(random, disk or (), seed, buffered)
        return
    check_jobs(context, on)
    found = blklab.verify(
        jobs=job or (),
        random=random,
        misses=misses,
        chance=chance,
        buffered=buffered,
        differences=differences,
        workloads=load or (),
        schedulers=scheduler or (),
        disks=disk or (),
        quick=quick,
        sample=sample,
        host=None if host is None else specs.host(host),
        file_systems=fs or (),
        kernel=kernel,
        seed=seed,
        out=out,
        max_parallel=jobs,
        on=on,
        listener=Terminal(),
    )
    if as_json:
        console.print_json(found.exported())
    elif not found.cells:
        _print_end(found)
    elif found.jobs:
        _print_shares(found)
    else:
        _print(found)
    if found.uncompared:
        count = f"{len(found.uncompared)} of {found.planned} cells"
        raise RunError(f"{count} could not be compared, because a run has failed")
    if not found.verdict.good:
        raise typer.Exit(1)


def _show(random: int, disks: Sequence[str], seed: int, buffered: bool) -> None:
    if not random:
        raise InputError("--show: only works with --random")
    jobs = blklab.drawn_jobs(random, disks=disks, seed=seed, buffered=buffered)
    print("\n".join(jobs.values()), end="")


def _print_shares(found: blklab.Agreement) -> None:
    terminal = console.console()
    terminal.print("Per cent of cells in which the simulator is off by at most 2/5/10 %:")
    table = console.table(
        *("disk", "scheduler", "cells", "throughput", "p50", "p99", "in bar", "chance"),
        right=range(2, 8),
    )
    for row in found.shares:
        within = (
            "/".join(f"{100 * share:.0f}" for share in those) for those in row.within.values()
        )
        chance = "" if row.chance is None else f"{row.chance:.0%}"
        table.add_row(row.place, row.scheduler, str(row.cells), *within, f"{row.met:.0%}", chance)
    terminal.print(table)
    for cell in found.verdict.missed:
        off = (f"{word} {_percent(cell.off(what))}" for what, word in _FIGURES.items())
        terminal.print(f"{cell.load}, {cell.scheduler}, {cell.place}: off by {', '.join(off)}")
    _print_end(found)


def _print_end(found: blklab.Agreement) -> None:
    terminal = console.console()
    for one in found.differences:
        where = f"{one.cell.load}, {one.cell.scheduler}, {one.cell.place}"
        same = one.requests if one.difference is None else one.difference.index
        later = "" if one.difference is None else f", then {one.difference.text}"
        terminal.print(f"\n{where}: {same:,} requests are the same{later}")
        if one.difference is not None:
            print_difference(one.difference, "simulator", "kernel")
        if one.left_out:
            console.print_notes([f"{one.left_out:,} later requests were not compared"])
    for cell in found.uncompared:
        terminal.print(cell.text)
    for name, options in dict.fromkeys((one.file_system, one.mounted) for one in found.layouts):
        terminal.print(f"{name}: files laid out before the run; mounted with {options}")
    terminal.print(found.text)


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
    _print_end(found)


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"
