"""A study on the terminal: what it is, and what came of it. 80 columns do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blklab.base.units import number_text
from blklab.cli import comparison
from blklab.cli.console import console, print_terms, table
from blklab.study.words import (
    StatementPlace,
    Trust,
    effect_lines,
    factor_text,
    statements,
    tally,
    trust,
    tunables,
)

if TYPE_CHECKING:
    from rich.console import Console

    from blklab import Analysis, Interval, Study, StudyRun
    from blklab.domain.setup import SetupData

_STYLES = {"reproduced": "green", "not reproduced": "yellow"}


def show(found: StudyRun) -> None:
    """Print rankings, then what was published beside what was measured, part by part."""
    from rich.text import Text

    out = console()
    out.print(Text(found.study.title, style="bold"))
    answers = found.analyses()
    for part, outcome, answer in zip(found.study.parts, found.outcomes, answers, strict=True):
        out.print()
        out.print(Text(f"== {part.name}, rig {outcome.rig}: {part.question}", style="bold"))
        if part.note:
            out.print(f"Note: {part.note}")
        for skip in outcome.skipped:
            out.print(f"Left out: {skip.what}: {skip.why}")
        if outcome.results is not None and answer is not None:
            _show_measured(outcome.results.setup, answer, out, tuned=bool(part.tune))
        for effects in tunables(part, outcome):
            out.print(Text(f"Which tunables of {effects.scheduler} matter:", style="bold"))
            out.print(Text("\n".join(effect_lines(effects))))
        for one in trust(part, outcome):
            _show_trust(one, out)
        for statement in statements(row for row in found.judgements if row.part == part.name):
            out.print()
            out.print(Text(f"Published: {statement.text}", style="bold"))
            for place in statement.places:
                _show_place(place, out)
            if statement.why:
                out.print(f"Why not: {statement.why}")
    out.print()
    out.print(tally(found.judgements))
    if found.page is not None:
        # A path is there to be copied: never folded.
        out.print(f"Report: {found.page}", soft_wrap=True)


def _show_measured(setup: SetupData, answer: Analysis, out: Console, *, tuned: bool) -> None:
    comparison.show_rig(setup, out)
    if tuned:
        # A row for each tunable and end would be hundreds: the answer comes next.
        out.print(f"Each of {len(setup['schedulers'])} settings: in the report")
    else:
        comparison.show_cells(answer, out, requests=comparison.are_told(setup))
    comparison.show_not_validated(setup, out)


def _show_trust(one: Trust, out: Console) -> None:
    """Print a simulation beside the kernel."""
    out.print()
    out.print(f"{one.disk}, {one.workload}: simulated beside the kernel, {one.text}")
    rows = table("scheduler", f"kernel, {one.unit}", "simulated", "off", right=(1, 2, 3))
    for row in one.rows:
        rows.add_row(
            row.scheduler,
            number_text(row.kernel),
            number_text(row.simulated),
            f"{row.off * 100 + 0.0:+.1f} %",
        )
    out.print(rows)


def _show_place(place: StatementPlace, out: Console) -> None:
    from rich.text import Text

    def mean(value: Interval | None) -> str:
        # The ranges have no room here; they are in the report.
        return "-" if value is None else number_text(value.estimate)

    out.print(f"({place.where})")
    if place.is_table:
        heads = ("scheduler", "published", "measured", "factor", "off", "outcome")
        rows = table(*heads, right=(1, 2, 3, 4))
        for row in place.rows:
            rows.add_row(
                f"{row.subject}{'*' * bool(row.ran_on)}",
                mean(row.published),
                mean(row.measured),
                factor_text(row.factor),
                row.found if row.measured else "-",
                Text(row.outcome, _STYLES.get(row.outcome, "")),
            )
        out.print(rows)
        for text in dict.fromkeys(row.ran_on for row in place.rows if row.ran_on):
            out.print(f"* {text}")
        if place.explained:
            out.print(f"{place.explained}.")
        for why in dict.fromkeys(row.found for row in place.rows if row.measured is None):
            out.print(why)
    else:
        for row in place.rows:
            outcome = Text(row.outcome, _STYLES.get(row.outcome, ""))
            out.print(Text.assemble(f"{row.subject}: ", outcome, f": {row.found}"))


def describe(study: Study) -> None:
    """Print what a study runs and what was published."""
    print(f"{study.name}: {study.title}\n{study.question}")
    if study.source:
        print(f"Source: {study.source}")
    print(study.file.path)
    for kernel in study.kernels:
        print(f"\nkernel {kernel.name}: {kernel.summary or 'no summary'}")
        for patch in kernel.patches:
            print(f"    {study.file.path.parent / patch}")
    for part in study.parts:
        print(f"\npart {part.name}, {part.repeats} repeats, rig {' or '.join(part.rigs)}\n")
        lists = (("disks", part.disks), ("workloads", part.workloads),
                 ("schedulers", part.schedulers))  # fmt: skip
        print_terms(
            [
                ("question", part.question),
                *((name, ", ".join(values)) for name, values in lists),
                *([("note", part.note)] if part.note else []),
                *([("tune", ", ".join(part.tune))] if part.tune else []),
                *((f"published ({claim.kind})", claim.text) for claim in part.claims),
            ]
        )
