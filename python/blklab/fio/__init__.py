"""fio 3.33's output, one file per format, from a result of any rig.

Schema, units and rounding are fio's (`stat.c`, `json.c`), so that readers of fio's files can read
these.
"""

from __future__ import annotations

from blklab.errors import InputError, nearest
from blklab.fio import json_format, normal, terse
from blklab.fio.status import Report

FIO_VERSION = json_format.FIO_VERSION
FORMATS = ("normal", "json", "json+", "terse")


def formats(wanted: str) -> tuple[str, ...]:
    """fio's ``--output-format``: one or several, with commas. InputError if unknown."""
    chosen = tuple(part.strip() for part in wanted.split(","))
    for name in chosen:
        if name not in FORMATS:
            raise InputError(f"--output-format: no format '{name}'{nearest(name, FORMATS)}")
    return chosen


def render(report: Report, chosen: tuple[str, ...]) -> str:
    """The report in the requested formats; in fio's order if there are several."""
    parts = []
    if "normal" in chosen:
        parts.append(normal.header(report))
    if "terse" in chosen:
        parts.append(terse.render(report))
    if "json" in chosen or "json+" in chosen:
        parts.append(json_format.render(report, bins="json+" in chosen))
    if "normal" in chosen:
        parts.append(normal.body(report))
    return "".join(parts)
