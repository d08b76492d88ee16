"""A row for each run, for spreadsheets and data frames: CSV, and Parquet with histograms."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from blklab.domain.latencies import OPERATIONS
from blklab.domain.measurement import PERCENTILES
from blklab.domain.rows import COSTS, figures, names
from blklab.domain.stages import OPERATIONS as REQUESTS
from blklab.domain.stages import PERCENTILES as STAGE_PERCENTILES
from blklab.errors import InputError
from blklab.store import packing
from blklab.store.read import Comparison

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters that make a cell a formula in a spreadsheet."""


def rows(several: Sequence[Comparison], *, histograms: bool) -> Iterator[dict[str, Any]]:
    """Every run of each comparison, in the order of the plan; times in ns; None if not known."""
    for one in several:
        for run in one.runs:
            yield {
                "comparison": one.listed.id,
                "uid": one.listed.uid,
                "machine": one.listed.machine,
                "rig": one.listed.rig,
                **names(run.measurement),
                "number": run.number,
                "begun_at": run.begun_at,
                "ended_at": run.ended_at,
                **figures(run.measurement, histograms=histograms),
            }


def csv_text(several: Sequence[Comparison]) -> str:
    """With a header line; no cell is a formula."""
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
    """Explicit types, so that a column without values has its type too."""
    whole, text = arrow.int64(), arrow.string()
    texts = ("uid", "machine", "rig", "disk", "workload", "scheduler")
    fields = [("comparison", whole), *((name, text) for name in texts), ("repeat", whole)]
    fields += [("seed", text), ("number", whole), ("begun_at", text), ("ended_at", text)]
    fields += [("duration_ns", whole), ("bytes_per_s", arrow.float64())]
    fields += [("ios_per_s", arrow.float64()), ("figure", arrow.float64())]
    fields += [("figure_unit", text), ("figure_higher_is_better", arrow.bool_())]
    fields += [(name, whole) for name in COSTS]
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
