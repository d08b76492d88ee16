"""Every kind of decision that a scheduler records, in words, and whether it begins or ends a span.
The names are those of ``decisions.rs``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from blklab.base.units import duration_text, size_text

SECTOR_BYTES = 512
OPERATIONS = ("read", "write", "flush", "discard")
"""By the numbers of ``Trace.op``."""

Edge = Literal["begin", "end", ""]
Words = Callable[["Note"], str]


@dataclass(frozen=True)
class Note:
    """One row of :class:`blklab.domain.result.Decisions`."""

    at_ns: int
    process: int
    name: str
    a: int
    b: int
    name_of: Callable[[int], str]
    """A process's name."""


@dataclass(frozen=True)
class Kind:
    """The meaning of a decision."""

    words: Words
    short: str
    """For a mark or a band in a picture."""
    span: str = ""
    """The kind of span: ``turn``, ``idling``, ``raised weight``, ``batch``, ``held back``."""
    edge: Edge = ""
    of_queue: bool = False
    """It concerns the whole queue, not one process."""


SPANS: Mapping[str, str] = {
    "turn": "a process's turn: the disk serves its requests, and injected ones",
    "idling": "the scheduler idles and waits for the process",
    "raised weight": "the process counts for more than its own weight",
    "batch": "requests of one direction are dispatched one after the other",
    "held back": "no more requests of this kind are dispatched until some complete",
}
"""The kinds of spans, in words."""


def _slice_start(note: Note) -> str:
    limits = [_sectors(note.a)] if note.a else []
    limits += [duration_text(note.b)] if note.b else []
    return "its turn begins" + (f": {' and '.join(limits)} at most" if limits else "")


def _sectors(count: int) -> str:
    return size_text(count * SECTOR_BYTES)


def several(op: int) -> str:
    """Requests of this operation."""
    return {0: "reads", 1: "writes", 2: "flushes", 3: "discards"}[op]


def _end(why: str) -> Kind:
    return Kind(
        lambda note: f"its turn ends: {why}" + (f"; it got {_sectors(note.a)}" if note.a else ""),
        why,
        "turn",
        "end",
    )


def _plain(words: str, short: str, span: str = "", edge: Edge = "") -> Kind:
    return Kind(lambda _: words, short, span, edge)


def _raised(why: str, short: str) -> Kind:
    return Kind(
        lambda note: f"its weight is raised {note.a} times: {why}", short, "raised weight", "begin"
    )


def _batch_start(note: Note) -> str:
    starved = ", because they were passed over often enough" if note.b else ""
    return f"a batch of {several(note.a)} begins{starved}"


def _batch_end(note: Note) -> str:
    return f"the batch ends after {note.a} request{'s' if note.a != 1 else ''}"


_CLASSES = ("", "real-time ", "", "idle ")
"""By the numbers of ``ioprio_set(2)``; best effort is what most are."""


def _chosen(what: str) -> Kind:
    def words(note: Note) -> str:
        group = f" of cgroup {note.a}" if note.a else ""
        return f"{_CLASSES[note.b]}{what}{group} are next"

    return Kind(words, f"{what} are next")


KINDS: Mapping[str, Kind] = {
    "slice-start": Kind(_slice_start, "turn begins", "turn", "begin"),
    "slice-timed": Kind(
        lambda note: f"its first request completed: the turn may take {duration_text(note.a)}",
        "its first request completed: the length of its turn is known",
    ),
    "slice-end-no-more-requests": _end("it has no more requests"),
    "slice-end-too-idle": _end("it idled for too long"),
    "slice-end-time-out": _end("its time is over"),
    "slice-end-budget-exhausted": _end("its budget is used up"),
    "slice-end-preempted": _end("another process preempts it"),
    "slice-end-released": _end("its queue is released"),
    "slice-end-handed-over": _end("another continues close to its position"),
    "idle-start": Kind(
        lambda note: (
            f"idling for its next request, {duration_text(max(note.a - note.at_ns, 0))} at most"
        ),
        "idling begins",
        "idling",
        "begin",
    ),
    "idle-end-request": _plain(
        "idling ends: it sent a request", "it sent a request", "idling", "end"
    ),
    "idle-end-time-out": _plain(
        "idling ends: it sent no request in time", "it sent no request in time", "idling", "end"
    ),
    "idle-end-given-up": _plain(
        "idling ends: another process is served", "another process is served", "idling", "end"
    ),
    "weight-raised-interactive": _raised("a user may be waiting for it", "interactive"),
    "weight-raised-soft-real-time": _raised(
        "it sends few requests at regular times (soft real-time)", "soft real-time"
    ),
    "weight-raised-end": _plain(
        "its weight-raising ends", "weight-raising ends", "raised weight", "end"
    ),
    "injected": Kind(
        lambda note: f"its request is injected into the turn of {note.name_of(note.a)}",
        "a request is injected into another's turn",
    ),
    "preempts": Kind(
        lambda note: f"it takes the turn of {note.name_of(note.a)}", "takes the turn of another"
    ),
    "queues-merged": Kind(
        lambda note: f"it shares a queue with {note.name_of(note.a)} from now on",
        "shares a queue with another",
    ),
    "queue-split": _plain("it has its own queue again", "has its own queue again"),
    "large-burst": _plain(
        "it started together with many others and does not count as interactive",
        "started together with many others",
    ),
    "expired": _plain("its request waited too long and goes first", "a request waited too long"),
    "aged": _plain(
        "its request waited so long that it goes before those of a higher class",
        "a request of a low class waited too long",
    ),
    "batch-start": Kind(_batch_start, "batch begins", "batch", "begin", of_queue=True),
    "batch-end": Kind(_batch_end, "batch ends", "batch", "end", of_queue=True),
    "held-back": Kind(
        lambda note: f"{several(note.a)} are held back: at most {note.b} at the disk",
        "held back",
        "held back",
        "begin",
        of_queue=True,
    ),
    "let-go": Kind(
        lambda note: f"{several(note.a)} are no longer held back",
        "no longer held back",
        "held back",
        "end",
        of_queue=True,
    ),
    "depth-changed": Kind(
        lambda note: f"from now on at most {note.b} {several(note.a)} at the disk",
        "another limit at the disk",
        of_queue=True,
    ),
    "async-chosen": _chosen("async requests"),
    "sync-noidle-chosen": _chosen("processes without idling"),
    "sync-chosen": _chosen("processes with idling"),
}
"""By name."""
