"""A window of a run as rows of requests, decisions and spans between them."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from blklab.base.units import size_text
from blklab.domain import core
from blklab.domain.result import KERNEL_PROCESS, Decisions, Result, Trace
from blklab.timelines.decisions import KINDS, OPERATIONS, SECTOR_BYTES, Note, several

QUEUE = -2
"""The row for events of the whole queue."""
KERNEL = "kernel"
"""Name of the row of the kernel's own writeback and flushes."""
SCHEDULER = "(scheduler)"
ROWS = 32
"""With more processes than these, idle processes have no row."""


@dataclass(frozen=True)
class Request:
    """One request; the times of its steps, ns, rise."""

    number: int
    """From 1, in the order of queueing."""
    row: int
    op: str
    sector: int
    sectors: int
    queued_ns: int
    issued_ns: int
    began_ns: int | None
    """When the disk began to serve it; None if only the disk knows."""
    completed_ns: int
    inserted_ns: int | None = None
    """When it came into the scheduler; None if that is not recorded apart from its queueing."""
    device: str = ""
    """Its device, if several were recorded; else empty."""

    @property
    def words(self) -> str:
        """Its operation, size and position."""
        if self.op == "flush":
            return "flush"
        place = f"{self.sector * SECTOR_BYTES / 1e9:.3f} GB"
        return f"{self.op} {size_text(self.sectors * SECTOR_BYTES)} at {place}"


@dataclass(frozen=True)
class Decision:
    """A decision of the scheduler."""

    at_ns: int
    row: int
    kind: str
    words: str


@dataclass(frozen=True)
class Span:
    """A span, clipped to the window."""

    kind: str
    of: str
    """The operation: ``reads`` that are held back; else empty."""
    row: int
    start_ns: int
    end_ns: int
    began: str = ""
    """Its beginning, in words, even if it was before the window."""
    ended: str = ""
    """Its end, in words; empty if it is after the window."""
    why: str = ""
    """The same, short."""


@dataclass(frozen=True)
class Timeline:
    """A window of a run. Requests by `queued_ns`, decisions by `at_ns`."""

    load: str
    """Its name, as are the next three."""
    disk: str
    scheduler: str
    rig: str
    run_ns: int
    """Length of the run."""
    from_ns: int
    """The window's begin, after the run's begin."""
    until_ns: int
    """The window's end, likewise."""
    rows: dict[int, str]
    """Process, or :data:`KERNEL_PROCESS`, or :data:`QUEUE` -> name, in the order of display."""
    requests: Sequence[Request]
    decisions: Sequence[Decision]
    spans: Sequence[Span] = ()
    """Times between two decisions, such as a queue's turn."""
    requests_left_out: int = 0
    """Counted in the window, but not in `requests`."""
    decisions_left_out: int = 0
    """Counted in the window, but not in `decisions`."""
    decides: bool = True
    """False if the rig records no decisions."""
    lanes: dict[int, int] = field(default_factory=dict)
    """A request's number -> its lane in the row, such that no request hides another."""


def names(jobs: Iterable[str]) -> list[str]:
    """A name for each process: clones of a job are numbered, as fio numbers their files."""
    jobs = list(jobs)
    several = Counter(jobs)
    count: Counter[str] = Counter()
    labels = []
    for job in jobs:
        labels.append(f"{job}.{count[job]}" if several[job] > 1 else job)
        count[job] += 1
    return labels


def chosen(labels: Sequence[str], jobs: Sequence[str], wanted: Set[str]) -> set[int]:
    """The selected processes: by their names, or all of a job by its name; all without a
    selection."""
    both = enumerate(zip(labels, jobs, strict=True))
    meant = {process for process, pair in both if not wanted or not wanted.isdisjoint(pair)}
    return meant | ({KERNEL_PROCESS} if not wanted or KERNEL in wanted else set())


def build(
    result: Result,
    *,
    load: str,
    disk: str,
    scheduler: str,
    rig: str,
    from_ns: int,
    until_ns: int,
    wanted: Collection[str] = (),
    most: int,
) -> Timeline:
    """The timeline in `result` of the processes `wanted`, with up to `most` requests.

    If there are more, the window ends with the completion of the last of these, so that the picture
    is complete. `until_ns` beyond the run's end means its end.
    """
    jobs = [job.name for job in result.jobs]
    labels = names(jobs)
    rows = chosen(labels, jobs, set(wanted))
    labels = [printable(label) for label in labels]
    until_ns = min(until_ns, result.duration_ns)
    if result.decisions_left_out:
        until_ns = min(until_ns, int(result.decisions.at_ns[-1]))
    ended_ns = until_ns if result.decisions_left_out else None
    requests, too_many = _requests(result.detail, rows, most, ended_ns)
    left_out = result.detail_left_out + too_many
    if left_out and requests:
        until_ns = min(until_ns, max(request.completed_ns for request in requests))

    def name_of(process: int) -> str:
        return labels[process] if process >= 0 else KERNEL

    notes, later = _notes(result.decisions, rows, until_ns, name_of)
    decisions = [
        Decision(n.at_ns, _row(n), n.name, KINDS[n.name].words(n))
        for n in notes
        if n.at_ns >= from_ns
    ]
    used = {r.row for r in requests} | {d.row for d in decisions}
    processes = [p for p in range(len(labels)) if p in rows] + [KERNEL_PROCESS]
    idle_too = len(processes) <= ROWS
    return Timeline(
        load=printable(load),
        disk=printable(disk),
        scheduler=printable(scheduler),
        rig=rig,
        run_ns=result.duration_ns,
        from_ns=from_ns,
        until_ns=until_ns,
        rows={p: name_of(p) for p in processes if p in used or (p >= 0 and idle_too)}
        | ({QUEUE: SCHEDULER} if QUEUE in used else {}),
        requests=requests,
        decisions=decisions,
        spans=_spans(notes, from_ns, until_ns),
        requests_left_out=left_out,
        decisions_left_out=(result.decisions_left_out or 0) + later,
        decides=result.decisions_left_out is not None,
        lanes=lanes(requests),
    )


