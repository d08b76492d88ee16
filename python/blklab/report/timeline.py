"""The page of ``blklab explain``: a row for each process, its requests as bars, the scheduler's
decisions behind and above them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from blklab.base.units import duration_text, size_text
from blklab.report.parts import css, environment, plotly, script, script_json
from blklab.timelines import summary, text
from blklab.timelines.decisions import KINDS, SPANS
from blklab.timelines.timeline import QUEUE, Request, Span, Timeline

LANES = 12
"""The number of lanes in a row, with one request each; further requests share the last lane, which
shows only their service time."""
_HEAD, _LOW_HEAD, _BETWEEN = 1.3, 0.4, 0.9
"""The height above a row's lanes, with turns and without, and between rows; a lane is 1 high."""
_UNITS = (("s", 1e9, 5e9), ("ms", 1e6, 5e6), ("us", 1e3, 0.0))


@dataclass
class _Bars:
    """Bars of one kind, as columns."""

    start: list[float] = field(default_factory=list)
    width: list[float] = field(default_factory=list)
    y: list[float] = field(default_factory=list)
    height: list[float] = field(default_factory=list)
    label: list[str] = field(default_factory=list)
    hover: list[str] = field(default_factory=list)

    def add(
        self, start: float, width: float, y: float, height: float, label: str, hover: str
    ) -> None:
        for name, value in zip(self.__dict__, (start, width, y, height, label, hover), strict=True):
            getattr(self, name).append(value)


def page(timeline: Timeline) -> str:
    """The whole page; it needs nothing else."""
    lines = text.lines(timeline)
    return (
        environment()
        .get_template("timeline.html")
        .render(
            title=f"{timeline.load} on {timeline.disk} under {timeline.scheduler}",
            head=text.head(timeline),
            sentence=summary.sentence(timeline),
            notes=[t for t in (summary.undecided(timeline), summary.left_out(timeline)) if t],
            shares=summary.shares(timeline),
            counts=_counts(timeline),
            crowded=_crowded(timeline),
            lines=lines,
            size=size_text,
            spans={kind: SPANS[kind] for kind in SPANS if _has(timeline, kind)},
            text=summary.text,
            data=script_json(payload(timeline)),
            css=css("timeline.css"),
            script=script("timeline.js"),
            plotly=plotly(),
        )
    )


def payload(timeline: Timeline) -> dict[str, Any]:
    """Everything that the page's script draws; times in `unit`, heights in lanes."""
    span_ns = timeline.until_ns - timeline.from_ns
    unit, unit_ns = next((name, ns) for name, ns, least in _UNITS if span_ns >= least)
    rows = _rows(timeline)
    bars: dict[str, _Bars] = {}

    def bar(kind: str, start_ns: int, end_ns: int, place: tuple[float, float], *words: str) -> None:
        start_ns, end_ns = max(start_ns, timeline.from_ns), min(end_ns, timeline.until_ns)
        if end_ns > start_ns:
            width = round((end_ns - start_ns) / unit_ns, 6)
            bars.setdefault(kind, _Bars()).add(
                round(start_ns / unit_ns, 6), width, *place, words[0], words[1]
            )

    for span in timeline.spans:
        row = rows[span.row]
        place = _place_of(span, row)
        bar(_kind_of(span), span.start_ns, span.end_ns, place, _label(span), _told(span))
        if span.kind == "turn":
            middle, height = (row.top + row.bottom) / 2, row.top - row.bottom
            bar("ground", span.start_ns, span.end_ns, (middle, height), "", _told(span))
    for request in timeline.requests:
        row = rows[request.row]
        lane = min(timeline.lanes[request.number], LANES - 1)
        place = (row.top - row.head - lane - 0.5, 0.7)
        for kind, start_ns, end_ns in _stages(request):
            # Overlapping bars are not readable.
            if lane < LANES - 1 or kind != "queued":
                bar(kind, start_ns, end_ns, place, "", _hover(request))
    marks = [d for d in timeline.decisions if not KINDS[d.kind].span]
    return {
        "unit": unit,
        "from": timeline.from_ns / unit_ns,
        "until": timeline.until_ns / unit_ns,
        "first": _first(timeline) / unit_ns,
        "rows": list(map(vars, rows.values())),
        "bars": {kind: vars(columns) for kind, columns in bars.items()},
        "marks": {
            "x": [mark.at_ns / unit_ns for mark in marks],
            "y": [rows[mark.row].top - 0.25 for mark in marks],
            "hover": [mark.words for mark in marks],
        },
    }


