"""``blklab apply``, ``status`` and ``undo``: settings that stick, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from blklab.base.text import shown
from blklab.cli import complete, console
from blklab.cli.resuming import StoreName
from blklab.errors import InputError, RunError
from blklab.host import roots
from blklab.host.devices import queue
from blklab.host.devices.queue import IOSCHED, same
from blklab.settings import choice, profile, record, rule
from blklab.settings import presets as known

if TYPE_CHECKING:
    from blklab.settings.change import Plan


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
    from blklab.settings import change, choice, programs, recommended

    if presets:
        _print_presets()
        return
    if sum(given is not None for given in (scheduler, result, preset)) > 1:
        raise InputError("apply: give one of: a scheduler, --from, --preset")
    source = None
    if result is not None:
        source = recommended.find(result, of_part, store, console.print_note)
        scheduler, said = recommended.scheduler(source, of_disk, objective)
        print(f"{source.name}: {said}")
    else:
        _check_alone(of_part=of_part, of_disk=of_disk, objective=objective, store=store)
    if device is not None:
        targets = [queue.find(device, roots.HERE)]
    elif source is not None:
        found = recommended.disks(source, of_disk, roots.HERE)
        targets = [queue.named(name, roots.HERE) for name in found]
    else:
        raise InputError("apply: name a disk; see: blklab devices")
    parts = [choice.of_queue(settings or [])]
    if nr_requests is not None:
        parts.append({"nr_requests": str(nr_requests)})
    if preset is not None:
        named = known.find(preset)
        scheduler = named.scheduler or None
        parts.insert(0, named.queue)
        print(f"{preset}: {named.said}.\nMeasured: {named.measured}.")
    for target in targets:
        chosen = [choice.parse(scheduler, target)] if scheduler else []
        made = change.plan(target, choice.together(*chosen, *parts), which, form, roots.HERE)
        _print_plan(made, dry_run=dry_run)
        if not dry_run:
            under_sudo = source.under_sudo if source and store is None else []
            for note in change.carry_out(made, roots.HERE, programs.HERE, under_sudo):
                print(f"note: {note}")
            print("applied and verified; see: blklab status, blklab undo")


def _check_alone(**options: str | None) -> None:
    """InputError if something is said that only goes with ``--from``."""
    for name, value in options.items():
        if value is not None:
            raise InputError(f"--{name.replace('_', '-')}: only works with --from")


def status(
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
) -> None:
    """Check that applied settings still hold; exit code 1 if not."""
    from blklab.settings import status as states

    now = states.status(record.load(roots.HERE), roots.HERE)
    if as_json:
        console.print_json({"format": 1, "holds": now.holds, **asdict(now)})
    else:
        print("\n".join(states.lines(now)))
    if not now.holds:
        raise typer.Exit(1)


def undo(
    everything: Annotated[
        bool, typer.Option("--all", help="Undo all, not only the latest.")
    ] = False,
) -> None:
    """Undo the latest apply: restore every setting and file."""
    from blklab.settings import change, choice, programs, record

    wrong = []
    # Of none, undo says so.
    for _ in range(max(len(record.load(roots.HERE)), 1) if everything else 1):
        entry, left = change.undo(roots.HERE, programs.HERE)
        print(f"undone: {entry.number}. {choice.text(entry.settings)}, for {entry.key.text}")
        wrong += left
    if wrong:
        raise RunError("; ".join(wrong))


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
