"""What a timeline shows, in figures: per process, and in one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from blklab.explain.timeline import QUEUE, Span, Timeline
from blklab.units import duration_text


@dataclass(frozen=True)
class Share:
    """One process's part of a timeline; times in ns, None where nothing was there."""

    name: str
    requests: int
    bytes: int
    waited_ns: float | None
    """In the scheduler, the median."""
    with_disk_ns: float | None
    """From there to the end, the median."""
    turns: int
    turn_ns: int
    """All its turns together."""
    idle_ns: int
    """How long the disk was kept idle for it."""


def shares(timeline: Timeline) -> list[Share]:
    """Of every process, in the order of the rows."""
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
                sum(r.sectors for r in own) * 512,
                _median([r.issued_ns - r.queued_ns for r in own]),
                _median([r.completed_ns - r.issued_ns for r in own]),
                len(turns),
                sum(turns),
                sum(s.end_ns - s.start_ns for s in spans if s.kind == "idling"),
            )
        )
    return found


def sentence(timeline: Timeline) -> str:
    """What there is to see, before it is looked at."""
    turns = [span for span in timeline.spans if span.kind == "turn"]
    if turns:
        return _turns(timeline, turns)
    batches = [span for span in timeline.spans if span.kind == "batch"]
    kinds = Counter(decision.kind for decision in timeline.decisions)
    if batches:
        expired = kinds["expired"]
        late = f"{_count(expired, 'request')} had waited too long and went first"
        return f"{_count(len(batches), 'batch', 'batches')} of reads or writes; {late}."
    if kinds:
        most, count = kinds.most_common(1)[0]
        return f"{_count(sum(kinds.values()), 'decision')}, most often: {most} ({count} times)."
    waits = [request.issued_ns - request.queued_ns for request in timeline.requests]
    longest = f"the longest wait in the scheduler is {duration_text(max(waits, default=0))}"
    return f"{_count(len(waits), 'request')}, no decisions; {longest}."


def left_out(timeline: Timeline) -> str:
    """What is not shown and how to see it; empty if all is."""
    parts = [
        _count(count, what)
        for count, what in (
            (timeline.requests_left_out, "request"),
            (timeline.decisions_left_out, "decision"),
        )
        if count
    ]
    if not parts:
        return ""
    return (
        f"{' and '.join(parts)} left out: shown is the time up to "
        f"{seconds(timeline.until_ns)}. Choose another window (--from, --until), fewer "
        f"processes (--process) or more requests (--requests)."
    )


def undecided(timeline: Timeline) -> str:
    """Why there are no decisions, if nobody noted any."""
    if timeline.decides:
        return ""
    if timeline.rig != "sim":
        return (
            "a kernel does not tell what its scheduler decides: shown is what its block layer "
            "tells, when each request is queued, dispatched and completed; for the decisions: "
            "--rig sim"
        )
    name = timeline.scheduler.partition(":")[0]
    return f"{name} decides nothing that could be shown: shown are the requests"


def seconds(at_ns: int) -> str:
    """A moment of the run, as --from and --until take it."""
    return f"{at_ns / 1e9:.6f}".rstrip("0").rstrip(".") + "s"


def _turns(timeline: Timeline, spans: Sequence[Span]) -> str:
    whole_ns = max(timeline.until_ns - timeline.from_ns, 1)
    ends = Counter(span.why for span in spans if span.ended)
    processes = len({span.row for span in spans})
    parts = [f"{_count(len(spans), 'turn')} of {_count(processes, 'process', 'processes')}"]
    if ends:
        why, count = ends.most_common(1)[0]
        parts.append(f"most often one ends because {why} ({count} of {sum(ends.values())})")
    idle = sum(s.end_ns - s.start_ns for s in timeline.spans if s.kind == "idling")
    parts.append(
        f"the disk is kept idle {idle / whole_ns:.0%} of the time"
        if idle
        else "the disk is never kept idle"
    )
    return "; ".join(parts) + "."


def _median(values: Sequence[int]) -> float | None:
    return median(values) if values else None


def _count(count: int, one: str, several: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def text(span_ns: float | None) -> str:
    """A duration, or nothing."""
    return "" if span_ns is None else duration_text(span_ns)