@dataclass(frozen=True)
class _Row:
    """A row of the picture: heights from the top, in lanes."""

    name: str
    top: float
    head: float
    """The height of the turns above its lanes."""
    bottom: float


def _rows(timeline: Timeline) -> dict[int, _Row]:
    most = Counter[int]()
    for request in timeline.requests:
        lanes = min(timeline.lanes[request.number] + 1, LANES)
        most[request.row] = max(most[request.row], lanes)
    rows, top = {}, 0.0
    with_turns = {span.row for span in timeline.spans}
    for row, name in timeline.rows.items():
        head = _HEAD if row in with_turns else _LOW_HEAD
        bottom = top - head - (0 if row == QUEUE else max(most[row], 1))
        rows[row] = _Row(name, top, head, bottom)
        top = bottom - _BETWEEN
    return rows


def _place_of(span: Span, row: _Row) -> tuple[float, float]:
    """Middle and height of a band: turns above the lanes, idling across the whole row."""
    if span.kind == "idling":
        lanes = row.top - row.head
        return (lanes + row.bottom) / 2, lanes - row.bottom
    if span.kind in ("turn", "batch"):
        return row.top - 0.65, 1.0
    return row.top - row.head + 0.05, 0.22


def _kind_of(span: Span) -> str:
    if span.kind == "batch":
        return f"batch of {_label(span)}"
    return span.kind


def _label(span: Span) -> str:
    """The text in a band that is wide enough."""
    if span.kind == "batch":
        return "writes" if "writes" in span.began else "reads"
    return span.why if span.kind == "turn" else ""


def _told(span: Span) -> str:
    what = f"{span.of} {span.kind}".strip()
    parts = [f"{what}, {duration_text(span.end_ns - span.start_ns)}", span.began, span.ended]
    return "\n".join(part for part in parts if part)


def _stages(request: Request) -> Iterable[tuple[str, int, int]]:
    op = "read" if request.op == "read" else "write"
    yield "queued", request.queued_ns, request.issued_ns
    began_ns = request.began_ns
    if began_ns is None:
        yield f"at the disk: {op}", request.issued_ns, request.completed_ns
    else:
        yield f"dispatched: {op}", request.issued_ns, began_ns
        yield f"on disk: {op}", began_ns, request.completed_ns


def _hover(request: Request) -> str:
    began = request.began_ns
    stages = [("in the scheduler", request.queued_ns, request.issued_ns)]
    if began is None:
        stages.append(("at the disk", request.issued_ns, request.completed_ns))
    else:
        stages.append(("in the disk's queue", request.issued_ns, began))
        stages.append(("on disk", began, request.completed_ns))
    told = [f"{what} {duration_text(end - start)}" for what, start, end in stages]
    return "\n".join([f"#{request.number} {request.words}", *told])


_AT_FIRST = 120
"""The number of requests in the initial view: more would be too thin to distinguish."""


def _first(timeline: Timeline) -> int:
    """The end of the initial view."""
    if len(timeline.requests) <= 2 * _AT_FIRST:
        return timeline.until_ns
    return min(timeline.requests[_AT_FIRST].completed_ns, timeline.until_ns)


def _counts(timeline: Timeline) -> list[tuple[str, int]]:
    """Decisions by kind, the most frequent first."""
    told = [KINDS[d.kind] for d in timeline.decisions]
    # For a turn its end is more informative, for everything else its beginning.
    return Counter(
        f"turn ends: {kind.short}" if kind.span == "turn" else kind.short
        for kind in told
        if kind.edge != ("begin" if kind.span == "turn" else "end")
    ).most_common()


def _crowded(timeline: Timeline) -> bool:
    return max(timeline.lanes.values(), default=0) >= LANES


def _has(timeline: Timeline, kind: str) -> bool:
    return any(span.kind == kind for span in timeline.spans)
