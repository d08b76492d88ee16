"""A study's directory in full: what `blklab.study.kept_files` reads again, and the pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from blklab import report as pages
from blklab.domain import results_file
from blklab.experiment.analyse import analyse
from blklab.study.judge import Judgement
from blklab.study.kept_files import FILE, PAGE, RESULTS, to_text
from blklab.study.model import Study
from blklab.study.outcome import Outcome


def texts(
    study: Study, outcomes: Sequence[Outcome], judgements: Sequence[Judgement], out: Path
) -> dict[Path, str]:
    """Everything that is to be written below `out`."""
    written = {out / FILE: to_text(study, outcomes, judgements)}
    for part, outcome in zip(study.parts, outcomes, strict=True):
        if outcome.results is not None:
            folder = out / outcome.part
            mine = [row for row in judgements if row.part == outcome.part]
            answers = analyse(outcome.results.runs, part.objective)
            written[folder / RESULTS] = results_file.to_text(outcome.results)
            written[folder / PAGE] = pages.render(
                outcome.results, answers, title=f"{study.title}: {outcome.part}", judgements=mine
            )
    written[out / PAGE] = pages.study_page(study, outcomes, judgements)
    return written
