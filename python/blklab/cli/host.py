"""``blklab host``: the modelled host, and its costs measured on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import blklab
from blklab.base.files import check_files, write_whole
from blklab.cli import catalogue, console
from blklab.cli.listening import Terminal
from blklab.errors import InputError

if TYPE_CHECKING:
    from blklab import MeasuredHost

app = typer.Typer(
    name="host",
    help="Show the modelled host: CPUs, memory and writeback; measure its costs here.",
    rich_markup_mode=None,
    add_completion=False,
)


@app.callback(invoke_without_command=True)
def group(context: typer.Context, as_json: catalogue.AsJson = False) -> None:
    """Show the modelled host: CPUs, the CPU cost of I/O, memory and writeback; or measure it."""
    if context.invoked_subcommand is None:
        catalogue.host(as_json)
    elif as_json:
        raise InputError("--json: goes behind the command: blklab host measure --json")


@app.command()
def measure(
    out: Annotated[
        Path | None, typer.Option(help="Write the host file here, not to stdout; must not exist.")
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Measure other loads too, compare them with the simulator, and exit with 1 if one "
            "is off by more than 15 % or schedulers have another order.",
        ),
    ] = False,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="null_blk|loop",
            help="The device that is made for it. [default: the first that this kernel has]",
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, max=100, help="How often each load runs.")] = 4,
    first: Annotated[
        bool,
        typer.Option(
            "--first",
            help="Run before all other programs, for a machine that is not idle: raises the "
            "priority of fio and of the kernel's threads that work for it.",
        ),
    ] = False,
    as_json: catalogue.AsJson = False,
) -> None:
    """Measure the CPU costs of I/O on this machine, for --host @FILE (needs root and fio).

    fio reads from a device of the kernel's own that is made for it and removed afterwards. No disk
    is used.
    """
    if out is not None:
        if out.exists():
            raise InputError(f"{out}: exists already")
        check_files(out)
    found = blklab.measure_host(
        device=device, rounds=rounds, check=check, first=first, listener=Terminal()
    )
    if out is not None:
        write_whole(out, found.file)
    if as_json:
        console.print_json(found.to_json())
    elif out is None:
        print(found.file, end="")
    else:
        console.print_note(f"to use it: --host @{out}; the device: --disk {found.disk.label}")
    if check:
        if not as_json:
            _print(found)
        if not found.good:
            raise typer.Exit(1)


def _print(found: MeasuredHost) -> None:
    terminal = console.console()
    heads = ("load", "scheduler", "measured", "simulated", "off", "")
    table = console.table(*heads, right=range(2, 5))
    for row in sorted(found.predictions, key=lambda row: row.load.buffered):
        table.add_row(
            row.load.text,
            row.scheduler,
            f"{row.rate / 1000:.0f}k",
            f"{row.simulated / 1000:.0f}k",
            f"{100 * row.error:+.1f} %",
            ", ".join(["off"] * row.is_off + ["not modelled"] * (not row.load.is_modelled)),
        )
    terminal.print(table)
    for swap in found.swaps:
        terminal.print(swap.text)
    within = len(found.predictions) - len(found.off)
    terminal.print(f"{within} of {len(found.predictions)} rates within 15 %")
    if found.not_modelled:
        terminal.print(found.not_modelled)
