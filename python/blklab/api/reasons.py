"""Why a scheduler serves a recorded load better than another: which mechanism made the difference.

The figures are of the two replays, whose requests and decisions are kept. A mechanism that a
tunable switches off is named only if the replay without it loses half of the difference, or more;
one without such a tunable only if its own figure accounts for half. Half is meant of ratios, as on
a logarithmic scale.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from blklab.base.units import duration_text, number_text, size_text
from blklab.domain import core
from blklab.domain.experiment import SchedulerSpec, Window
from blklab.timelines.decisions import SECTOR_BYTES, several

if TYPE_CHECKING:
    from blklab.domain.result import Result

MOST = 3
"""Sentences at most."""
KEPT = 1_000_000
"""Requests, and decisions, of a replay that are looked at; of a longer one its beginning."""
WHOLE = Window(0, 2**63 - 1, KEPT)
_HALF = 0.5
_DISTINCT = 1.2
"""A figure that differs by less explains nothing."""
_SAMPLED = 2000
"""Reads whose overtaken writes are counted."""
_NEVER_NS = 10**18
_READ, _WRITE = 0, 1
_OF_READS_AND_WRITES = ("deadline", "mq-deadline", "kyber")
"""Schedulers that keep reads and writes apart."""


@dataclass(frozen=True)
class Side:
    """One of the two schedulers, replayed with its requests and decisions."""

    scheduler: SchedulerSpec
    result: Result
    cost: float
    """The figure that ranks as a cost: ns, or s for each byte."""
    figure: str
    """The same in words."""


@dataclass(frozen=True)
class Reason:
    """A mechanism that made the difference."""

    mechanism: str
    """``idling``, ``weight-raising``, ``limits``, ``reads first``, ``merging`` or ``seeks``."""
    scheduler: str
    """Whose it is: its label."""
    share: float
    """How much of the difference it explains: 1 is all of it."""
    sentence: str


Without = Callable[[SchedulerSpec], "tuple[float, str]"]
"""Replays with another scheduler: its cost, and its figure in words."""


def reasons(
    better: Side, worse: Side, *, is_latency: bool, rotational: bool, without: Without
) -> list[Reason]:
    """The mechanisms that made the difference, the one that explains most first.

    Args:
        better: the scheduler that serves the load better,
        worse: and the one that it is compared with.
        is_latency: latencies rank; else throughput.
        rotational: the disk has an arm, which seeks.
        without: replays with a changed scheduler.
    """
    gap = math.log(worse.cost / better.cost)
    found = []
    for side, other in ((better, worse), (worse, better)):
        for mechanism, settings, used in _switches(side):
            cost, figure = without(_changed(side.scheduler, settings))
            # Without it the better one comes near the worse one, or the worse one near the better.
            share = math.log(cost / side.cost) / gap * (1 if side is better else -1)
            if share >= _HALF:
                off = ", ".join(f"{name}={value}" for name, value in settings)
                named = f"{side.scheduler.label} {used}; without that ({off}) it has {figure}"
                against = f"{side.figure}, {other.scheduler.label} {other.figure}"
                words = f"{named} instead of {against}."
                found.append(Reason(mechanism, side.scheduler.label, share, words))
    if is_latency:
        found += _reads_first(better, worse)
    if not found:
        # Nearer and larger requests may be what the others have led to.
        found += _shorter_service(better, worse, gap, rotational=rotational)
    return sorted(found, key=lambda reason: -reason.share)[:MOST]


def _changed(spec: SchedulerSpec, settings: tuple[tuple[str, str], ...]) -> SchedulerSpec:
    names = {name for name, _ in settings}
    kept = tuple(pair for pair in spec.settings if pair[0] not in names)
    return replace(spec, settings=kept + settings)


_Switch = tuple[str, tuple[tuple[str, str], ...], str]


def _switches(side: Side) -> list[_Switch]:
    """Mechanisms that were used, the settings without them, and how much they were used."""
    found: list[_Switch] = []
    result = side.result
    name = side.scheduler.name
    if name == "bfq":
        if told := _idling(result):
            found.append(("idling", (("slice_idle", "0"), ("slice_idle_us", "0")), told))
        if told := _raised(result):
            found.append(("weight-raising", (("low_latency", "0"),), told))
    if name == "cfq" and (told := _idling(result)):
        found.append(("idling", (("slice_idle", "0"), ("group_idle", "0")), told))
    if name == "kyber" and (told := _held_back(result)):
        never = str(_NEVER_NS)
        found.append(("limits", (("read_lat_nsec", never), ("write_lat_nsec", never)), told))
    return found


def _named(result: Result) -> list[tuple[int, int, str, int, int]]:
    """The decisions with their names."""
    kinds = core.decision_kinds()
    columns = (column.tolist() for column in result.decisions.columns().values())
    return [
        (at_ns, process, kinds[kind], a, b)
        for at_ns, process, kind, a, b in zip(*columns, strict=True)
    ]


def _job(result: Result, process: int) -> str:
    return result.jobs[process].name if process >= 0 else "the kernel"


def _idling(result: Result) -> str:
    """How often and how long for which process; empty if it did not idle."""
    begun: dict[int, int] = {}
    counts: Counter[int] = Counter()
    lasted: Counter[int] = Counter()
    for at_ns, process, name, _, _ in _named(result):
        if name == "idle-start":
            begun[process] = at_ns
        elif name.startswith("idle-end") and process in begun:
            counts[process] += 1
            lasted[process] += at_ns - begun.pop(process)
    if not counts:
        return ""
    [(process, _)] = counts.most_common(1)
    others = f" (and for {len(counts) - 1} more)" if len(counts) > 1 else ""
    return (
        f"idled for {_job(result, process)} {_times(counts[process])}, "
        f"{duration_text(lasted[process])} in all{others}"
    )


def _raised(result: Result) -> str:
    counts = Counter(
        process
        for _, process, name, _, _ in _named(result)
        if name.startswith("weight-raised-") and name != "weight-raised-end"
    )
    if not counts:
        return ""
    [(process, count)] = counts.most_common(1)
    others = f" (and of {len(counts) - 1} more)" if len(counts) > 1 else ""
    return f"raised the weight of {_job(result, process)} {_times(count)}{others}"


def _held_back(result: Result) -> str:
    """How often and how long which operation; of several the one that was held back for longest."""
    begun: dict[int, int] = {}
    counts: Counter[int] = Counter()
    lasted: Counter[int] = Counter()
    depth: dict[int, int] = {}
    for at_ns, _, name, op, limit in _named(result):
        if name == "held-back":
            begun.setdefault(op, at_ns)
            depth[op] = min(depth.get(op, limit), limit)
            counts[op] += 1
        elif name == "let-go" and op in begun:
            lasted[op] += at_ns - begun.pop(op)
    for op, at_ns in begun.items():
        lasted[op] += result.duration_ns - at_ns
    if not counts:
        return ""
    [(op, ns)] = lasted.most_common(1)
    return (
        f"held back {several(op)} {_times(counts[op])}, {duration_text(ns)} in all, with at most "
        f"{depth[op]} at the disk"
    )


def _reads_first(better: Side, worse: Side) -> list[Reason]:
    """Reads overtake writes in a scheduler that keeps them apart, and so wait less."""
    if better.scheduler.name not in _OF_READS_AND_WRITES:
        return []
    ours, theirs = _overtaken(better.result), _overtaken(worse.result)
    if ours is None or theirs is None or ours < 1 or ours < _DISTINCT * theirs:
        return []
    (own_ns, own_whole), (their_ns, their_whole) = (_reads(side.result) for side in (better, worse))
    if their_whole <= own_whole * _DISTINCT:
        return []
    share = (their_ns - own_ns) / (their_whole - own_whole)
    if share < _HALF:
        return []
    expired = sum(name == "expired" for _, _, name, _, _ in _named(better.result))
    late = f", and {_times(expired)} a request's deadline expired" if expired else ""
    return [
        Reason(
            "reads first",
            better.scheduler.label,
            share,
            f"{better.scheduler.label} served reads before writes: a read overtook "
            f"{number_text(ours)} writes, under {worse.scheduler.label} {number_text(theirs)}; the "
            f"disk began 99 % of reads within {duration_text(own_ns)} instead of "
            f"{duration_text(their_ns)}{late}.",
        )
    ]


def _reads(result: Result) -> tuple[float, float]:
    """99th percentiles of reads: until the disk begins, and in all."""
    trace = result.detail
    read = trace.op == _READ
    queued = trace.queued_ns[read]
    began = (trace.began_ns if len(trace.began_ns) else trace.issued_ns)[read]
    waits, latencies = began - queued, trace.completed_ns[read] - queued
    return float(np.percentile(waits, 99)), float(np.percentile(latencies, 99))


def _overtaken(result: Result) -> float | None:
    """Writes that came before a read and that the disk began after it, mean; None without reads or
    writes."""
    trace = result.detail
    began = trace.began_ns if len(trace.began_ns) else trace.issued_ns
    read, write = trace.op == _READ, trace.op == _WRITE
    if not read.any() or not write.any():
        return None
    order = np.argsort(trace.queued_ns[write], kind="stable")
    queued, begins = trace.queued_ns[write][order], began[write][order]
    # A write that has begun at a time cannot be overtaken later: only those from here on matter.
    longest = int(np.max(begins - queued))
    reads = np.flatnonzero(read)
    chosen = reads[:: max(1, len(reads) // _SAMPLED)]
    counts = []
    for place in chosen:
        came, at = trace.queued_ns[place], began[place]
        first, last = np.searchsorted(queued, [came - longest, came])
        counts.append(int(np.count_nonzero(begins[first:last] > at)))
    return float(np.mean(counts))


@dataclass(frozen=True)
class _Service:
    """How the disk worked."""

    ns_per_byte: float
    """At the disk, from the begin of each request."""
    bytes_per_request: float
    seek_bytes: float
    """Mean distance from the end of a request to the next, in the order in which they began."""
    requests: int


def _service(result: Result) -> _Service | None:
    trace = result.detail
    moved = trace.sectors > 0
    if np.count_nonzero(moved) <= 1:
        return None
    began = (trace.began_ns if len(trace.began_ns) else trace.issued_ns)[moved]
    order = np.argsort(began, kind="stable")
    sector, sectors = trace.sector[moved][order], trace.sectors[moved][order]
    # Requests that a disk has at once take time together.
    ends = np.maximum.accumulate(trace.completed_ns[moved][order])
    begins = np.maximum(began[order], np.concatenate(([0], ends[:-1])))
    busy_ns = float(np.sum(np.maximum(ends - begins, 0)))
    size = float(np.sum(sectors)) * SECTOR_BYTES
    seek = np.abs(sector[1:] - (sector[:-1] + sectors[:-1])) * SECTOR_BYTES
    return _Service(busy_ns / size, size / len(sector), float(np.mean(seek)), len(sector))


def _shorter_service(better: Side, worse: Side, gap: float, *, rotational: bool) -> list[Reason]:
    """The disk needs less time for the same bytes, since requests are larger or nearer."""
    ours, theirs = _service(better.result), _service(worse.result)
    if ours is None or theirs is None or ours.ns_per_byte <= 0 or theirs.ns_per_byte <= 0:
        return []
    share = math.log(theirs.ns_per_byte / ours.ns_per_byte) / gap
    if share < _HALF:
        return []
    faster = (
        f"the disk took {duration_text(ours.ns_per_byte * 2**20)} for each MiB instead of "
        f"{duration_text(theirs.ns_per_byte * 2**20)}"
    )
    label, other = better.scheduler.label, worse.scheduler.label
    if ours.bytes_per_request >= _DISTINCT * theirs.bytes_per_request:
        return [
            Reason(
                "merging",
                label,
                share,
                f"{label} merged more: {ours.requests:,} requests of "
                f"{size_text(ours.bytes_per_request)} instead of {theirs.requests:,} of "
                f"{size_text(theirs.bytes_per_request)} under {other}; {faster}.",
            )
        ]
    if rotational and ours.seek_bytes * _DISTINCT <= theirs.seek_bytes:
        return [
            Reason(
                "seeks",
                label,
                share,
                f"{label} sought less far: {size_text(ours.seek_bytes)} from one request to the "
                f"next instead of {size_text(theirs.seek_bytes)} under {other}; {faster}.",
            )
        ]
    return []


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
