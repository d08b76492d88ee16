"""``blklab apply``, ``status`` and ``undo``: settings that stick, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, cast

import typer

from blklab.base.text import shown
from blklab.cli import complete, console
from blklab.cli.listening import Terminal
from blklab.cli.resuming import StoreName
from blklab.host import roots
from blklab.host.devices.queue import IOSCHED, same
from blklab.settings import choice, profile, rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from blklab.api.apply import Form, Scope
    from blklab.settings.change import Plan
    from blklab.settings.record import Entry


def apply(
    device: Annotated[
        str | None,
        typer.Argument(
            help="The disk: sda, /dev/disk/by-id/...; with --from, by default the disks it was "
            "measured on.",
            autocompletion=complete.device,
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Argument(
            help="name[:tunable=value,...]: bfq:low_latency=0.", autocompletion=complete.scheduler
        ),
    ] = None,
    result: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="ID|PATH",
            help="Take the recommendation of a comparison: its number, see: blklab results; "
            "results.json, or its directory; the directory of a study.",
            autocompletion=complete.kept,
        ),
    ] = None,
    of_part: Annotated[str | None, typer.Option(help="With --from: part of the study.")] = None,
    of_disk: Annotated[
        str | None, typer.Option(help="With --from: disk of the comparison.")
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            help="With --from: throughput, latency or both. [default: the comparison's own; both, "
            "for a directory of compare]",
            autocompletion=complete.objective,
        ),
    ] = None,
    store: StoreName = None,
    preset: Annotated[str | None, typer.Option(help="Named settings; see --presets.")] = None,
    nr_requests: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of requests in the scheduler.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Another setting in queue/: name=value; repeatable."
        ),
    ] = None,
    which: Annotated[
        str,
        typer.Option("--for", help="id: this disk; model or kind: all disks of its model or kind."),
    ] = "id",
    form: Annotated[
        str, typer.Option("--as", help="udev or tuned; auto: tuned where it would undo a rule.")
    ] = "auto",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show all changes, make none.")
    ] = False,
    presets: Annotated[bool, typer.Option("--presets", help="List the presets and exit.")] = False,
) -> None:
    """Set a disk's scheduler and settings, now and after every reboot."""
    from blklab.api.apply import apply as applied

    if presets:
        _print_presets()
        return
    wanted: dict[str, str | int] = dict(choice.pairs(settings or []))
    if nr_requests is not None:
        wanted["nr_requests"] = nr_requests
    applied(
        device,
        scheduler,
        settings=wanted,
        preset=preset,
        result=result,
        part=of_part,
        disk=of_disk,
        objective=objective,
        store=store,
        scope=cast("Scope", which),
        form=cast("Form", form),
        dry_run=dry_run,
        listener=_Printing(dry_run),
    )


def status(
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Check that applied settings still hold; exit code 1 if not."""
    from blklab.api import apply as settings
    from blklab.settings.status import lines

    now = settings.status()
    if as_json:
        console.print_json({"format": 1, "holds": now.holds, **asdict(now)})
    else:
        print("\n".join(lines(now)))
    if not now.holds:
        raise typer.Exit(1)


def undo(
    everything: Annotated[
        bool, typer.Option("--all", help="Undo all, not only the latest.")
    ] = False,
) -> None:
    """Undo the latest apply: restore every setting and file."""
    from blklab.api.apply import undo as undone

    undone(everything=everything, listener=_Printing())


class _Printing(Terminal):
    """Each change as it is planned, made and reverted."""

    def __init__(self, dry_run: bool = False) -> None:
        self._dry_run = dry_run

    def chosen(self, reason: str) -> None:
        print(reason)

    def planned(self, plan: Plan) -> None:
        _print_plan(plan, dry_run=self._dry_run)

    def applied(self, notes: Sequence[str]) -> None:
        for note in notes:
            print(f"note: {note}")
        print("applied and verified; see: blklab status, blklab undo")

    def undone(self, entry: Entry) -> None:
        print(f"undone: {entry.number}. {choice.text(entry.settings)}, for {entry.key.text}")


def _print_presets() -> None:
    from blklab.settings import presets

    console.print_terms(
        (name, f"{preset.said}. Measured: {preset.measured}.")
        for name, preset in presets.PRESETS.items()
    )
    console.print_terms([("not settings of a disk", f"{presets.NOT_SETTINGS}.")])


def _print_plan(made: Plan, *, dry_run: bool) -> None:
    from blklab.settings.status import rival_text

    settings = made.entry.settings
    print(f"{choice.text(settings)}, for {made.entry.key.text}")
    for disk, before in zip(made.disks, made.entry.disks, strict=True):
        changes = [
            f"{name.removeprefix(IOSCHED)} {before.before.get(name, '-')} -> {value}"
            for name, value in settings.items()
            if not same(before.before.get(name, ""), value)
        ]
        print(f"{shown(disk.name)}: {', '.join(map(shown, changes)) or 'already set so'}")
    if dry_run:
        _print_files(made)
    for name, found in made.rivals.items():
        for one in found:
            print(f"warning: {shown(name)}: may be undone by {rival_text(one)}")


def _print_files(made: Plan) -> None:
    if made.module:
        print(f"\nwould load the module {made.module}")
    print(f"\nwould write {rule.place(roots.HERE)}:\n\n{made.rules}")
    if made.profile:
        place = profile.place(roots.HERE)
        print(f"would write {place}, and make it tuned's profile:\n\n{made.profile}")
