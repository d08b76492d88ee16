"""The result of a job that ran in a guest: ``run.json`` and ``run.i64``, as
:mod:`blklab.domain.result` takes them.

The guest is hostile: scalars are read by their types, and the columns must be what is there.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any, TypeAlias, TypedDict

import msgspec
import numpy as np
from msgspec import Meta

from blklab.domain.result import DiskCounters, LatencySummary, SampleSummary
from blklab.errors import RunError
from blklab.rigs.kernel.outcome import Count, decoded
from blklab.rigs.kernel.rundir import RunDirectory

_SCALARS_BYTES_MAX = 64 << 20
_VALUE_BYTES = 8
_HISTOGRAM = "_hist"

_Text: TypeAlias = Annotated[str, Meta(pattern=r"\A[^\x00-\x1f\x7f-\x9f]*\Z")]
_Name: TypeAlias = Annotated[str, Meta(pattern=r"\A[a-z0-9_.]+\Z")]
_TYPES = {"int": Count, "float": float}


def _struct(kind: type) -> type[msgspec.Struct]:
    """The same fields, within the bounds of a column."""
    return msgspec.defstruct(kind.__name__, [(f.name, _TYPES[str(f.type)]) for f in fields(kind)])


_Latency: Any = _struct(LatencySummary)
_Sample: Any = _struct(SampleSummary)
_Counters: Any = _struct(DiskCounters)


class _Direction(TypedDict):
    ios: Count
    bytes: Count
    runtime_ns: Count
    slat: _Latency
    clat: _Latency
    lat: _Latency
    bw: _Sample
    iops: _Sample


class _Job(TypedDict):
    name: _Text
    group: Count
    group_reporting: bool
    options: list[tuple[_Text, _Text]]
    percentiles: list[Annotated[float, Meta(ge=0, le=100)]]
    start_ns: Count
    end_ns: Count
    user_ns: Count
    system_ns: Count
    context_switches: Count
    read: _Direction
    write: _Direction
    trim: _Direction
    sync_lat: _Latency
    depth_levels: list[Count]
    submit_levels: list[Count]
    complete_levels: list[Count]
    latency_levels: list[Count]


class _Summary(TypedDict):
    duration_ns: Count
    jobs: list[_Job]
    disk: _Counters
    series_interval_ns: Count
    overview_stride: Count
    detail_left_out: Count
    decisions_left_out: Count | None


class _Scalars(TypedDict):
    summary: _Summary
    columns: list[tuple[_Name, Count]]


class GuestRun:
    """See :class:`blklab.domain.result.RunData`. RunError if it is not what blklab-guest writes."""

    def __init__(self, run: RunDirectory) -> None:
        try:
            scalars = decoded(run.read("run.json", _SCALARS_BYTES_MAX), _Scalars, "run.json")
            self._bulk = run.read("run.i64", run.size_mib << 20)
        except FileNotFoundError as error:
            raise RunError(f"the guest left no result: {error.strerror}") from None
        self.summary = msgspec.json.encode(scalars["summary"]).decode()
        self._places: dict[str, slice] = {}
        begin = 0
        for name, length in scalars["columns"]:
            end = begin + length * _VALUE_BYTES
            self._places[name] = slice(begin, end)
            begin = end
        if begin != len(self._bulk) or len(self._places) != len(scalars["columns"]):
            raise RunError(f"the guest's run.i64 has {len(self._bulk)} bytes, not {begin}")
        self._check_histograms()

    def _check_histograms(self) -> None:
        for histogram in {name.rpartition(".")[0] for name in self._places}:
            if not histogram.endswith(_HISTOGRAM):
                continue
            values, counts = (
                np.frombuffer(self.column(f"{histogram}.{one}"), dtype="<i8")
                for one in ("value_ns", "count")
            )
            if len(values) != len(counts) or (counts < 0).any() or (np.diff(values) <= 0).any():
                raise RunError(f"the guest's {histogram} is not a histogram")

    def columns(self) -> list[str]:
        """Their names."""
        return list(self._places)

    def column(self, name: str) -> bytes:
        """One of them; none if it is not there."""
        return self._bulk[self._places[name]] if name in self._places else b""
