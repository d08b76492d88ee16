"""``blklab bisect``: the first kernel or patch that issues other requests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import blklab
from blklab.base.plain import plain
from blklab.base.text import shown
from blklab.cli import complete, console
from blklab.cli.differences import print_difference
from blklab.cli.listening import Terminal
from blklab.cli.options import DiskName, HostValues
from blklab.domain import specs

if TYPE_CHECKING:
    from blklab import Bisected


def bisect(
    job: Annotated[
        str,
        typer.Argument(
            help="A fio job file, a recording, or a workload's name.",
            autocompletion=complete.workload,
        ),
    ],
    disk: DiskName,
    good: Annotated[
        str,
        typer.Option(
            help="The first kernel, of 'blklab kernel list'; with --patch a source: a version, a "
            "tarball or a directory.",
            autocompletion=complete.kernel,
        ),
    ],
    bad: Annotated[
        str | None, typer.Option(help="The last kernel.", autocompletion=complete.kernel)
    ] = None,
    through: Annotated[
        list[str] | None,
        typer.Option(
            help="A kernel between them; repeatable, in order. [default: all built kernels "
            "without changes of versions between them]",
            autocompletion=complete.kernel,
        ),
    ] = None,
    patch: Annotated[
        list[Path] | None,
        typer.Option(help="A patch of a series on top of --good; repeatable, in order."),
    ] = None,
    scheduler: Annotated[
        str, typer.Option(help="name[:tunable=value,...].", autocompletion=complete.scheduler)
    ] = "mq-deadline",
    times: Annotated[
        bool, typer.Option("--times", help="A request at another time is another one, too.")
    ] = False,
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Compare up to there: 2s. [default: the run's end]"),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="The same seed gives the same result.")
    ] = 1,
    host: HostValues = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Find the first kernel, or the first patch of a series, that issues other requests."""
    found = blklab.bisect(
        job,
        disk=disk,
        good=good,
        bad=bad,
        through=through or (),
        patches=patch or (),
        scheduler=scheduler,
        times=times,
        seed=seed,
        until=until,
        host=specs.host(host or ()),
        listener=Terminal(),
    )
    if as_json:
        console.print_json(plain(found) | {"answer": found.sentence()})
    else:
        _print(found)


def _print(found: Bisected) -> None:
    print(console.folded(shown(found.sentence()), "", ""))
    ran = [label for label in found.labels if label in found.same]
    told = ", ".join(f"{label}: {'same' if found.same[label] else 'other'}" for label in ran)
    print(console.folded(shown(f"runs: {told}"), "", "  "))
    if found.difference is not None:
        print()
        print_difference(found.difference, shown(found.last_same), shown(found.first or ""))
    if found.left_out:
        console.print_notes([f"{found.left_out:,} later requests were not compared"])
