"""``blklab fleet``: one question over many machines' disks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import blklab
from blklab.base.limits import JOBS_DEFAULT, JOBS_MAX, REPEATS_MAX
from blklab.base.text import shown
from blklab.cli import complete, console, rights
from blklab.cli.listening import Terminal
from blklab.cli.options import NoKeep, StoreName
from blklab.errors import InputError
from blklab.experiment.words import factor, interval_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from blklab import CollectedHost, FleetGroup, HostChange, Interval, JudgedFleet

LOSES = 1
"""The exit code if a rule makes something worse."""
INCOMPLETE = 3
"""The exit code if a host or a recording is missing."""
_PLACES = 4
"""Disks of a group that are named."""


def fleet(
    hosts: Annotated[
        Path, typer.Argument(metavar="HOSTS.TOML", help="The file that lists the machines.")
    ],
    collect: Annotated[
        Path | None,
        typer.Option(
            "--collect",
            metavar="DIR",
            help="Only collect, into this directory; --from judges it. [default: collect into a "
            "directory of the cache, and judge]",
        ),
    ] = None,
    from_: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="DIR", help="Only judge what was collected there; needs no network."
        ),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the udev rules there. [default: print them]"),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            help="What counts: throughput, latency or both. [default: the file's]",
            autocompletion=complete.objective,
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=REPEATS_MAX,
            help="Repeats, each with a drawn disk. [default: the file's, else 10]",
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, max=JOBS_MAX, help="Maximum parallel runs; default: one per CPU.")
    ] = JOBS_DEFAULT,
    store: StoreName = None,
    no_keep: NoKeep = False,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Say which scheduler suits the disks of many machines, with a udev rule for each group.

    Machines are only read, by ssh. Exits with 1 if a rule would make a disk slower under its load,
    with 3 if a host or a recording is missing; all others are judged.
    """
    if collect is not None and from_ is not None:
        raise InputError("--from: judges what --collect has collected; use one of them at a time")
    if collect is not None and rules is not None:
        raise InputError("--rules: is written by judging, not with --collect")
    if from_ is None:
        place = blklab.fleet_directory(hosts) if collect is None else collect
        collected = blklab.collect_fleet(hosts, place, ended=_tell)
    else:
        place, collected = from_, []
        paths = [path for path in (from_, rules) if path is not None]
        rights.give_up(paths, store)
    problems = [f"{one.host}: {problem}" for one in collected for problem in one.problems]
    if collect is not None:
        _print_collected(collected, as_json=as_json)
    else:
        unreached = [one.host for one in collected if not one.reached]
        found = blklab.judge_fleet(
            hosts,
            place,
            unreached=unreached,
            objective=objective,
            repeats=repeats,
            keep=not no_keep,
            store=store,
            max_parallel=jobs,
            listener=Terminal(),
        )
        if rules is not None:
            blklab.write_rules(found, rules)
        if as_json:
            console.print_json(found.to_json() | {"problems": problems})
        else:
            _print(found, rules, len(unreached))
        problems += (*found.missing, *found.missing_recordings)
    if problems:
        raise typer.Exit(INCOMPLETE)
    if collect is None and (found.losers or found.beyond):
        raise typer.Exit(LOSES)


def _tell(one: CollectedHost) -> None:
    """Each problem when it is known."""
    for problem in one.problems:
        console.print_note(f"{one.host}: {problem}")


def _print_collected(collected: Sequence[CollectedHost], *, as_json: bool) -> None:
    if as_json:
        console.print_json({"hosts": [one.to_json() for one in collected]})
        return
    reached = [one for one in collected if one.reached]
    copied = sum(len(one.copied) for one in collected)
    same = sum(len(one.unchanged) for one in collected)
    text = f"{len(reached)} of {len(collected)} hosts have answered"
    print(f"{text}; recordings copied: {copied}, unchanged: {same}")


