"""``blklab apply``, ``status`` and ``undo``: settings that stick, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, cast

import typer

import blklab
from blklab.cli import complete, console
from blklab.cli.listening import Terminal
from blklab.cli.options import StoreName
from blklab.domain import specs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from blklab.api.apply import Form, Scope


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
            "results.json, or its directory; the directory of a study, or of blklab tune.",
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
    if presets:
        _print_presets()
        return
    wanted: dict[str, str | int] = {**specs.settings(settings or ())}
    if nr_requests is not None:
        wanted["nr_requests"] = nr_requests
    blklab.apply(
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
    from blklab.settings.words import status_lines

    now = blklab.status()
    if as_json:
        console.print_json({"format": 1, "holds": now.holds, **asdict(now)})
    else:
        print("\n".join(status_lines(now)))
    if not now.holds:
        raise typer.Exit(1)


def undo(
    everything: Annotated[
        bool, typer.Option("--all", help="Undo all, not only the latest.")
    ] = False,
) -> None:
    """Undo the latest apply, or watch --install: restore every setting and file."""
    blklab.undo(everything=everything, listener=_Printing())


class _Printing(Terminal):
    """Prints each change when it is planned, made or reverted."""

    def __init__(self, dry_run: bool = False) -> None:
        self._dry_run = dry_run

    def chosen(self, reason: str) -> None:
        print(reason)

    def planned(self, plan: blklab.Plan) -> None:
        from blklab.settings.words import plan_lines

        print("\n".join(plan_lines(plan, dry_run=self._dry_run)))

    def applied(self, notes: Sequence[str]) -> None:
        for note in notes:
            print(f"note: {note}")
        print("applied and verified; see: blklab status, blklab undo")

    def undone(self, entry: blklab.AppliedEntry) -> None:
        from blklab.settings.words import undone_line

        print(undone_line(entry))

    def unwatched(self, unit: blklab.WatchUnit, notes: Sequence[str]) -> None:
        from blklab.settings.words import watch_undone_line

        print(watch_undone_line(unit))
        for note in notes:
            print(f"note: {note}")


def _print_presets() -> None:
    found = blklab.list_presets()
    console.print_terms(
        (name, f"{preset.said}. Measured: {preset.measured}.")
        for name, preset in found.presets.items()
    )
    console.print_terms([("not settings of a disk", f"{found.not_settings}.")])
