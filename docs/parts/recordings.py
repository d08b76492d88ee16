"""Traces and recordings."""

from __future__ import annotations

from blklab import _core
from blklab.domain import recordings
from parts.text import code, table


def trace_formats() -> str:
    """The formats of traces."""
    rows = ((code(row.name), row.about) for row in _core.trace_formats())
    return table(["format", "contents"], rows)


def recording_parameters() -> str:
    """How a recording is replayed."""
    rows = ((code(name), about) for name, about in recordings.PARAMETERS.items())
    return table(["parameter", "meaning"], rows)


def trace_findings() -> str:
    """The kinds of findings about a trace."""
    rows = ((code(row.name), row.weight, row.text) for row in _core.trace_finding_kinds())
    return table(["finding", "weight", "meaning"], rows)


def recording_columns() -> str:
    """The columns of a recording."""
    return table(
        ["column", "type", "meaning"],
        (
            (code(row.name), f"{row.kind}, optional" if row.nullable else row.kind, row.help)
            for row in _core.recording_columns()
        ),
    )
