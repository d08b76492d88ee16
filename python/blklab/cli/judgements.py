"""A study on the terminal: what it is, and what came of it. 80 columns do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blklab.base.units import number_text
from blklab.cli import comparison
from blklab.cli.console import console, print_terms, table
from blklab.study.words import StatementPlace, statements, tally

if TYPE_CHECKING:
    from rich.console import Console

    from blklab import Interval, Study, StudyRun

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
            comparison.show_rig(outcome.results.setup, out)
            requests = comparison.are_told(outcome.results.setup)
            comparison.show_cells(answer, out, requests=requests)
            comparison.show_not_validated(outcome.results.setup, out)
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


def _show_place(place: StatementPlace, out: Console) -> None:
    from rich.text import Text

    def mean(value: Interval | None) -> str:
        # The ranges have no room here; they are in the report.
        return "-" if value is None else number_text(value.estimate)

    out.print(f"({place.where})")
    if place.is_table:
        rows = table("scheduler", "published", "measured", "off", "outcome", right=(1, 2, 3))
        for row in place.rows:
            rows.add_row(
                row.subject,
                mean(row.published),
                mean(row.measured),
                row.found if row.measured else "-",
                Text(row.outcome, _STYLES.get(row.outcome, "")),
            )
        out.print(rows)
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
                *((f"published ({claim.kind})", claim.text) for claim in part.claims),
            ]
        )
