"""An analysis as plain data, for ``--json``: rankings, verdicts, recommendations."""

from __future__ import annotations

from typing import Any

from blklab.base.plain import plain
from blklab.domain.measurement import PERCENTILES
from blklab.domain.stages import PERCENTILES as STAGE_PERCENTILES
from blklab.domain.stages import Spread
from blklab.experiment.analyse import Analysis, Cell, Row
from blklab.experiment.stability import Stability
from blklab.experiment.statistics import Answer, Unranked
from blklab.experiment.words import hinge_text, over_time_sentence, sentence


def summarise(analysis: Analysis) -> dict[str, Any]:
    """Units are in the names; unknown values are null."""
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
        "drawn_disks": cell.disks,
        "depends_on": [
            {
                "parameter": hinge.parameter,
                "best": hinge.best,
                "other": hinge.other,
                "ratio_small": hinge.low,
                "ratio_large": hinge.high,
                "threshold": hinge.threshold,
                "text": hinge_text(hinge),
            }
            for hinge in cell.hinges
        ],
    }


def _row(row: Row, cell: Cell) -> dict[str, Any]:
    percentiles = zip(PERCENTILES, row.percentiles_ns, strict=True)
    return {
        "scheduler": row.scheduler,
        "figure": plain(row.rate) if cell.is_program else None,
        "bytes_per_s": plain(row.bytes_per_s),
        "ios_per_s": row.ios_per_s,
        "latency_samples": row.samples,
        "latency_mean_ns": plain(row.mean_ns),
        "latency_percentiles_ns": {f"{p:g}": plain(value) for p, value in percentiles},
        "latency_p99_ns": plain(row.p99),
        "throughput_spread": plain(row.spread),
        "costs": None if row.costs is None else plain(row.costs),
        "over_time": None if row.stability is None else _over_time(row.stability),
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


def _over_time(of: Stability) -> dict[str, Any]:
    return {
        "interval_ns": of.interval_ns,
        "intervals": of.intervals,
        "drifts": [plain(drift) | {"is_shown": drift.is_shown} for drift in of.drifts],
        "pile_ups": [plain(one) for one in of.pile_ups],
        "text": over_time_sentence(of),
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


def _verdict(verdict: Answer, objective: str) -> dict[str, Any]:
    text = {"text": sentence(verdict, objective)}
    if isinstance(verdict, Unranked):
        return {"winner": None, "leads": [], "behind": {}, "visible_ratio": None} | text
    return {
        "winner": verdict.winner,
        "leads": list(verdict.leads),
        "behind": {name: plain(gap) for name, gap in verdict.behind.items()},
        "visible_ratio": plain(verdict.visible),
    } | text
