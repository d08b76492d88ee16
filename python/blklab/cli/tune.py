"""``blklab tune``: the best scheduler and settings for a load."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import blklab
from blklab.api import tune as api
from blklab.base.limits import JOBS_DEFAULT, JOBS_MAX, REPEATS_MAX
from blklab.cli import complete, console
from blklab.cli.listening import Terminal
from blklab.cli.options import (
    DiskName,
    HostValues,
    IgnoreUnsupported,
    NoKeep,
    StoreName,
)
from blklab.domain import specs
from blklab.experiment.words import factor, interval_text

if TYPE_CHECKING:
    from rich.console import Console

    from blklab import Tuned

_TRIALS_MAX = 100_000
_EFFECTS_SHOWN = 8
_FRONT_SHOWN = 12
_OUT = Path("reports/tune")


def tune(
    disk: DiskName,
    workload: Annotated[
        list[str],
        typer.Option(
            help="Job file, workload of blklab's or recording; repeatable: the settings serve all.",
            autocompletion=complete.workload,
        ),
    ],
    objective: Annotated[
        str,
        typer.Option(
            help="What is to be best: both (throughput and p99), or a figure: "
            f"{', '.join(api.FIGURES)}; of a job: p99(JOB). Bounds may come first: "
            "'p99(JOB) < 300ms, throughput'. 'p99 + throughput' shows the trade-off."
        ),
    ] = "both",
    scheduler: Annotated[
        list[str] | None,
        typer.Option(
            help="Search only these; name[:tunable=value,...], what is set stays. "
            "[default: none, mq-deadline, kyber, bfq]",
            autocompletion=complete.scheduler,
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="The settings in use. [default: the kernel's choice: mq-deadline, on disks with "
            "several hardware queues none]",
            autocompletion=complete.scheduler,
        ),
    ] = None,
    worst_case: Annotated[
        bool,
        typer.Option(
            "--worst-case", help="Of several loads the one that gains least counts, not the mean."
        ),
    ] = False,
    trials: Annotated[
        int,
        typer.Option(
            min=1, max=_TRIALS_MAX, help="Settings to try, after the screening of tunables."
        ),
    ] = api.TRIALS,
    repeats: Annotated[
        int,
        typer.Option(
            min=2, max=REPEATS_MAX, help="Fresh seeds of the confirmation, each with a drawn disk."
        ),
    ] = api.REPEATS,
    confirm: Annotated[
        list[str] | None,
        typer.Option(help="Confirm on another rig as well: kernel.", metavar="RIG"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32, help="Seed of the search.")] = 1,
    out: Annotated[Path, typer.Option(help="Directory for the confirmation's report.")] = _OUT,
    jobs: Annotated[
        int, typer.Option(min=1, max=JOBS_MAX, help="Maximum parallel runs; default: one per CPU.")
    ] = JOBS_DEFAULT,
    host: HostValues = None,
    ignore_unsupported: IgnoreUnsupported = False,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    store: StoreName = None,
    no_keep: NoKeep = False,
) -> None:
    """Search the scheduler and settings that serve a load best, and confirm them on fresh seeds.

    An interrupted search goes on where it was if the same command is given again.
    """
    found = blklab.tune(
        disk=disk,
        workloads=workload,
        objective=objective,
        schedulers=scheduler or (),
        against=against,
        worst_case=worst_case,
        trials=trials,
        repeats=repeats,
        seed=seed,
        confirm=confirm or (),
        host=specs.host(host or ()),
        ignore_unsupported=ignore_unsupported,
        out=out,
        keep=not no_keep,
        store=store,
        max_parallel=jobs,
        listener=Terminal(),
    )
    if as_json:
        console.print_json(found.to_json())
    else:
        _print(found)


def _print(found: Tuned) -> None:
    from rich.text import Text

    out = console.console()
    out.print(Text(_sentence(found), style="bold"))
    _print_confirmed(found, out)
    _print_worth(found, out)
    _print_effects(found, out)
    _print_front(found, out)
    tried = "all" if found.enumerated else "a search of"
    out.print(
        Text(f"{tried} {found.trials:,} settings on {found.disk}; {found.runs:,} runs made now")
    )
    if found.best != found.reference:
        out.print("To set it, with your disk's name:", soft_wrap=True)
        out.print(Text(f"  blklab apply sdX '{found.best}'"), soft_wrap=True)
    if page := found.confirmed[0].page:
        out.print(f"Report: {page}", soft_wrap=True)


def _sentence(found: Tuned) -> str:
    confirmed = found.confirmed[0]
    repeats, reference = confirmed.repeats, found.reference
    broken = confirmed.beyond[found.best]
    beyond = f" It exceeds a bound in {broken} of {repeats} repeats." if broken else ""
    *bounds, goal = (part.strip() for part in found.objective.split(","))
    if found.gain is None:
        return f"Keep {reference}: no settings were shown to be better for {goal}.{beyond}"
    gap = found.gain
    if gap.estimate < 1.0:
        # It is there for its bounds.
        gap = blklab.Interval(1 / gap.estimate, 1 / gap.high, 1 / gap.low)
        sure = interval_text(gap.estimate, gap.low, gap.high)
        return (
            f"{found.best} keeps {' and '.join(bounds)} in {repeats - broken} of {repeats} "
            f"repeats, {reference} in {repeats - confirmed.beyond[reference]}; for {goal} it is "
            f"{factor(gap.estimate)} worse ({sure})."
        )
    sure = interval_text(gap.estimate, gap.low, gap.high)
    kept = f", within {' and '.join(bounds)}" if bounds and not broken else ""
    return (
        f"{found.best}: {factor(gap.estimate)} better than {reference} for {goal} "
        f"({sure}){kept}.{beyond}"
    )


def _print_confirmed(found: Tuned, out: Console) -> None:
    from rich.text import Text

    for one in found.confirmed:
        has_bounds = any(one.beyond.values()) or "<" in found.objective or ">" in found.objective
        head = ["settings", f"as good as {found.reference}", "95 %"]
        table = console.table(
            *head, *(["bounds kept"] if has_bounds else []), right=range(1, len(head) + 1)
        )
        rows = sorted(one.gains.items(), key=lambda row: -row[1].estimate)
        for name, gap in rows:
            cells = [
                Text(name, style="bold green" if name == found.best else ""),
                Text(f"{gap.estimate:.2f} times"),
                Text(f"{gap.low:.2f} to {gap.high:.2f}"),
            ]
            if has_bounds:
                cells.append(Text(f"{one.repeats - one.beyond[name]} of {one.repeats}"))
            table.add_row(*cells)
        where = "simulated, each seed on a disk drawn from the ranges of its estimates"
        if one.rig == "kernel":
            where = "Linux itself"
        out.print(Text(f"Confirmed with {one.repeats} fresh seeds, {where}:"))
        out.print(table)
    if found.agreement is not None:
        out.print(Text(f"Order on both rigs: Kendall's tau {found.agreement:.2f}"))


def _print_worth(found: Tuned, out: Console) -> None:
    from rich.text import Text

    if not found.worth:
        return
    table = console.table("setting", "worse without it", right=[1])
    values = dict(part.split("=") for part in found.searched.split(":", 1)[1].split(","))
    for name, lost in sorted(found.worth.items(), key=lambda row: -row[1]):
        told = "exceeds a bound" if lost == float("inf") else factor(lost)
        table.add_row(Text(f"{name}={values[name]}"), Text(told))
    out.print(Text(f"What each setting of {found.searched.split(':')[0]} is worth:"))
    out.print(table)


def _print_effects(found: Tuned, out: Console) -> None:
    from rich.text import Text

    table = console.table("tunable", "largest effect", right=[1])
    shown = [effect for effect in found.effects if effect.most > 1.0]
    for effect in shown[:_EFFECTS_SHOWN]:
        table.add_row(Text(f"{effect.scheduler}: {effect.tunable}"), Text(factor(effect.most)))
    out.print(
        Text("Which tunables matter for this load, from one end of their range to the other:")
    )
    out.print(table)
    none = [
        f"{effect.scheduler}: {effect.tunable}" for effect in found.effects if effect.most <= 1.0
    ]
    more = len(shown) - _EFFECTS_SHOWN
    if more > 0:
        out.print(Text(f"{more} more have less; all: --json"))
    if none:
        out.print(console.folded(f"No effect at all: {', '.join(none)}", "", ""), soft_wrap=True)


def _print_front(found: Tuned, out: Console) -> None:
    from rich.text import Text

    if not found.front:
        return
    names = [part.strip() for part in found.objective.split(",")[-1].split("+")]
    table = console.table("settings", *names, right=range(1, len(names) + 1))
    for label, ratios in found.front[:_FRONT_SHOWN]:
        table.add_row(Text(label), *(Text(f"{ratio:.2f}") for ratio in ratios))
    out.print(Text(f"The trade-off, each goal as a ratio to {found.reference} (more is better):"))
    out.print(table)
