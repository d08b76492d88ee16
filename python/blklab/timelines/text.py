"""A timeline as lines in order of time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from blklab.base.units import duration_text
from blklab.timelines import summary
from blklab.timelines.timeline import Request, Timeline

_STEPS = ("queued", "dispatched", "on disk", "completed")
# Ends come before beginnings, and decisions before dispatches.
_ORDER = {"completed": 0, "queued": 1, "decision": 2, "dispatched": 3, "on disk": 4}


@dataclass(frozen=True)
class Line:
    """One event of one process."""

    at_ns: int
    process: str
    what: str
    decided: bool
    """A decision of the scheduler; else an event of a request."""


@dataclass(frozen=True)
class _Step:
    at_ns: int
    order: int
    number: int
    step: str
    request: Request


def head(timeline: Timeline) -> str:
    """The title of the timeline."""
    rig = "" if timeline.rig == "sim" else f", rig {timeline.rig}"
    return (
        f"{timeline.load} on {timeline.disk} under {timeline.scheduler}{rig}: "
        f"{summary.seconds(timeline.from_ns)} to {summary.seconds(timeline.until_ns)} "
        f"of {summary.seconds(timeline.run_ns)}"
    )


def lines(timeline: Timeline) -> list[Line]:
    """Everything in the window, in order of time; simultaneous steps of a request form one line."""
    events: list[tuple[tuple[int, int, int], Line | _Step]] = [
        ((d.at_ns, _ORDER["decision"], n), Line(d.at_ns, timeline.rows[d.row], d.words, True))
        for n, d in enumerate(timeline.decisions)
    ]
    for request in timeline.requests:
        events += [((s.at_ns, s.order, s.number), s) for s in _steps(request)]
    events = [e for e in events if timeline.from_ns <= e[0][0] <= timeline.until_ns]
    events.sort(key=lambda event: event[0])
    found: list[Line] = []
    pending: list[_Step] = []
    known: set[int] = set()

    def tell() -> None:
        if pending:
            request = pending[0].request
            # The operation is printed once, at the request's first line.
            new = request.number not in known
            known.add(request.number)
            told = _told(request, [step.step for step in pending], new=new)
            found.append(Line(pending[0].at_ns, timeline.rows[request.row], told, False))
            pending.clear()

    for _, event in events:
        if isinstance(event, _Step):
            last = pending[-1] if pending else None
            if last and (last.number, last.at_ns) != (event.number, event.at_ns):
                tell()
            pending.append(event)
        else:
            tell()
            found.append(event)
    tell()
    return found


def _steps(request: Request) -> Iterator[_Step]:
    times = (request.queued_ns, request.issued_ns, request.began_ns, request.completed_ns)
    for step, at_ns in zip(_STEPS, times, strict=True):
        if at_ns is not None:
            yield _Step(at_ns, _ORDER[step], request.number, step, request)


def _told(request: Request, steps: list[str], *, new: bool) -> str:
    told = f"#{request.number} {', '.join(steps)}"
    if "completed" in steps:
        told += f", {duration_text(request.completed_ns - request.queued_ns)} after it was queued"
    elif "dispatched" in steps and request.issued_ns > request.queued_ns:
        told += f", after {duration_text(request.issued_ns - request.queued_ns)}"
    return f"{told}: {request.words}" if new else told
