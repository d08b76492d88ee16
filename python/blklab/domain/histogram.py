"""Latency histograms, and fio's buckets for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from blklab.domain.tables import Table

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

# fio's stat.h: 64 buckets per power of two, 29 groups of them.
_BUCKET_BITS = 6
_BUCKETS = 29 << _BUCKET_BITS


@dataclass(frozen=True, eq=False, repr=False)
class Histogram(Table):
    """Counts by latency: non-empty buckets, rising. Columns ``value_ns`` and ``count``."""

    value_ns: Ints
    """Highest latency of this bucket, ns."""
    count: Ints
    """I/Os in it."""

    @property
    def total(self) -> int:
        """I/Os in all buckets."""
        return int(self.count.sum())

    def percentiles(self, percent: Sequence[float] | Floats) -> Ints:
        """The latencies in ns that `percent` of the I/Os did not exceed.

        fio's rule: the first bucket at which the running sum reaches the share. Raises
        ValueError if the histogram is empty.
        """
        if not len(self.count):
            raise ValueError("an empty histogram has no percentiles")
        running = np.cumsum(self.count)
        wanted = np.asarray(percent, dtype=np.float64) / 100.0 * running[-1]
        place = np.searchsorted(running, wanted, side="left")
        found: Ints = self.value_ns[np.minimum(place, len(running) - 1)]
        return found

    def percentile(self, percent: float) -> int:
        """One percentile, ns."""
        return int(self.percentiles([percent])[0])

    def cdf(self) -> tuple[Ints, Floats]:
        """Latencies in ns and the share (0 to 1) of I/Os that did not exceed each."""
        running = np.cumsum(self.count)
        return self.value_ns, running / running[-1] if len(running) else running.astype(np.float64)

    def folded(self) -> Histogram:
        """The same counts in fio's buckets, each under the value that fio prints for it."""
        index, place = np.unique(fio_bucket(self.value_ns), return_inverse=True)
        count = np.zeros(len(index), dtype=np.int64)
        np.add.at(count, place, self.count)
        return Histogram(fio_bucket_value(index), count)

    @staticmethod
    def empty() -> Histogram:
        """An empty histogram."""
        return Histogram(np.zeros(0, np.int64), np.zeros(0, np.int64))

    @staticmethod
    def merged(parts: Iterable[Histogram]) -> Histogram:
        """The sum of all parts."""
        several = [part for part in parts if len(part.count)]
        if not several:
            return Histogram.empty()
        values = np.concatenate([part.value_ns for part in several])
        value_ns, place = np.unique(values, return_inverse=True)
        count = np.zeros(len(value_ns), dtype=np.int64)
        np.add.at(count, place, np.concatenate([part.count for part in several]))
        return Histogram(value_ns, count)

    def columns(self) -> dict[str, Ints]:
        """The columns by name."""
        return {"value_ns": self.value_ns, "count": self.count}

    def __repr__(self) -> str:
        if not len(self.count):
            return "Histogram(empty)"
        p50, p99 = self.percentiles([50.0, 99.0]).tolist()
        return f"Histogram({self.total} I/Os, p50 {p50} ns, p99 {p99} ns)"


def fio_bucket(value_ns: Ints) -> Ints:
    """Number of the bucket into which fio counts each latency (`plat_val_to_idx` in stat.c)."""
    # frexp is exact up to 2**53 ns, which is a hundred days.
    exponent = np.frexp(value_ns.astype(np.float64))[1].astype(np.int64)
    dropped_bits = np.maximum(exponent - 1 - _BUCKET_BITS, 0)
    in_group = (value_ns >> dropped_bits) & ((1 << _BUCKET_BITS) - 1)
    wide = ((dropped_bits + 1) << _BUCKET_BITS) + in_group
    small = value_ns < (2 << _BUCKET_BITS)
    return np.minimum(np.where(small, value_ns, wide), _BUCKETS - 1)


def fio_bucket_value(index: Ints) -> Ints:
    """The latency that fio prints for a bucket: its middle (`plat_idx_to_val` in stat.c)."""
    dropped_bits = np.maximum((index >> _BUCKET_BITS) - 1, 0)
    first = np.int64(1) << (dropped_bits + _BUCKET_BITS)
    in_group = index & ((1 << _BUCKET_BITS) - 1)
    half = (np.int64(1) << dropped_bits) >> 1
    return np.where(index < (2 << _BUCKET_BITS), index, first + (in_group << dropped_bits) + half)
