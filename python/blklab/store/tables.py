"""A row for each run, for spreadsheets and data frames: CSV, and Parquet with histograms."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from blklab.domain.check_runs import OPERATIONS
from blklab.domain.measurement import PERCENTILES
from blklab.domain.stages import OPERATIONS as REQUESTS
from blklab.domain.stages import PERCENTILES as STAGE_PERCENTILES
from blklab.domain.stages import Stages
from blklab.errors import InputError
from blklab.store import packing
from blklab.store.read import Comparison

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet would take for something to compute."""


def rows(several: Sequence[Comparison], *, histograms: bool) -> Iterator[dict[str, Any]]:
    """Every run of each, in the order of the plan; times in ns; None where nothing is known."""
    for one in several:
        for run in one.runs:
            measured = run.measurement
            row: dict[str, Any] = {
                "comparison": one.listed.id,
                "uid": one.listed.uid,
                "machine": one.listed.machine,
                "rig": one.listed.rig,
                "disk": measured.disk,
                "workload": measured.workload,
                "scheduler": measured.scheduler,
                "repeat": measured.repeat,
                # 64 bits without a sign, which few tables have.
                "seed": str(measured.seed),
                "number": run.number,
                "begun_at": run.begun_at,
                "ended_at": run.ended_at,
                "duration_ns": measured.duration_ns,
                "bytes_per_s": measured.bytes_per_s,
                "ios_per_s": measured.ios_per_s,
                "figure": measured.figure and measured.figure.value,
                "figure_unit": measured.figure and measured.figure.unit,
                "figure_higher_is_better": measured.figure and measured.figure.higher_is_better,
            }
            for operation in OPERATIONS:
                latency = measured.latencies.get(operation)
                row[f"{operation}_ios"] = latency.ios if latency else 0
                row[f"{operation}_mean_ns"] = latency.mean_ns if latency else None
                for place, percent in enumerate(PERCENTILES):
                    name = f"{operation}_p{percent:g}_ns"
                    row[name] = latency.percentiles_ns[place] if latency else None
                if histograms:
                    row[f"{operation}_value_ns"] = list(latency.value_ns) if latency else []
                    row[f"{operation}_count"] = list(latency.count) if latency else []
            for operation in REQUESTS:
                row |= _requests(operation, measured.stages.get(operation))
            yield row


def _requests(operation: str, of: Stages | None) -> dict[str, Any]:
    """Time in the queue and at the disk."""
    row: dict[str, Any] = {f"{operation}_requests_kept": of.requests if of else 0}
    for stage in ("queue", "disk"):
        spread = getattr(of, stage) if of else None
        name = f"{operation}_in_{stage}"
        row[f"{name}_mean_ns"] = spread.mean_ns if spread else None
        row[f"{name}_stddev_ns"] = spread.stddev_ns if spread else None
        for place, percent in enumerate(STAGE_PERCENTILES):
            row[f"{name}_p{percent:g}_ns"] = spread.percentiles_ns[place] if spread else None
    return row


def csv_text(several: Sequence[Comparison]) -> str:
    """With a line of heads; nothing in it is a formula."""
    out = io.StringIO()
    writer: csv.DictWriter[str] | None = None
    for row in rows(several, histograms=False):
        if writer is None:
            writer = csv.DictWriter(out, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow({name: _harmless(value) for name, value in row.items()})
    return out.getvalue().encode("utf-8", "backslashreplace").decode()


def parquet(several: Sequence[Comparison]) -> bytes:
    """The same with each run's histograms as lists. InputError without pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(
            "--format parquet: pyarrow is not installed: pip install 'blklab[arrow]'"
        ) from error
    table = [
        {
            name: packing.text(value) if isinstance(value, str) else value
            for name, value in row.items()
        }
        for row in rows(several, histograms=True)
    ]
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(table, _schema(pyarrow)), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _schema(arrow: Any) -> Any:
    """Told, not guessed: a column of which nothing is known has its type too."""
    whole, text = arrow.int64(), arrow.string()
    texts = ("uid", "machine", "rig", "disk", "workload", "scheduler")
    fields = [("comparison", whole), *((name, text) for name in texts), ("repeat", whole)]
    fields += [("seed", text), ("number", whole), ("begun_at", text), ("ended_at", text)]
    fields += [("duration_ns", whole), ("bytes_per_s", arrow.float64())]
    fields += [("ios_per_s", arrow.float64()), ("figure", arrow.float64())]
    fields += [("figure_unit", text), ("figure_higher_is_better", arrow.bool_())]
    for operation in OPERATIONS:
        fields += [(f"{operation}_ios", whole), (f"{operation}_mean_ns", arrow.float64())]
        fields += [(f"{operation}_p{percent:g}_ns", whole) for percent in PERCENTILES]
        fields += [(f"{operation}_{name}", arrow.list_(whole)) for name in ("value_ns", "count")]
    for operation in REQUESTS:
        fields += [(f"{operation}_requests_kept", whole)]
        for name in (f"{operation}_in_queue", f"{operation}_in_disk"):
            fields += [(f"{name}_{what}_ns", arrow.float64()) for what in ("mean", "stddev")]
            fields += [(f"{name}_p{percent:g}_ns", whole) for percent in STAGE_PERCENTILES]
    return arrow.schema(fields)


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
