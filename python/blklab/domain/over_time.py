"""The course of a long run: figures over equal intervals, and pile-ups.

A *pile-up* is a time in which requests pile up: the queue (requests waiting or in flight) or the
mean completion latency stands above `TIMES` times its usual level, for a window of `WINDOW_NS` at
least. The usual level is the median of all windows. A queue must also have `QUEUE_LEAST` requests,
so that a second request is no pile-up where there is usually one. Windows that follow each other
are one pile-up. A window in which no I/O completes, while requests are queued, has the latency of
the next one in which some do: they have waited for that long.

Windows are as long as the intervals of the rig's series if those are longer (2.6 s in a day of the
simulator), and twice as long, and twice again, until half of them have `WINDOW_IOS` I/Os: the mean
of a few latencies varies by chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from blklab.domain.ranges import AtLeastOne, Count, Mean
from blklab.domain.result import Result

Floats: TypeAlias = npt.NDArray[np.float64]

LEAST_NS = 60 * 10**9
"""Shorter runs have no course over time: their slopes per hour say nothing."""
INTERVALS_LEAST = 128
"""The number of intervals from which the test for drift keeps its level; see
`blklab.experiment.drift`."""
INTERVALS_MOST = 512
TIMES = 3.0
WINDOW_NS = 10**9
QUEUE_LEAST = 4.0
WINDOW_IOS = 10
_WINDOWS_LEAST = 20
"""With fewer, no usual level is known."""
PILE_UPS_MOST = 1000


@dataclass(frozen=True)
class PileUp:
    """A time in which queue or latency stands far above its usual level."""

    start_ns: Count
    duration_ns: AtLeastOne
    queue: Mean
    """Requests waiting or in flight, the mean of its fullest window."""
    latency_ns: Mean
    """The mean completion latency of its slowest window."""


@dataclass(frozen=True)
class PileUps:
    """All pile-ups of a run, and what is usual in it."""

    window_ns: AtLeastOne
    usual_queue: Mean
    """0 if the queue was not recorded."""
    usual_latency_ns: Mean
    """0 if latencies were not recorded."""
    found: tuple[PileUp, ...]
    """The first `PILE_UPS_MOST`, in order of time."""
    count: Count
    longest_ns: Count


@dataclass(frozen=True)
class OverTime:
    """Figures of equal intervals, from the start of the run, without the incomplete last one.
    Columns that were not recorded are empty."""

    interval_ns: AtLeastOne
    intervals: AtLeastOne
    operation: Annotated[str, msgspec.Meta(pattern=r"\A(read|write)\Z")]
    """The operation of `ios` and the percentiles: ``read``, else ``write``."""
    bytes: tuple[Count, ...]
    """Bytes completed to processes, reads and writes together."""
    ios: tuple[Count, ...]
    """I/Os of the operation."""
    mean_ns: tuple[Count, ...]
    """Mean completion latency of reads and writes together; 0 without I/Os."""
    p50_ns: tuple[Count, ...]
    p99_ns: tuple[Count, ...]
    p999_ns: tuple[Count, ...]
    queue_milli: tuple[Count, ...]
    """Requests waiting or in flight, the mean times 1000."""
    pile_ups: PileUps | None = None
    """None if neither queue nor latencies were recorded, or in too few windows."""


COLUMNS = ("bytes", "ios", "mean_ns", "p50_ns", "p99_ns", "p999_ns", "queue_milli")
"""The columns of an `OverTime`."""


@dataclass(frozen=True)
class _Course:
    """Short intervals; a column that was not recorded is None."""

    interval_ns: int
    ios: Floats | None
    latency_sum_ns: Floats | None
    queue: Floats | None

    def grouped(self, count: int) -> _Course:
        """Intervals `count` times as long, without an incomplete last one."""
        queue = None if self.queue is None else _summed(self.queue, count) / count
        ios = None if self.ios is None else _summed(self.ios, count)
        latency = None if self.latency_sum_ns is None else _summed(self.latency_sum_ns, count)
        return _Course(self.interval_ns * count, ios, latency, queue)


def over_time(result: Result) -> OverTime | None:
    """The course of a run of `LEAST_NS` or longer; None for a shorter one, without a series, and
    with fewer than `INTERVALS_LEAST` intervals."""
    course = _course(result) if result.duration_ns >= LEAST_NS else None
    if course is None:
        return None
    table = _percentiles(result) or _without_percentiles(result)
    whole = result.duration_ns // table.interval_ns
    if whole < INTERVALS_LEAST:
        return None
    coarse = course.grouped(table.interval_ns // course.interval_ns)
    none: Floats = np.zeros(0)
    mean_ns, queue_milli = none, none
    if coarse.ios is not None and coarse.latency_sum_ns is not None:
        mean_ns = coarse.latency_sum_ns / np.maximum(coarse.ios, 1)
    if coarse.queue is not None:
        queue_milli = coarse.queue * 1000
    p50, p99, p999 = (_whole(column, whole) for column in table.percentiles_ns)
    return OverTime(
        table.interval_ns,
        whole,
        table.operation,
        _whole(table.bytes, whole),
        _whole(table.ios, whole),
        _whole(mean_ns, whole),
        p50,
        p99,
        p999,
        _whole(queue_milli, whole),
        pile_ups(course.interval_ns, course.ios, course.latency_sum_ns, course.queue),
    )


@dataclass(frozen=True)
class _Table:
    """The long intervals."""

    interval_ns: int
    operation: str
    bytes: Floats
    ios: Floats
    percentiles_ns: tuple[Floats, Floats, Floats]


def _percentiles(result: Result) -> _Table | None:
    """None if they were not recorded."""
    of = result.percentiles
    if len(of.start_ns) < 2:  # noqa: PLR2004
        return None
    if len(of.read_ios):
        ios, columns = of.read_ios, (of.read_p50_ns, of.read_p99_ns, of.read_p999_ns)
    else:
        ios, columns = of.write_ios, (of.write_p50_ns, of.write_p99_ns, of.write_p999_ns)
    p50, p99, p999 = map(_floats, columns)
    operation = "read" if len(of.read_ios) else "write"
    return _Table(int(of.start_ns[1]), operation, _floats(of.bytes), _floats(ios), (p50, p99, p999))


def _without_percentiles(result: Result) -> _Table:
    """The series, with its rows grouped to at most `INTERVALS_MOST`."""
    series = result.series
    rows = result.duration_ns // series.interval_ns
    group = -(-rows // INTERVALS_MOST)
    operation = "read" if series.read_ios.any() else "write"
    ios = series.read_ios if operation == "read" else series.write_ios
    none: Floats = np.zeros(0)
    moved = _filled(series.read_bytes + series.write_bytes, rows) if len(ios) else none
    counted = _filled(ios, rows) if len(ios) else none
    return _Table(
        series.interval_ns * group,
        operation,
        _summed(moved, group),
        _summed(counted, group),
        (none, none, none),
    )


def _course(result: Result) -> _Course | None:
    """The finest series of the run, over its whole intervals; None without one."""
    levels, series = result.levels, result.series
    if len(levels.start_ns) > 1:
        interval_ns = int(levels.start_ns[1])
        rows = result.duration_ns // interval_ns
        ios, latency, queue = (
            _filled(column, rows)
            for column in (levels.ios, levels.clat_sum_ns, levels.depth_milli / 1000)
        )
        return _Course(interval_ns, ios, latency, queue)
    rows = result.duration_ns // series.interval_ns
    has_ios, has_queue = len(series.read_ios), len(series.in_flight_milli)
    if not (has_ios or has_queue):
        return None
    return _Course(
        series.interval_ns,
        _filled(series.read_ios + series.write_ios, rows) if has_ios else None,
        _filled(series.read_clat_sum_ns + series.write_clat_sum_ns, rows) if has_ios else None,
        _filled((series.waiting_milli + series.in_flight_milli) / 1000, rows)
        if has_queue
        else None,
    )


def pile_ups(
    interval_ns: int, ios: Floats | None, latency_sum_ns: Floats | None, queue: Floats | None
) -> PileUps | None:
    """The pile-ups in columns of equal intervals; see the head of the file. None without columns,
    or with too few windows."""
    window = _Course(interval_ns, ios, latency_sum_ns, queue).grouped(-(-WINDOW_NS // interval_ns))
    while window.ios is not None and len(window.ios) >= 2 * _WINDOWS_LEAST:
        if np.median(window.ios) >= WINDOW_IOS:
            break
        window = window.grouped(2)
    above = np.zeros(0, bool)
    usual_queue = usual_latency_ns = 0.0
    waits: Floats = np.zeros(0)
    if window.queue is not None and len(window.queue) >= _WINDOWS_LEAST:
        usual_queue = float(np.median(window.queue))
        above = (window.queue > TIMES * usual_queue) & (window.queue >= QUEUE_LEAST)
    if window.ios is not None and window.latency_sum_ns is not None:
        waits = _waits(window)
        if len(waits) >= _WINDOWS_LEAST and (waits > 0).any():
            usual_latency_ns = float(np.median(waits[waits > 0]))
            slow = waits > TIMES * usual_latency_ns
            above = slow if not len(above) else above | slow
    if not len(above):
        return None
    edges = np.flatnonzero(np.diff(np.concatenate([[0], above.astype(int), [0]])))
    found = [
        PileUp(
            int(first) * window.interval_ns,
            int(end - first) * window.interval_ns,
            float(window.queue[first:end].max()) if window.queue is not None else 0.0,
            float(waits[first:end].max()) if len(waits) else 0.0,
        )
        for first, end in edges.reshape(-1, 2)
    ]
    return PileUps(
        window.interval_ns,
        usual_queue,
        usual_latency_ns,
        tuple(found[:PILE_UPS_MOST]),
        len(found),
        max((one.duration_ns for one in found), default=0),
    )


def _waits(window: _Course) -> Floats:
    """The mean latency of each window; where no I/O completes, that of the next with one if
    requests are queued (or if that is not known), else 0."""
    assert window.ios is not None and window.latency_sum_ns is not None, "looked at before"
    waits = window.latency_sum_ns / np.maximum(window.ios, 1)
    for row in np.flatnonzero(window.ios == 0)[::-1]:
        queued = window.queue is None or window.queue[row] > 0
        if queued and row + 1 < len(waits):
            waits[row] = waits[row + 1]
    return waits


def _floats(column: npt.NDArray[np.generic]) -> Floats:
    return np.asarray(column, np.float64)


def _filled(column: npt.NDArray[np.generic], rows: int) -> Floats:
    """`rows` numbers: nothing happened after the last recorded one."""
    numbers = np.zeros(rows)
    numbers[: len(column)] = column[:rows]
    return numbers


def _summed(column: Floats, count: int) -> Floats:
    whole = len(column) // count
    return np.asarray(column[: whole * count].reshape(whole, count).sum(axis=1), np.float64)


def _whole(column: npt.NDArray[np.generic], rows: int) -> tuple[int, ...]:
    """As whole numbers, `rows` of them; an empty column stays empty."""
    if not len(column):
        return ()
    return tuple(np.rint(_filled(column, rows)).astype(np.int64).tolist())
