"""A study's directory: `study.json`, `report.html`, and a directory for each part with the files
that `blklab compare` writes. All of it can be made again from `study.json` and the parts'
`results.json`, without running anything."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from blklab.base.catalogue import Entry
from blklab.base.files import text_content
from blklab.base.plain import plain
from blklab.domain import results_file
from blklab.errors import InputError
from blklab.study.effects import effects
from blklab.study.judge import Judgement
from blklab.study.live import RIG as LIVE
from blklab.study.model import Outcome, Part, Skipped, Study
from blklab.study.parse import parse
from blklab.study.trust import trust

FILE = "study.json"
PAGE = "report.html"
SIMULATED = "simulated"
"""The directory of what was simulated beside a part, below the part's."""
RESULTS = "results.json"
_FORMAT = 1
_BYTES_MAX = 16 << 20


def places(study: Study, out: Path) -> list[Path]:
    """All files that may be written below `out`."""
    folders = [out / part.name for part in study.parts]
    return [
        *(out / name for name in (FILE, PAGE)),
        *(folder / name for folder in folders for name in (RESULTS, PAGE)),
        *(
            out / part.name / SIMULATED / name
            for part in study.parts
            if part.recorded_under is not None
            for name in (RESULTS, PAGE)
        ),
    ]


def load(directory: Path) -> tuple[Study, list[Outcome]]:
    """A study that has run. InputError if the file is not valid."""
    file = directory / FILE
    try:
        document = json.loads(text_content(file, _BYTES_MAX, "a study that has run"))
        if document["format"] != _FORMAT:
            raise InputError(f"{file}: a study of format {document['format']}, expected {_FORMAT}")
        study = parse(Entry(str(document["name"]), file, str(document["text"])))
        rows = {row["part"]: row for row in document["parts"]}
        outcomes = [_outcome(directory, part, rows[part.name]) for part in study.parts]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{file}: not a study that 'blklab run' wrote ({error})") from error
    return study, outcomes


def summary(
    study: Study, outcomes: Sequence[Outcome], judgements: Sequence[Judgement]
) -> dict[str, Any]:
    """Plain data, for ``--json``. Figures are in `unit`; unknown values are null."""
    return {
        "parts": [
            {
                "part": outcome.part,
                "rig": outcome.rig,
                "ran": outcome.results is not None,
                "skipped": [asdict(skip) for skip in outcome.skipped],
                **_beside(part, outcome),
            }
            for part, outcome in zip(study.parts, outcomes, strict=True)
        ],
        "judgements": plain(judgements),
    }


def to_text(study: Study, outcomes: Sequence[Outcome], judgements: Sequence[Judgement]) -> str:
    """The file that `load` reads, besides the results of the parts."""
    # The file's path differs on another machine.
    head = {"format": _FORMAT, "name": study.name, "text": study.file.text}
    return json.dumps(head | summary(study, outcomes, judgements), indent=1, allow_nan=False) + "\n"


def _beside(part: Part, outcome: Outcome) -> dict[str, Any]:
    """Only what is not as in parts without them."""
    found: dict[str, Any] = {}
    if outcome.scale != 1.0:
        found["scale"] = outcome.scale
    if part.tune:
        found["tunables"] = [plain(one) for one in effects(part, outcome)]
    if outcome.simulated is not None:
        found["simulated"] = [asdict(one) | {"verdict": one.text} for one in trust(part, outcome)]
    return found


def _outcome(directory: Path, part: Part, row: dict[str, Any]) -> Outcome:
    results = results_file.load(directory / part.name) if row["ran"] else None
    if results is not None:
        disks = 1 if row["rig"] == LIVE else len(part.disks)
        there = tuple(len(results.setup[kind]) for kind in ("disks", "workloads"))
        if there != (disks, len(part.workloads)):
            raise InputError(
                f"{directory / part.name}: not the results of this part: {there[0]} disks and "
                f"{there[1]} loads, expected {disks} and {len(part.workloads)}"
            )
    folder = directory / part.name / SIMULATED
    beside = results_file.load(folder) if "simulated" in row else None
    return Outcome(
        row["part"],
        row["rig"],
        results,
        tuple(Skipped(**skip) for skip in row["skipped"]),
        beside,
        float(row.get("scale", 1.0)),
    )
