"""``blklab disks``: the disk models, and the source of each number.

A disk's name may take the place of a command's: ``blklab disks NAME`` is ``blklab disks show
NAME``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

import typer
from typer.core import TyperGroup

import blklab
from blklab.base.files import write_whole
from blklab.cli import catalogue, complete
from blklab.cli.listening import Terminal
from blklab.cli.options import DISK_HELP
from blklab.errors import InputError

_SHOW = "show"


class Named(TyperGroup):
    """Arguments without a command's name go to `show`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See `TyperGroup`."""
        words = [word for word in args if not word.startswith("-")]
        if "--help" not in args and not (words and words[0] in self.commands):
            args = [_SHOW, *args]
        found: list[str] = super().parse_args(ctx, args)
        return found

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The commands, and the disks."""
        from click.shell_completion import CompletionItem

        names = [CompletionItem(name) for name in complete.disk(incomplete)]
        return [*super().shell_complete(ctx, incomplete), *names]


app = typer.Typer(
    name="disks",
    cls=Named,
    help="List the disk models, or all details of one; make one from figures of io.cost.",
    rich_markup_mode=None,
    add_completion=False,
)


app.command(_SHOW)(catalogue.disks)


class _Bench(TypedDict):
    """Arguments of `blklab.io_cost` and `io_cost_qos`."""

    depth: int
    jobs: int
    seconds: float
    seed: int


@app.command("iocost")
def iocost(
    disk: Annotated[str, typer.Argument(help=DISK_HELP, autocompletion=complete.disk)],
    qos: Annotated[
        bool, typer.Option("--qos", help="Measure latencies too, and print io.cost.qos.")
    ] = False,
    device: Annotated[
        str | None,
        typer.Option(metavar="MAJ:MIN", help="The device that the lines are for."),
    ] = None,
    depth: Annotated[
        int, typer.Option(min=1, max=4096, help="In flight in each job, of 4 KiB operations.")
    ] = 256,
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Jobs of 4 KiB operations.")] = 8,
    seconds: Annotated[
        float, typer.Option(min=0.001, max=1e4, help="Virtual time of each run.")
    ] = 2.0,
    seed: Annotated[int, typer.Option(help="Of the simulator.")] = 1,
) -> None:
    """Measure io.cost.model of a disk model, as the kernel's iocost_coef_gen.py does."""
    from blklab.domain.iocost import checked_device

    place = None if device is None else checked_device(device)
    ways: _Bench = {"depth": depth, "jobs": jobs, "seconds": seconds, "seed": seed}
    figures = blklab.io_cost(disk, **ways)
    print(figures.model_line(place))
    if qos:
        print(blklab.io_cost_qos(disk, figures, **ways).qos_line(place))


@app.command("from-iocost")
def from_iocost(
    figures: Annotated[
        str,
        typer.Argument(
            help="A line of io.cost.model or of systemd's hwdb, or a file with one, or with a "
            "table in CSV; - reads it from stdin.",
        ),
    ],
    model: Annotated[
        str | None, typer.Option(help="The row of a table: its column 'model'.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the disk.")] = None,
    capacity: Annotated[
        int | None,
        typer.Option(metavar="GB", min=1, max=1_000_000, help="Size in 10^9 bytes."),
    ] = None,
    transport: Annotated[
        str | None, typer.Option(metavar="sata|nvme", help="How the host reaches it.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the file here, not to stdout; must not exist.")
    ] = None,
) -> None:
    """Make a disk file from figures of io.cost: a first guess of any solid-state disk."""
    if out is not None and out.exists():
        raise InputError(f"{out}: exists already")
    made = blklab.disk_from_io_cost(
        _figures(figures),
        model=model,
        name=name,
        capacity_bytes=None if capacity is None else capacity * 10**9,
        transport=transport,
        listener=Terminal(),
    )
    if out is None:
        print(made.text, end="")
    else:
        write_whole(out, made.text)
        print(f"{out}; to use it: blklab compare --disk {out}")


def _figures(words: str) -> str | Path:
    """The text itself, or the file that it names."""
    if words == "-":
        return sys.stdin.read(1 << 20)
    return words if "=" in words or "\n" in words else Path(words)
