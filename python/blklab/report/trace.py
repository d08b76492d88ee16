"""The page of ``blklab trace show --html``: a trace over time, in pictures with one time axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from blklab.base.text import shown
from blklab.base.units import duration_text, number_text, size_text
from blklab.report.parts import css, digits, environment, plotly, script, script_json, unit_of
from blklab.timelines.served import cgroup_name, process_name, process_text

if TYPE_CHECKING:
    from blklab._core import (
        ServedCounts,
        ServedGot,
        ServedSlow,
        TraceOverTime,
        TraceReading,
        TraceServed,
    )

_KINDS = ("reads", "writes", "others")
ROWS = 12
"""Processes, and cgroups, in the tables."""
_GOT = 3
"""Processes that are named for a slow I/O."""
_SECTOR_BYTES = 512
_ROWS_OF_DOUBLING = 4
_PERCENTILES = (50, 99)


@dataclass(frozen=True)
class Drawn:
    """A trace that is drawn."""

    name: str
    reading: TraceReading
    over: TraceOverTime
    served: TraceServed | None
    """By its steps of time; None without completions."""


def page(traces: Sequence[Drawn]) -> str:
    """The whole page of one trace, or of several over each other; it needs nothing else."""
    return (
        environment()
        .get_template("trace.html")
        .render(
            title=" and ".join(shown(one.name) for one in traces),
            traces=[_texts(one) for one in traces],
            rows=ROWS,
            size=size_text,
            text=duration_text,
            process=process_text,
            has_latencies=any(one.reading.q2c_ns.count for one in traces),
            data=script_json(payload(traces)),
            css=css("trace.css"),
            script=script("trace.js"),
            plotly=plotly(),
        )
    )


def _texts(drawn: Drawn) -> dict[str, Any]:
    """What the page says of a trace."""
    reading = drawn.reading
    return {
        "name": shown(drawn.name),
        "sentence": _sentence(reading),
        "head": _head(reading),
        "findings": [finding for finding in reading.findings if finding.weight != "note"],
        "reading": reading,
    }


def payload(traces: Sequence[Drawn]) -> dict[str, Any]:
    """Everything that the page's script draws; times in `unit`."""
    longest_ns = max(one.over.step_ns * len(one.over.ios) for one in traces)
    unit, unit_ns = unit_of(longest_ns / 10)
    columns = [_columns(one.over, unit_ns) for one in traces]
    return {
        "unit": unit,
        "whole": longest_ns / unit_ns,
        "traces": [
            {"name": shown(one.name), **own, "served": _served(one.served, unit_ns)}
            for one, own in zip(traces, columns, strict=True)
        ],
    }


def _columns(over: TraceOverTime, unit_ns: float) -> dict[str, Any]:
    """Columns by step of time, grids by step and row."""
    step_s = over.step_ns / 1e9
    ios = np.array(over.ios, dtype=np.float64) / step_s
    rate = np.array(over.bytes, dtype=np.float64) / step_s / 1e6
    depth = np.array(over.under_way_ns, dtype=np.float64) / over.step_ns
    latencies = np.array(over.latencies, dtype=np.int64)
    bounds_ns = _bounds_ns(over.latency_min_ns, latencies.shape[1])
    seen = np.flatnonzero(latencies.sum(axis=(0, 2)))
    first, last = (int(seen[0]), int(seen[-1]) + 1) if seen.size else (0, 1)
    places = np.array(over.places, dtype=np.int64)
    used = np.flatnonzero(places.sum(axis=(0, 2)))
    rows = int(used[-1]) + 1 if used.size else 1
    return {
        "step": over.step_ns / unit_ns,
        "kinds": [
            {"name": kind, "ios": digits(ios[:, number]), "mb_s": digits(rate[:, number])}
            for number, kind in enumerate(_KINDS)
            if ios[:, number].any()
        ],
        "depth": digits(depth),
        "places": {
            "gb": over.place_sectors * _SECTOR_BYTES * rows / 1e9,
            "reads": places[:, :rows, 0].tolist(),
            "others": places[:, :rows, 1:].sum(axis=2).tolist(),
        },
        "latencies": {
            "low_ms": bounds_ns[first] / 1e6,
            "high_ms": bounds_ns[last] / 1e6,
            "reads": latencies[:, first:last, 0].tolist(),
            "others": latencies[:, first:last, 1:].sum(axis=2).tolist(),
        },
        "percentiles": {
            str(percent): _percentile_ms(latencies.sum(axis=2), bounds_ns, percent)
            for percent in _PERCENTILES
        },
    }


