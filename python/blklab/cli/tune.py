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
    OnPlace,
    PluginFiles,
    StoreName,
    check_jobs,
    use_plugins,
)
from blklab.domain import specs
from blklab.domain.defaults import LOCAL
from blklab.experiment.words import factor
from blklab.tuning.words import confirmed_text, levels_text, sentence

if TYPE_CHECKING:
    from rich.console import Console

    from blklab import Sensitivity, Tuned

_TRIALS_MAX = 100_000
_EFFECTS_SHOWN = 8
_FRONT_SHOWN = 12
_NOTHING = 1.0005
"""An effect up to here is none at all in the tables' digits."""
_OUT = Path("reports/tune")


def tune(
    context: typer.Context,
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
        typer.Option(
            help="Confirm elsewhere as well: kernel (Linux itself, above the modelled disk), or "
            "live:DIRECTORY (the real disk that has this directory); repeatable.",
            metavar="kernel|live:DIRECTORY",
        ),
    ] = None,
    sensitivity: Annotated[
        bool,
        typer.Option(
            "--sensitivity",
            help="Move each tunable from the recommended settings to the ends of its range, alone "
            "and in pairs, on fresh seeds: some hundred runs more.",
        ),
    ] = False,
    whole_runs: Annotated[
        bool,
        typer.Option(
            "--whole-runs",
            help="Whole runs only, without short ones that tell which settings are worth them.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, max=2**32, help="Seed of the search.")] = 1,
    out: Annotated[Path, typer.Option(help="Directory for the confirmation's report.")] = _OUT,
    jobs: Annotated[
        int, typer.Option(min=1, max=JOBS_MAX, help="Maximum parallel runs; default: one per CPU.")
    ] = JOBS_DEFAULT,
    on: OnPlace = LOCAL,
    host: HostValues = None,
    ignore_unsupported: IgnoreUnsupported = False,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    store: StoreName = None,
    no_keep: NoKeep = False,
    plugin: PluginFiles = None,
) -> None:
    """Search the scheduler and settings that serve a load best, and confirm them on fresh seeds.

    An interrupted search goes on where it was if the same command is given again.
    """
    use_plugins(plugin)
    check_jobs(context, on)
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
        sensitivity=sensitivity,
        whole_runs=whole_runs,
        host=specs.host(host or ()),
        ignore_unsupported=ignore_unsupported,
        out=out,
        keep=not no_keep,
        store=store,
        max_parallel=jobs,
        on=on,
        listener=Terminal(),
    )
    if as_json:
        console.print_json(found.to_json())
    else:
        _print(found)
    for line in found.unconfirmed:
        console.print_note(line)
    if found.unconfirmed:
        raise typer.Exit(1)


def _print(found: Tuned) -> None:
    from rich.text import Text

    out = console.console()
    out.print(Text(sentence(found), style="bold"))
    _print_confirmed(found, out)
    _print_worth(found, out)
    if found.sensitivity is None:
        _print_effects(found, out)
    else:
        _print_around(found.sensitivity, out)
    _print_front(found, out)
    tried = "all" if found.enumerated else "a search of"
    out.print(
        Text(f"{tried} {found.trials:,} settings on {found.disk}; {found.runs:,} runs made now")
    )
    for line in levels_text(found):
        out.print(Text(line), soft_wrap=True)
    if found.best != found.reference:
        out.print("To set it, with your disk's name:", soft_wrap=True)
        out.print(Text(f"  blklab apply sdX '{found.best}'"), soft_wrap=True)
    if page := found.confirmed[0].page:
        out.print(f"Report: {found.page}; of the confirmation: {page}", soft_wrap=True)


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
        out.print(Text(f"Measured with {confirmed_text(one)}:"), soft_wrap=True)
        out.print(table)
        if one.agreement is not None:
            out.print(Text(f"Kendall's tau with the simulator's order: {one.agreement:.2f}"))


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


def _print_around(around: Sensitivity, out: Console) -> None:
    from rich.text import Text

    table = console.table("one change", f"as good as {around.around}", "95 %", right=(1, 2))
    shown = [one for one in around.moved if one.size > _NOTHING]
    for one in shown[:_EFFECTS_SHOWN]:
        table.add_row(
            Text(f"{one.tunable}={one.value}"),
            Text(f"{one.gain.estimate:.2f} times"),
            Text(f"{one.gain.low:.2f} to {one.gain.high:.2f}"),
        )
    out.print(Text(f"What each tunable changes, with {around.repeats} fresh seeds:"))
    out.print(table)
    still = {one.tunable for one in around.moved} - {one.tunable for one in shown}
    if still:
        told = f"No effect at either end of the range: {', '.join(sorted(still))}"
        out.print(console.folded(told, "", ""), soft_wrap=True)
    for pair in around.pairs:
        gap = pair.interaction
        if not gap.low <= 1.0 <= gap.high:
            names = (
                f"{pair.one.tunable}={pair.one.value} and {pair.other.tunable}={pair.other.value}"
            )
            told = f"{names} interact: together {pair.together.estimate:.2f} times as good, "
            told += f"one by one {pair.together.estimate / gap.estimate:.2f}"
            out.print(Text(told))


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