def _print(found: JudgedFleet, rules: Path | None, unreached: int) -> None:
    from rich.text import Text

    out = console.console()
    count = sum(len(one.disks) for one in found.groups)
    answered = found.hosts - len(found.missing) - unreached
    disks = "1 disk" if count == 1 else f"{count} disks"
    groups = "1 group" if len(found.groups) == 1 else f"{len(found.groups)} groups"
    text = f"{answered} of {found.hosts} hosts, {disks} in {groups}"
    out.print(Text(text, style="bold"))
    days = sorted({when[: len("2026-11-26")] for when in found.collected.values()})
    if days and days != [""]:
        out.print(Text(f"collected on {days[0]}" + (f" to {days[-1]}" if days[1:] else "")))
    for one in found.groups:
        out.print()
        _print_group(one, out)
    _print_changes(found, out)
    if rules is not None and found.rules:
        out.print(f"\nThe rules are in {shown(str(rules))}; nothing was installed.", markup=False)
    elif found.rules:
        out.print("\nRules for udev (nothing was installed):\n")
        print(found.rules, end="")
    else:
        out.print("\nNo group needs a rule.")
    for disk in found.beyond:
        console.print_note(f"the rules would change {disk}, which is in none of their groups")
    console.print_notes([*found.missing, *found.missing_recordings, *found.notes])


def _print_group(one: FleetGroup, out: Console) -> None:
    from rich.text import Text

    places = ", ".join(one.disks[:_PLACES])
    more = f" and {len(one.disks) - _PLACES} more" if len(one.disks) > _PLACES else ""
    model = one.model or "no model"
    out.print(Text(f"{one.number}  {model} ({one.kind}) under {one.load}", style="bold"))
    gain = f", {_gain(one.gain)}" if one.gain is not None else ""
    style = "bold green" if one.choice else ""
    _folded(f"{one.reason}{gain}", out, style)
    _folded(f"disks: {places}{more}", out)
    loads = ", ".join(one.loads[:_PLACES])
    more = f" and {len(one.loads) - _PLACES} more" if len(one.loads) > _PLACES else ""
    _folded(f"loads: {loads}{more}", out)
    _folded(f"simulated as {one.disk_model}: {one.model_note}", out)
    for way, told in one.ways.items():
        _folded(f"{way}: {told}", out, "dim")
    for note in one.notes:
        _folded(f"note: {note}", out)


def _folded(text: str, out: Console, style: str = "") -> None:
    from rich.text import Text

    out.print(Text(console.folded(shown(text), "   ", "     "), style=style))


def _gain(gain: Interval) -> str:
    return f"{factor(gain.estimate)} better ({interval_text(gain.estimate, gain.low, gain.high)})"


def _print_changes(found: JudgedFleet, out: Console) -> None:
    from rich.text import Text

    out.print()
    by_rule = [one for one in found.changes if one.by_rule]
    losers = found.losers
    if losers:
        count = len({(one.host, one.disk) for one in losers})
        text = f"{count} {'disk' if count == 1 else 'disks'} would lose by the rules:"
        out.print(Text(text, style="bold red"))
    elif by_rule:
        out.print(Text("No disk would lose by the rules."))
    else:
        out.print(Text("No disk would change."))
    if by_rule:
        table = console.table("disk", "load", "now", "then", "", "95 %", right=[4])
        for one in by_rule:
            style = {"worse": "bold red", "better": "green"}.get(one.change, "")
            table.add_row(
                Text(f"{one.host}:{one.disk}"),
                Text(one.load),
                Text(one.present),
                Text(one.target),
                Text(_change(one), style=style),
                Text(_ends(one)),
            )
        out.print(table)
    others = [one for one in found.changes if not one.by_rule and one.present != one.target]
    for one in others:
        text = f"{one.host}:{one.disk} has {one.present}, not {one.target}, under {one.load}"
        word = _change(one)
        _folded(f"{text}: {one.target} would be {word} {_ends(one)}".rstrip(), out)


def _change(one: HostChange) -> str:
    if one.ratio is None or one.change in ("no difference", "not known"):
        return one.change
    ratio = one.ratio.estimate if one.change == "better" else 1 / one.ratio.estimate
    return f"{factor(ratio)} {one.change}"


def _ends(one: HostChange) -> str:
    gap = one.ratio
    if gap is None or one.change not in ("better", "worse"):
        return ""
    if one.change == "worse":
        low = 1 / gap.high
        high = 1 / gap.low if gap.low else float("inf")
        return interval_text(1 / gap.estimate, low, high)
    return interval_text(gap.estimate, gap.low, gap.high)
