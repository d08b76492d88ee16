"""Cells as plain data, for `--json`, for files and for the documentation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from blklab.agreement.measure import Cell
from blklab.agreement.shares import BOUNDS, shares
from blklab.agreement.verdict import BAR, SHARE, WORST, Verdict, meets
from blklab.domain import core


def exported(
    cells: Sequence[Cell], verdict: Verdict, kernel: str, seed: int, jobs: Mapping[str, str]
) -> dict[str, Any]:
    """Everything that the table shows, and what it was held against; `kernel` is for a person.

    `jobs` are the texts of job files by name, if the cells are not the matrix's.
    """
    rows = [
        asdict(cell)
        | {"off": {what: round(cell.off(what), 6) for what in BAR}, "meets_bar": meets(cell)}
        for cell in cells
    ]
    own = {
        "bounds": BOUNDS,
        "shares": [asdict(row) for row in shares(cells)],
        "jobs": dict(jobs),
    }
    return {
        "version": core.version(),
        "kernel": kernel,
        "seed": seed,
        "bar": {"off": BAR, "share": SHARE, "worst": WORST},
        "good": verdict.good,
        "met": verdict.met,
        "worst": round(verdict.worst, 6),
        "cells": rows,
        **(own if jobs else {}),
    }


def text(data: Mapping[str, Any]) -> str:
    """As a file."""
    return json.dumps(data, indent=1) + "\n"
