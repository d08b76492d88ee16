"""``blklab bisect``: the first kernel, patch or commit that issues other requests."""

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
            "tarball or a directory; with --git a commit.",
            autocompletion=complete.kernel,
        ),
    ],
    bad: Annotated[
        str | None,
        typer.Option(help="The last kernel, or commit.", autocompletion=complete.kernel),
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
    git: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            help="A git repository of Linux, which is only read: searches the commits between "
            "--good and --bad, and builds those that it needs.",
        ),
    ] = None,
    path: Annotated[
        list[str] | None,
        typer.Option(
            help="With --git only commits that change this file or directory; repeatable.",
        ),
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
    """Find the first kernel, patch of a series, or commit that issues other requests."""
    found = blklab.bisect(
        job,
        disk=disk,
        good=good,
        bad=bad,
        through=through or (),
        patches=patch or (),
        git=git,
        paths=path or (),
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
        _print(found, subjects=git is not None)


def _print(found: Bisected, *, subjects: bool) -> None:
    """With `subjects` labels are commits with theirs, which fit into no column."""
    print(console.folded(shown(found.sentence()), "", ""))
    place = {label: number for number, label in enumerate(found.labels)}
    # Commits beyond the answer are no part of the way to it, and stand behind.
    ran = sorted(found.same, key=lambda label: place.get(label, len(place)))
    told = ", ".join(f"{label}: {'same' if found.same[label] else 'other'}" for label in ran)
    print(console.folded(shown(f"runs: {told}"), "", "  "))
    if found.difference is not None and found.first is not None:
        print()
        sides = [
            label.split()[0] if subjects else label for label in (found.last_same, found.first)
        ]
        print_difference(found.difference, *map(shown, sides))
    notes = [f"could not be built: {label}" for label in found.unusable]
    if found.left_out:
        notes.append(f"{found.left_out:,} later requests were not compared")
    console.print_notes(notes)
