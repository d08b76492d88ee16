"""Curves of workloads that differ in one number: threads, clients, copies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from blklab.domain.latencies import OPERATION_TEXT
from blklab.domain.sweep import Sweep, sweeps
from blklab.experiment.analyse import Analysis, Cell, Row
from blklab.experiment.statistics import Interval, Unranked
from blklab.report.parts import digits, unit_of


def curves(analysis: Analysis) -> list[dict[str, Any]]:
    """One picture of each disk and sweep: throughput, or a program's figure, and p99."""
    disks: dict[str, dict[str, Cell]] = {}
    for cell in analysis.cells:
        disks.setdefault(cell.disk, {})[cell.workload] = cell
    return [
        _curve(disk, sweep, cells)
        for disk, cells in disks.items()
        for sweep in sweeps(list(cells))
        if len({cells[name].unit for _, name in sweep.members}) == 1
    ]


def _curve(disk: str, sweep: Sweep, by_name: Mapping[str, Cell]) -> dict[str, Any]:
    cells = [by_name[name] for _, name in sweep.members]
    numbers = [number for number, _ in sweep.members]
    operations = {cell.operation for cell in cells}
    # Latencies of reads and of writes do not form one curve.
    operation = operations.pop() if len(operations) == 1 else ""
    p99s_ns = [row.p99.estimate for cell in cells for row in cell.rows]
    known_ns = sorted(value for value in p99s_ns if math.isfinite(value))
    unit, unit_ns = unit_of(known_ns[len(known_ns) // 2] if operation and known_ns else 1e6)
    what = "figure" if cells[0].is_program else "throughput"
    told = [f"Best {what}: {_winners_text(numbers, cells, 'throughput')}."]
    if operation:
        told.append(f"Best p99: {_winners_text(numbers, cells, 'latency')}.")
    return {
        "name": f"{disk}: {sweep.load} over {sweep.parameter}",
        "parameter": sweep.parameter,
        "numbers": numbers,
        "rate": f"{what}, {cells[0].unit}: "
        f"{'more' if cells[0].higher_is_better else 'less'} is better",
        "p99": f"p99 of {OPERATION_TEXT[operation]}, {unit}: less is better" if operation else "",
        "unit": cells[0].unit,
        "p99Unit": unit,
        "told": " ".join(told),
        "lines": {name: _line(name, cells, operation, unit_ns) for name in _schedulers(cells)},
    }


def _schedulers(cells: Sequence[Cell]) -> list[str]:
    return list(dict.fromkeys(row.scheduler for cell in cells for row in cell.rows))


def _line(
    scheduler: str, cells: Sequence[Cell], operation: str, unit_ns: float
) -> dict[str, list[list[float | None]]]:
    rows: list[Row | None] = [
        next((row for row in cell.rows if row.scheduler == scheduler), None) for cell in cells
    ]
    lines = {"rate": [_interval(row.rate if row else None, 1.0) for row in rows]}
    if operation:
        lines["p99"] = [_interval(row.p99 if row else None, unit_ns) for row in rows]
    return lines


def _interval(interval: Interval | None, by: float) -> list[float | None]:
    if interval is None:
        return [None, None, None]
    return digits([value / by for value in (interval.estimate, interval.low, interval.high)])


def _winners_text(numbers: Sequence[int], cells: Sequence[Cell], objective: str) -> str:
    """By the verdicts: `bfq at 4 to 16, none clearly at 32`."""
    verdicts = [cell.verdicts[objective] for cell in cells]
    winners = [
        verdict.short if isinstance(verdict, Unranked) else verdict.winner or "none clearly"
        for verdict in verdicts
    ]
    if len(set(winners)) == 1 and not verdicts[0].winner:
        return f"{winners[0]}, at any number"
    parts = []
    for winner, group in groupby(zip(winners, numbers, strict=True), key=lambda pair: pair[0]):
        at = [number for _, number in group]
        place = f"{at[0]}" if len(at) == 1 else f"{at[0]} to {at[-1]}"
        parts.append(f"{winner} at {place}")
    return ", ".join(parts)
