"""Figures of a timeline: per process, and in one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from blklab.base.units import duration_text, number_text
from blklab.timelines.decisions import KINDS, SECTOR_BYTES
from blklab.timelines.timeline import QUEUE, Span, Timeline


@dataclass(frozen=True)
class Share:
    """One process's part of a timeline; times in ns, None without requests."""

    name: str
    requests: int
    bytes: int
    waited_ns: float | None
    """Median queue time."""
    with_disk_ns: float | None
    """Median service time."""
    turns: int
    turn_ns: int
    """Total length of its turns."""
    idle_ns: int
    """Total idling for it."""


def shares(timeline: Timeline) -> list[Share]:
    """The figures of every process, in the order of the rows."""
    found = []
    for row, name in timeline.rows.items():
        if row == QUEUE:
            continue
        own = [r for r in timeline.requests if r.row == row]
        spans = [s for s in timeline.spans if s.row == row]
        turns = [s.end_ns - s.start_ns for s in spans if s.kind == "turn"]
        found.append(
            Share(
                name,
                len(own),
                sum(r.sectors for r in own) * SECTOR_BYTES,
                _median([r.issued_ns - r.queued_ns for r in own]),
                _median([r.completed_ns - r.issued_ns for r in own]),
                len(turns),
                sum(turns),
                sum(s.end_ns - s.start_ns for s in spans if s.kind == "idling"),
            )
        )
    return found


def sentence(timeline: Timeline) -> str:
    """The main observations, in sentences."""
    turns = [span for span in timeline.spans if span.kind == "turn"]
    if turns:
        return _turns(timeline, turns)
    batches = [span for span in timeline.spans if span.kind == "batch"]
    kinds = Counter(decision.kind for decision in timeline.decisions)
    if batches:
        late = _count(kinds["expired"], "request") if kinds["expired"] else "no request"
        return (
            f"{_count(len(batches), 'batch', 'batches')} of reads or writes; {late} had waited "
            f"too long and went first; {_longest(timeline)}."
        )
    if kinds:
        most, count = kinds.most_common(1)[0]
        return (
            f"{_count(sum(kinds.values()), 'decision')}, most often: {KINDS[most].short} "
            f"({count} times); {_longest(timeline)}."
        )
    return f"{_count(len(timeline.requests), 'request')}; {_longest(timeline)}."


def _longest(timeline: Timeline) -> str:
    """The longest queue time of reads and of writes."""
    waits: dict[str, int] = {}
    for request in timeline.requests:
        waited_ns = request.issued_ns - request.queued_ns
        waits[request.op] = max(waits.get(request.op, 0), waited_ns)
    told = [f"{op}s up to {duration_text(waits[op])}" for op in ("read", "write") if waits.get(op)]
    return (
        f"{' and '.join(told)} wait in the scheduler"
        if told
        else "no request waits in the scheduler"
    )


def left_out(timeline: Timeline) -> str:
    """The omissions and the options to see them; empty if there are none."""
    until = seconds(timeline.until_ns)
    parts = []
    if timeline.requests_left_out:
        requests = _count(timeline.requests_left_out, "request")
        parts.append(f"{requests} completed later than {until}")
    if timeline.decisions_left_out:
        parts.append(f"{_count(timeline.decisions_left_out, 'decision')} after {until}")
    if not parts:
        return ""
    return (
        f"left out: {' and '.join(parts)}. Choose another window (--from, --until), fewer "
        f"processes (--process) or more requests (--requests)."
    )


def undecided(timeline: Timeline) -> str:
    """The reason if the rig records no decisions."""
    if timeline.decides:
        return ""
    if timeline.rig != "sim":
        return (
            "a kernel does not report its scheduler's decisions, only when its block layer "
            "queues, dispatches and completes each request; for the decisions use "
            "--rig sim"
        )
    name = timeline.scheduler.partition(":")[0]
    return f"{name} records no decisions: only the requests are shown"


def seconds(at_ns: int) -> str:
    """A point in time of the run, in the form of --from and --until."""
    return f"{at_ns / 1e9:.6f}".rstrip("0").rstrip(".") + "s"


def _turns(timeline: Timeline, spans: Sequence[Span]) -> str:
    whole_ns = max(timeline.until_ns - timeline.from_ns, 1)
    ends = Counter(span.why for span in spans if span.ended)
    processes = len({span.row for span in spans})
    parts = [f"{_count(len(spans), 'turn')} of {_count(processes, 'process', 'processes')}"]
    if ends:
        why, count = ends.most_common(1)[0]
        share = "all" if count == sum(ends.values()) else f"{count} of {sum(ends.values())}"
        parts.append(f"most often one ends because {why} ({share})")
    idle = sum(s.end_ns - s.start_ns for s in timeline.spans if s.kind == "idling")
    parts.append(
        f"the disk idles {number_text(100 * idle / whole_ns)} % of the time"
        if idle
        else "the disk never idles"
    )
    return "; ".join(parts) + "."


def _median(values: Sequence[int]) -> float | None:
    return median(values) if values else None


def _count(count: int, one: str, several: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def text(span_ns: float | None) -> str:
    """A duration, or nothing."""
    return "" if span_ns is None else duration_text(span_ns)
