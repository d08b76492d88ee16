"""The report: one HTML file that needs nothing else, from results and their analysis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from blklab.domain import results_file
from blklab.domain.comparison import OBJECTIVE_TEXT, OBJECTIVES
from blklab.domain.latencies import OPERATION_TEXT
from blklab.domain.results_file import Results
from blklab.domain.validation import warning
from blklab.experiment.analyse import Analysis, analyse
from blklab.experiment.statistics import BOOTSTRAP_FROM, CONFIDENCE, MATTERS
from blklab.experiment.words import (
    COSTS,
    DRAWN,
    OVER_TIME,
    costs_head,
    costs_texts,
    few_text,
    hinge_text,
    over_time_method,
    over_time_sentence,
    over_time_texts,
    percentiles_text,
    sentence,
    short,
    spread_text,
)
from blklab.report import payload
from blklab.report.overview import overview
from blklab.report.parts import css, environment, plotly, script, script_json
from blklab.report.system import system
from blklab.study.judge import TAU_LEAST, TIE, Judgement
from blklab.study.kept_files import FILE, PAGE, RESULTS, SIMULATED, to_text
from blklab.study.model import Outcome, Study
from blklab.study.trust import trust
from blklab.study.words import effect_lines, factor_text, figure, statements, tally, tunables


def render(
    results: Results,
    analysis: Analysis,
    *,
    title: str | None = None,
    judgements: Sequence[Judgement] = (),
) -> str:
    """The whole page of a comparison; `judgements` if it is part of a study."""
    data = payload.build(results, analysis)
    return (
        environment()
        .get_template("page.html")
        .render(
            title=title or _title(results),
            statements=statements(judgements),
            figure=figure,
            factor_text=factor_text,
            setup=results.setup,
            not_validated=warning(results.setup),
            drawn=DRAWN,
            hinge_text=hinge_text,
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
            spread_text=spread_text,
            percentiles_text=percentiles_text,
            few_text=few_text,
            costs_heads=COSTS,
            over_time_heads=OVER_TIME,
            over_time_method=over_time_method,
            over_time_sentence=over_time_sentence,
            over_time_texts=over_time_texts,
            costs_head=costs_head,
            costs_texts=costs_texts,
            slots={name: slot for slot, name in enumerate(data["schedulers"])},
            confidence=CONFIDENCE,
            matters=MATTERS,
            bootstrap_from=BOOTSTRAP_FROM,
            thinning=payload.thinning(results),
            data=script_json(data),
            css=css(),
            sweeps=data["sweeps"],
            script=script("report.js", "sweep.js"),
            plotly=plotly(),
        )
    )


def study_page(study: Study, outcomes: Sequence[Outcome], judgements: Sequence[Judgement]) -> str:
    """The page of a whole study: published statements beside the measurements, part by part."""
    parts = [
        {
            "part": part,
            "outcome": outcome,
            "not_validated": warning(outcome.results.setup) if outcome.results else "",
            "statements": statements(row for row in judgements if row.part == part.name),
            "trust": trust(part, outcome),
            "tunables": tunables(part, outcome),
        }
        for part, outcome in zip(study.parts, outcomes, strict=True)
    ]
    return (
        environment()
        .get_template("study.html")
        .render(
            title=study.title,
            study=study,
            parts=parts,
            overview=overview(study, judgements),
            system=system(study, outcomes),
            tally=tally(judgements),
            effect_lines=effect_lines,
            figure=figure,
            factor_text=factor_text,
            tau_least=TAU_LEAST,
            tie=TIE,
            confidence=CONFIDENCE,
            matters=MATTERS,
            css=css(),
        )
    )


def _title(results: Results) -> str:
    disks = [disk["label"] for disk in results.setup["disks"]]
    return f"Which I/O scheduler suits {' and '.join(disks)}?"


def study_files(
    study: Study, outcomes: Sequence[Outcome], judgements: Sequence[Judgement], out: Path
) -> dict[Path, str]:
    """All files to write below `out`."""
    written = {out / FILE: to_text(study, outcomes, judgements)}
    for part, outcome in zip(study.parts, outcomes, strict=True):
        if outcome.results is not None:
            folder = out / outcome.part
            mine = [row for row in judgements if row.part == outcome.part]
            answers = analyse(outcome.results.runs, part.objective)
            written[folder / RESULTS] = results_file.to_text(outcome.results)
            written[folder / PAGE] = render(
                outcome.results, answers, title=f"{study.title}: {outcome.part}", judgements=mine
            )
            if outcome.simulated is not None:
                beside, below = outcome.simulated, folder / SIMULATED
                written[below / RESULTS] = results_file.to_text(beside)
                written[below / PAGE] = render(
                    beside,
                    analyse(beside.runs, part.objective),
                    title=f"{study.title}: {outcome.part}, simulated",
                )
    written[out / PAGE] = study_page(study, outcomes, judgements)
    return written
