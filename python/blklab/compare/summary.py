"""An analysis as plain data, for ``--json``: rankings, verdicts, recommendations."""

from __future__ import annotations

import math
from typing import Any

from blklab.compare.analyse import Analysis, Cell, Row
from blklab.compare.measurement import PERCENTILES
from blklab.compare.words import sentence
from blklab.stages import PERCENTILES as STAGE_PERCENTILES
from blklab.stages import Spread
from blklab.statistics import Interval, Verdict


def summarise(analysis: Analysis) -> dict[str, Any]:
    """Units are in the names; what is not known is null."""
    return {
        "objective": analysis.objective,
        "cells": [_cell(cell) for cell in analysis.cells],
        "recommendations": {
            disk: {name: _verdict(verdict, name) for name, verdict in verdicts.items()}
            for disk, verdicts in analysis.recommendations.items()
        },
        "notes": list(analysis.notes),
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "disk": cell.disk,
        "workload": cell.workload,
        "latency_of": cell.operation or None,
        "figure_unit": cell.unit if cell.is_program else None,
        "figure_higher_is_better": cell.higher_is_better if cell.is_program else None,
        "interval_coverage": cell.interval_coverage,
        "ranking": [_row(row, cell) for row in cell.rows],
        "verdicts": {name: _verdict(verdict, name) for name, verdict in cell.verdicts.items()},
    }


def _row(row: Row, cell: Cell) -> dict[str, Any]:
    percentiles = zip(PERCENTILES, row.percentiles_ns, strict=True)
    return {
        "scheduler": row.scheduler,
        "figure": _interval(row.rate) if cell.is_program else None,
        "bytes_per_s": _interval(row.bytes_per_s),
        "ios_per_s": row.ios_per_s,
        "latency_mean_ns": _known(row.mean_ns),
        "latency_percentiles_ns": {f"{p:g}": _known(value) for p, value in percentiles},
        "latency_p99_ns": _interval(row.p99),
        "throughput_spread": _known(row.spread),
        "requests": {
            name: {
                "count": of.requests,
                "one_in": of.one_in,
                "queue_ns": _spread(of.queue),
                "disk_ns": _spread(of.disk),
            }
            for name, of in row.stages.items()
        },
    }


def _spread(spread: Spread) -> dict[str, Any]:
    percentiles = zip(STAGE_PERCENTILES, spread.percentiles_ns, strict=True)
    return {
        "min": spread.min_ns,
        "max": spread.max_ns,
        "mean": spread.mean_ns,
        "stddev": spread.stddev_ns,
        "percentiles": {f"{p:g}": value for p, value in percentiles},
    }


def _verdict(verdict: Verdict | None, objective: str) -> dict[str, Any]:
    text = {"text": sentence(verdict, objective)}
    if verdict is None:
        return {"winner": None, "leads": [], "behind": {}, "visible_ratio": None} | text
    return {
        "winner": verdict.winner,
        "leads": list(verdict.leads),
        "behind": {name: _interval(gap) for name, gap in verdict.behind.items()},
        "visible_ratio": _known(verdict.visible),
    } | text


def _interval(interval: Interval) -> dict[str, float | None]:
    return {
        "estimate": _known(interval.estimate),
        "low": _known(interval.low),
        "high": _known(interval.high),
    }


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
