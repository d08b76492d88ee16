"""A window of a run as rows of requests, decisions and what lasted between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from dataclasses import dataclass, field

from blklab.explain.decisions import KINDS, OPERATIONS, SECTOR_BYTES, Note, several
from blklab.result import KERNEL_PROCESS, Decisions, Result, Trace
from blklab.rigs import sim
from blklab.units import size_text

QUEUE = -2
"""The row of what concerns the queue as a whole."""
KERNEL = "kernel"
"""Name of the row of its own write-back and flushes."""
SCHEDULER = "(scheduler)"


@dataclass(frozen=True)
class Request:
    """One request; the times of its way, ns, rise."""

    number: int
    """From 1, in the order of queueing."""
    row: int
    op: str
    sector: int
    sectors: int
    queued_ns: int
    issued_ns: int
    began_ns: int | None
    """When the disk began with it; None if only the disk knows."""
    completed_ns: int

    @property
    def words(self) -> str:
        """What it asks for."""
        if self.op == "flush":
            return "flush"
        place = f"{self.sector * SECTOR_BYTES / 1e9:.3f} GB"
        return f"{self.op} {size_text(self.sectors * SECTOR_BYTES)} at {place}"


@dataclass(frozen=True)
class Decision:
    """Something that the scheduler decided."""

    at_ns: int
    row: int
    kind: str
    words: str


@dataclass(frozen=True)
class Span:
    """What lasted, as far as it lies in the window."""

    kind: str
    of: str
    """Of what: ``reads`` that are held back; else empty."""
    row: int
    start_ns: int
    end_ns: int
    began: str = ""
    """How it began, in words; empty if that was before the window."""
    ended: str = ""
    """How it ended; empty if that was behind the window."""
    why: str = ""
    """The same, short."""


@dataclass(frozen=True)
class Timeline:
    """A window of a run. Requests by `queued_ns`, decisions by `at_ns`."""

    load: str
    disk: str
    scheduler: str
    rig: str
    run_ns: int
    from_ns: int
    until_ns: int
    rows: dict[int, str]
    """Process, or :data:`KERNEL_PROCESS`, or :data:`QUEUE` -> name, in the order to be shown."""
    requests: Sequence[Request]
    decisions: Sequence[Decision]
    spans: Sequence[Span] = ()
    requests_left_out: int = 0
    decisions_left_out: int = 0
    decides: bool = True
    """False if nobody has noted decisions."""
    lanes: dict[int, int] = field(default_factory=dict)
    """A request's number -> which lane of its row it is drawn in: none hides another."""


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
    """The processes that are meant: by their names, or all of a job by its; without any, all."""
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
    """What `result` has kept, of the processes `wanted`, up to `most` requests.

    If there are more, the window ends when the last of these is completed, so that what is
    shown is whole. `until_ns` beyond the run's end is its end.
    """
    jobs = [job.name for job in result.jobs]
    labels = names(jobs)
    rows = chosen(labels, jobs, set(wanted))
    until_ns = min(until_ns, result.duration_ns)
    found = [r for r in _requests(result.detail) if r.row in rows]
    by_end = sorted(found, key=lambda request: request.completed_ns)
    left_out = result.detail_left_out + max(0, len(found) - most)
    if left_out and by_end:
        until_ns = min(until_ns, by_end[:most][-1].completed_ns)
    kept = sorted(by_end[:most], key=lambda request: request.number)

    def name_of(process: int) -> str:
        return labels[process] if process >= 0 else KERNEL

    notes = [note for note in _notes(result.decisions, name_of) if _row(note) in rows | {QUEUE}]
    shown = [note for note in notes if note.at_ns <= until_ns]
    decisions = [Decision(n.at_ns, _row(n), n.name, KINDS[n.name].words(n)) for n in shown]
    used = {r.row for r in kept} | {d.row for d in decisions}
    processes = [p for p in range(len(labels)) if p in rows] + [KERNEL_PROCESS]
    return Timeline(
        load=load,
        disk=disk,
        scheduler=scheduler,
        rig=rig,
        run_ns=result.duration_ns,
        from_ns=from_ns,
        until_ns=until_ns,
        rows={p: name_of(p) for p in processes if p >= 0 or p in used}
        | ({QUEUE: SCHEDULER} if QUEUE in used else {}),
        requests=kept,
        decisions=decisions,
        spans=_spans(shown, from_ns, until_ns),
        requests_left_out=left_out,
        decisions_left_out=(result.decisions_left_out or 0) + len(notes) - len(shown),
        decides=result.decisions_left_out is not None,
        lanes=_lanes(kept),
    )


def _requests(trace: Trace) -> list[Request]:
    began = trace.began_ns.tolist() or [None] * len(trace.sector)
    columns = zip(
        trace.process.tolist(),
        trace.op.tolist(),
        trace.sector.tolist(),
        trace.sectors.tolist(),
        trace.queued_ns.tolist(),
        trace.issued_ns.tolist(),
        began,
        trace.completed_ns.tolist(),
        strict=True,
    )
    by_queueing = sorted(columns, key=lambda row: (row[4], row[5]))
    return [
        Request(number, row[0], OPERATIONS[row[1]], *row[2:])
        for number, row in enumerate(by_queueing, 1)
    ]


def _notes(decisions: Decisions, name_of: Callable[[int], str]) -> list[Note]:
    kinds = sim.decision_kinds()
    return [
        Note(at_ns, process, kinds[kind], a, b, name_of)
        for at_ns, process, kind, a, b in zip(
            *(column.tolist() for column in decisions.columns().values()), strict=True
        )
    ]


def _row(note: Note) -> int:
    return QUEUE if KINDS[note.name].of_queue else note.process


def _spans(notes: Iterable[Note], from_ns: int, until_ns: int) -> list[Span]:
    """Each beginning with its end; one that is open when the next begins ends there."""
    spans: list[Span] = []
    open_: dict[tuple[str, str, int], tuple[int, str]] = {}

    def close(key: tuple[str, str, int], at_ns: int, ended: str, why: str) -> None:
        start_ns, began = open_.pop(key, (from_ns, ""))
        spans.append(Span(*key, start_ns, at_ns, began, ended, why))

    for note in notes:
        kind = KINDS[note.name]
        if not kind.span:
            continue
        # Reads and writes are held back apart.
        key = (kind.span, several(note.a) if kind.span == "held back" else "", _row(note))
        words = kind.words(note)
        if kind.edge == "end":
            # An end that was not begun in the window began before it, but not twice.
            if key in open_ or not any((s.kind, s.of, s.row) == key for s in spans):
                close(key, note.at_ns, words, kind.short)
        else:
            if key in open_:
                close(key, note.at_ns, "", "")
            open_[key] = (note.at_ns, words)
    for key in list(open_):
        close(key, until_ns, "", "")
    return sorted(spans, key=lambda span: (span.start_ns, span.end_ns))


def _lanes(requests: Iterable[Request]) -> dict[int, int]:
    """The lowest lane of its row that is free while the request lasts."""
    free_ns: dict[int, list[int]] = {}
    lanes = {}
    for request in requests:
        row = free_ns.setdefault(request.row, [])
        lane = next((n for n, free in enumerate(row) if free <= request.queued_ns), len(row))
        row[lane : lane + 1] = [request.completed_ns]
        lanes[request.number] = lane
    return lanes
