"""The report: one HTML file that needs nothing else, from results and their analysis."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from blklab.compare.analyse import OBJECTIVE_TEXT, OBJECTIVES, OPERATION_TEXT, Analysis
from blklab.compare.store import Results
from blklab.compare.words import sentence, short
from blklab.report import payload
from blklab.statistics import BOOTSTRAP_FROM, CONFIDENCE, MATTERS
from blklab.study.judge import Judgement
from blklab.study.model import Study
from blklab.study.outcome import Outcome
from blklab.study.words import figure, groups, tally
from blklab.units import duration_text, number_text


def render(
    results: Results,
    analysis: Analysis,
    *,
    title: str | None = None,
    judgements: Sequence[Judgement] = (),
) -> str:
    """The whole page of a comparison; `judgements` if it is part of a study."""
    data = payload.build(results, analysis)
    folder = files("blklab.report")
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=title or _title(results),
            groups=groups(judgements),
            figure=figure,
            setup=results.setup,
            analysis=analysis,
            cells={(cell.disk, cell.workload): cell for cell in analysis.cells},
            numbers={
                (cell.disk, cell.workload): number for number, cell in enumerate(analysis.cells)
            },
            objectives=OBJECTIVES,
            objective_text=OBJECTIVE_TEXT,
            operation_text=OPERATION_TEXT,
            sentence=sentence,
            short=short,
            slots={name: slot for slot, name in enumerate(data["schedulers"])},
            confidence=CONFIDENCE,
            matters=MATTERS,
            bootstrap_from=BOOTSTRAP_FROM,
            thinning=payload.thinning(results),
            data=_script_json(data),
            css=_css(),
            script=Markup((folder / "report.js").read_text(encoding="utf-8")),
            plotly=Markup(
                (files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
            ),
        )
    )


def study_page(study: Study, outcomes: Sequence[Outcome], judgements: Sequence[Judgement]) -> str:
    """The page of a whole study: what was published beside what was measured, part by part."""
    parts = [
        {
            "part": part,
            "outcome": outcome,
            "groups": groups([row for row in judgements if row.part == part.name]),
        }
        for part, outcome in zip(study.parts, outcomes, strict=True)
    ]
    return (
        _environment()
        .get_template("study.html")
        .render(
            title=study.title,
            study=study,
            parts=parts,
            tally=tally(judgements),
            figure=figure,
            confidence=CONFIDENCE,
            matters=MATTERS,
            css=_css(),
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("blklab.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(duration=duration_text, number=number_text)
    return environment


def _css() -> Markup:
    return Markup((files("blklab.report") / "report.css").read_text(encoding="utf-8"))


def _title(results: Results) -> str:
    disks = [disk["label"] for disk in results.setup["disks"]]
    return f"Which I/O scheduler suits {' and '.join(disks)}?"


def _script_json(value: Any) -> Markup:
    """JSON that cannot end the script element it stands in, whatever strings it holds."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