def _served(served: TraceServed | None, unit_ns: float) -> dict[str, Any] | None:
    """What was served in each step, as rows of numbers; times in microseconds."""
    if served is None:
        return None
    several = any(one.number for one in served.cgroups)
    return {
        "processes": [process_name(one) for one in served.processes],
        "cgroups": [cgroup_name(one) for one in served.cgroups] if several else [],
        "of_processes": [_counts(one) for one in served.of_processes],
        "of_cgroups": [_counts(one) for one in served.of_cgroups] if several else [],
        "slow": [_slow(one, unit_ns) for one in served.slow],
    }


def _counts(one: ServedCounts) -> list[int]:
    """In the order in which the script reads them."""
    waits = (one.waited, one.wait_ns // 1000, one.wait_max_ns // 1000)
    disk = (one.completed, one.disk_ns // 1000)
    return [one.step, one.row, one.came, *one.ios, *one.bytes, *waits, *disk]


def _slow(slow: ServedSlow, unit_ns: float) -> dict[str, Any]:
    io = slow.io
    assert io.completed_ns is not None, "only I/Os that complete are kept"
    known = io.issued_ns is not None
    issued_ns = io.queued_ns if io.issued_ns is None else io.issued_ns
    return {
        "step": slow.step,
        "process": io.process,
        "op": io.op,
        "bytes": io.bytes,
        "at": round(io.queued_ns / unit_ns, 6),
        "took": (io.completed_ns - io.queued_ns) / 1e3,
        "waited": (issued_ns - io.queued_ns) / 1e3 if known else None,
        "disk": (io.completed_ns - issued_ns) / 1e3,
        "issued": _got(slow.issued),
        "completed": _got(slow.completed),
    }


def _got(rows: list[ServedGot]) -> dict[str, Any]:
    """The processes with the most bytes, and how many I/Os and processes there are."""
    return {
        "ios": sum(sum(one.ios) for one in rows),
        "rows": [[one.process, *one.ios, *one.bytes] for one in rows[:_GOT]],
        "more": max(len(rows) - _GOT, 0),
    }


def _bounds_ns(least_ns: int, rows: int) -> list[float]:
    """Where each row begins, and the last ends."""
    return [least_ns * 2.0 ** (row / _ROWS_OF_DOUBLING) for row in range(rows + 1)]


def _percentile_ms(counts: Any, bounds_ns: list[float], percent: int) -> list[float | None]:
    """The middle of the row with this percentile, by step; None for a step without I/O."""
    summed = np.cumsum(counts, axis=1)
    whole = summed[:, -1]
    row = (summed < np.ceil(whole * percent / 100)[:, None]).sum(axis=1)
    middles = (np.array(bounds_ns[:-1]) + np.array(bounds_ns[1:])) / 2e6
    return digits(np.where(whole > 0, middles[np.minimum(row, len(middles) - 1)], np.nan))


def _sentence(reading: TraceReading) -> str:
    """What the load is, in one sentence."""
    count = {row.name: row.count for row in reading.operations}
    parts = [
        f"{100 * count[name] / reading.count:.0f} % {name}s"
        for name in sorted(count, key=lambda name: -count[name])[:3]
    ]
    rate = reading.count / max(reading.last_ns, 1) * 1e9
    sequential = f"{100 * reading.sequential / reading.count:.0f} % sequential"
    return (
        f"{reading.count:,} I/Os in {duration_text(max(reading.end_ns, reading.last_ns))}, "
        f"{number_text(rate)} a second: {', '.join(parts)}; {sequential}."
    )


def _head(reading: TraceReading) -> str:
    machine = f", of {shown(reading.machine)}" if reading.machine else ""
    lost = f", {reading.lost:,} events lost" if reading.lost else ""
    return f"{reading.source}{machine}; recorded as {reading.level}{lost}"
