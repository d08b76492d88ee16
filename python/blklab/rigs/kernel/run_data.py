"""The result of a job in a guest: ``run.json`` and ``run.i64``, for :mod:`blklab.domain.result`.

The guest is hostile: scalars are checked by their types, and the columns must match the file's
length.
"""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias, TypedDict

import msgspec
import numpy as np
from msgspec import Meta

from blklab.domain.summaries import Count, RunSummary
from blklab.errors import RunError
from blklab.rigs.kernel.outcome import decoded
from blklab.rigs.kernel.rundir import RunDirectory

_SCALARS_BYTES_MAX = 64 << 20
_VALUE_BYTES = 8
_HISTOGRAM = "_hist"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

_Name: TypeAlias = Annotated[str, Meta(pattern=r"\A[a-z0-9_.]+\Z")]


class _Scalars(TypedDict):
    summary: RunSummary
    columns: list[tuple[_Name, Count]]


_SCALARS = msgspec.json.Decoder(_Scalars)


def _check_texts(summary: RunSummary) -> None:
    for job in summary.jobs:
        if any(map(_CONTROL.search, (job.name, *(text for pair in job.options for text in pair)))):
            raise RunError(
                "the guest's run.json does not have the expected format: control characters"
            )


class GuestRun:
    """See :class:`blklab.domain.result.RunData`. RunError if blklab-guest cannot have written
    it."""

    def __init__(self, run: RunDirectory) -> None:
        try:
            scalars = decoded(run.read("run.json", _SCALARS_BYTES_MAX), _SCALARS, "run.json")
            self._bulk = run.read("run.i64", run.size_mib << 20)
        except FileNotFoundError as error:
            raise RunError(f"the guest left no result: {error.strerror}") from None
        _check_texts(scalars["summary"])
        self.summary = scalars["summary"]
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
        """One column; empty if it is missing."""
        return self._bulk[self._places[name]] if name in self._places else b""
