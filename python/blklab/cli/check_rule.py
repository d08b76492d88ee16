"""``blklab check-rule``: what a udev rule that sets schedulers changes, for better or worse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import blklab
from blklab.api import check_rule as api
from blklab.base.limits import JOBS_DEFAULT, JOBS_MAX, REPEATS_MAX
from blklab.cli import complete, console
from blklab.cli.listening import Terminal
from blklab.cli.options import HostValues
from blklab.domain import defaults, specs
from blklab.experiment.words import factor, interval_text

if TYPE_CHECKING:
    from rich.console import Console

    from blklab import CheckedRule

_NOT_GOOD = 1


def check_rule(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of udev rules.")],
    disk: Annotated[
        list[str] | None,
        typer.Option(
            help="Disk model; repeatable. [default: all that stand for a real disk]",
            autocompletion=complete.disk,
        ),
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            help="Workload, job file or recording; repeatable. "
            f"[default: {', '.join(defaults.WORKLOADS)}]",
            autocompletion=complete.workload,
        ),
    ] = None,
    objective: Annotated[
        str,
        typer.Option(
            help="What counts: throughput, latency or both.", autocompletion=complete.objective
        ),
    ] = "both",
    repeats: Annotated[
        int, typer.Option(min=2, max=REPEATS_MAX, help="Repeats, each with a drawn disk.")
    ] = api.REPEATS,
    seed: Annotated[int, typer.Option(min=0, max=2**32, help="Seed of the first repeat.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Directory for a report of each disk. [default: none]")
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, max=JOBS_MAX, help="Maximum parallel runs; default: one per CPU.")
    ] = JOBS_DEFAULT,
    host: HostValues = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Say what a udev rule that sets schedulers changes, and for which disks and loads it is worse.

    Exits with 1 if it makes anything worse than the kernel's own choice, or if udev ignores a line.
    """
    from blklab.api.compare import checked_objective

    found = blklab.check_rule(
        file,
        disks=disk or (),
        workloads=workload or (),
        objective=checked_objective(objective),
        repeats=repeats,
        seed=seed,
        host=specs.host(host or ()),
        out=out,
        max_parallel=jobs,
        listener=Terminal(),
    )
    if as_json:
        console.print_json(found.to_json())
    else:
        _print(found, objective)
    if not found.is_good:
        raise typer.Exit(_NOT_GOOD)


def _print(found: CheckedRule, objective: str) -> None:
    from rich.text import Text

    out = console.console()
    better = sum(row.change == "better" for row in found.rows)
    told = f"{better} of {len(found.rows)} loads get better, {len(found.worse)} worse"
    changed = sum(one.before != one.after for one in found.disks)
    out.print(
        Text(
            f"{found.file} changes {changed} of {len(found.disks)} disks"
            + (f"; {told} ({objective})." if found.rows else "."),
            style="bold",
        )
    )
    _print_disks(found, out)
    _print_rows(found, out)
    for line in found.wrong:
        console.print_note(f"udev ignores {line}")
    for one in found.disks:
        for setting in one.not_simulated:
            console.print_note(f"{one.disk}: not simulated: {setting}")
        for reason in one.unknown:
            console.print_note(f"{one.disk}: not known: {reason}")


def _print_disks(found: CheckedRule, out: Console) -> None:
    from rich.text import Text

    table = console.table("disk", "kernel's choice", "with the rule", "lines", right=[3])
    for one in found.disks:
        style = "" if one.before != one.after else "dim"
        lines = ", ".join(map(str, one.lines))
        table.add_row(
            *(Text(cell, style=style) for cell in (one.disk, one.before, one.after, lines))
        )
    out.print(table)


def _print_rows(found: CheckedRule, out: Console) -> None:
    from rich.text import Text

    if not found.rows:
        return
    table = console.table("disk", "load", "with the rule", "95 %", right=[2, 3])
    for row in found.rows:
        if row.ratio is None or row.change not in ("better", "worse"):
            continue
        gap = row.ratio
        if row.change == "worse":
            gap = blklab.Interval(1 / gap.estimate, 1 / gap.high, 1 / gap.low)
        style = "green" if row.change == "better" else "bold red"
        table.add_row(
            Text(row.disk),
            Text(row.workload),
            Text(f"{factor(gap.estimate)} {row.change}", style=style),
            Text(interval_text(gap.estimate, gap.low, gap.high)),
        )
    if table.row_count:
        out.print(table)
    same = sum(row.change == "no difference" for row in found.rows)
    unknown = sum(row.change == "not known" for row in found.rows)
    told = [f"no difference: {same}"] if same else []
    told += [f"not known with so few repeats: {unknown} (more --repeats tell)"] if unknown else []
    if told:
        out.print(Text(f"Of the other loads {'; '.join(told)}. All: --json"))