def printable(name: str) -> str:
    """A name without control characters."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)


def _requests(
    trace: Trace, rows: Set[int], most: int, ended_ns: int | None
) -> tuple[list[Request], int]:
    """The requests in `rows` that complete first, by `ended_ns` if given, in the order of queueing,
    and the number of others. Runs record many requests; only these few are processed one by one."""
    order = np.lexsort((trace.issued_ns, trace.queued_ns))
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(1, len(order) + 1)
    own = order[np.isin(trace.process[order], list(rows))]
    first = own[np.argsort(trace.completed_ns[own], kind="stable")][:most]
    if ended_ns is not None:
        first = first[trace.completed_ns[first] <= ended_ns]
    kept = first[np.argsort(number[first])]
    began = trace.began_ns if len(trace.began_ns) else None
    columns = zip(
        number[kept].tolist(),
        trace.process[kept].tolist(),
        trace.op[kept].tolist(),
        trace.sector[kept].tolist(),
        trace.sectors[kept].tolist(),
        trace.queued_ns[kept].tolist(),
        trace.issued_ns[kept].tolist(),
        [None] * len(kept) if began is None else began[kept].tolist(),
        trace.completed_ns[kept].tolist(),
        strict=True,
    )
    found = [Request(row[0], row[1], OPERATIONS[row[2]], *row[3:]) for row in columns]
    return found, len(own) - len(kept)


def _notes(
    decisions: Decisions, rows: Set[int], until_ns: int, name_of: Callable[[int], str]
) -> tuple[list[Note], int]:
    """The decisions of `rows` and of the queue up to `until_ns`, and the number of later ones.
    First come earlier decisions that began a span of the window."""
    kinds = core.decision_kinds()
    of_queue = [number for number, name in enumerate(kinds) if KINDS[name].of_queue]
    own = np.isin(decisions.process, list(rows)) | np.isin(decisions.kind, of_queue)
    shown = own & (decisions.at_ns <= until_ns)
    columns = (column[shown].tolist() for column in decisions.columns().values())
    notes = [
        Note(at_ns, process, kinds[kind], a, b, name_of)
        for at_ns, process, kind, a, b in zip(*columns, strict=True)
    ]
    return notes, int(own.sum() - shown.sum())


def _row(note: Note) -> int:
    return QUEUE if KINDS[note.name].of_queue else note.process


def _spans(notes: Iterable[Note], from_ns: int, until_ns: int) -> list[Span]:
    """Pairs of beginning and end; an open span ends where the next begins."""
    spans: list[Span] = []
    open_: dict[tuple[str, str, int], tuple[int, str]] = {}

    def close(key: tuple[str, str, int], at_ns: int, ended: str, why: str) -> None:
        start_ns, began = open_.pop(key)
        spans.append(Span(*key, start_ns, at_ns, began, ended, why))

    for note in notes:
        kind = KINDS[note.name]
        if not kind.span:
            continue
        # Reads and writes are held back separately.
        key = (kind.span, several(note.a) if kind.span == "held back" else "", _row(note))
        words = kind.words(note)
        if kind.edge == "end":
            if key in open_:
                close(key, note.at_ns, words, kind.short)
        else:
            if key in open_:
                close(key, note.at_ns, "", "")
            open_[key] = (max(note.at_ns, from_ns), words)
    for key in list(open_):
        close(key, until_ns, "", "")
    return sorted(spans, key=lambda span: (span.start_ns, span.end_ns))


def lanes(requests: Iterable[Request]) -> dict[int, int]:
    """The lowest lane of its row that is free while the request lasts; `requests` by queue time."""
    rows: dict[int, tuple[list[tuple[int, int]], list[int]]] = {}
    found = {}
    for request in requests:
        used, free = rows.setdefault(request.row, ([], []))
        while used and used[0][0] <= request.queued_ns:
            heapq.heappush(free, heapq.heappop(used)[1])
        lane = heapq.heappop(free) if free else len(used)
        heapq.heappush(used, (request.completed_ns, lane))
        found[request.number] = lane
    return found
