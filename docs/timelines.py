"""Draw a timeline of the docs: ``python docs/timelines.py docs/images/explain-bfq.svg``, or all
of them without a name. It draws the same as ``blklab explain``."""

from __future__ import annotations

import html
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab.domain import specs
from blklab.domain.experiment import Experiment, Window
from blklab.report.timeline import payload
from blklab.rigs import sim
from blklab.timelines import summary
from blklab.timelines.timeline import build
from blklab.timelines.window import KEPT

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
_MOST = 3000


@dataclass(frozen=True)
class Picture:
    """One run, and its drawn window."""

    load: str
    """A workload, or a file of ``examples/``."""
    disk: str
    scheduler: str
    from_ms: int
    until_ms: int
    processes: Sequence[str] = ()


PICTURES = {
    "explain-bfq-turns": Picture(
        "side-by-side", "wd10ezrx:ncq=false", "bfq:low_latency=0", 29000, 29400
    ),
    "explain-bfq-start": Picture("side-by-side", "wd10ezrx:ncq=false", "bfq", 29900, 30300),
    "explain-cfq": Picture("side-by-side", "wd10ezrx:ncq=false", "cfq", 29000, 29400),
    "explain-mq-deadline": Picture(
        "readers-vs-writer", "wd10ezrx:ncq=false", "mq-deadline", 4000, 4400
    ),
}

_WIDTH, _LEFT, _RIGHT, _TOP, _LANE = 840, 96, 12, 64, 11
_TICKS = 6
# Bottom to top. The colours are those of the page, on a ground of their own: a page can be light
# on a dark desktop and the other way round.
_KINDS = {
    "ground": "",
    "idling": "disk kept idle",
    "turn": "turn",
    "batch of reads": "batch of reads",
    "batch of writes": "batch of writes",
    "raised weight": "weight raised",
    "held back": "held back",
    "queued": "waits in the scheduler",
    "dispatched: read": "waits at the disk",
    "dispatched: write": "waits at the disk",
    "on disk: read": "disk reads",
    "on disk: write": "disk writes",
}
_STYLE = """
.page { fill: #ffffff }
text { font: 12px system-ui, sans-serif; fill: #24292f }
.quiet { fill: #57606a } .name { font-weight: 600 } .label { font-size: 10.5px }
.line { stroke: #d0d7de; stroke-width: 1 }
.ground { fill: #1a7f5a; opacity: .13 }
.turn, .batch-of-reads, .batch-of-writes { stroke: #ffffff; stroke-width: .8 }
.turn { fill: #4bb894 }
.idling { fill: url(#hatch) } .hatch { stroke: #d29200; stroke-width: 3 }
.batch-of-reads { fill: #a9cfe8 } .batch-of-writes { fill: #f3c7a6 }
.raised-weight { fill: #c0579a } .held-back { fill: #8a7a00 }
.queued { fill: #b4bac2 } .dispatched-read { fill: #9bd1f2 } .dispatched-write { fill: #f2cb70 }
.on-disk-read { fill: #0072b2 } .on-disk-write { fill: #d55e00 }
.mark { fill: #24292f; stroke: #ffffff }
@media (prefers-color-scheme: dark) {
  .page { fill: #0d1117 }
  text { fill: #e6edf3 } .quiet { fill: #9da7b1 } .line { stroke: #3d444d }
  .turn, .batch-of-reads, .batch-of-writes { stroke: #0d1117 }
  .turn { fill: #1f7d5e } .ground { opacity: .3 }
  .batch-of-reads { fill: #1d4a66 } .batch-of-writes { fill: #6b3f1d }
  .queued { fill: #59616b } .dispatched-read { fill: #1f5d86 } .dispatched-write { fill: #7a5a14 }
  .on-disk-read { fill: #56b4e9 } .on-disk-write { fill: #f0a03c }
  .mark { fill: #e6edf3; stroke: #0d1117 }
}
"""


def picture(name: str) -> str:
    """The SVG of that name; the same on every machine."""
    what = PICTURES[name]
    file = ROOT / "examples" / f"{what.load}.fio"
    window = Window(what.from_ms * 10**6, what.until_ms * 10**6, KEPT)
    entry, disk = specs.workload(file if file.is_file() else what.load), specs.disk(what.disk)
    timeline = build(
        sim.SimRig().run(
            Experiment(entry, disk, specs.scheduler(what.scheduler), 1, window=window)
        ),
        load=what.load,
        disk=what.disk,
        scheduler=what.scheduler,
        rig="sim",
        from_ns=window.from_ns,
        until_ns=window.until_ns,
        wanted=what.processes,
        most=_MOST,
    )
    assert not timeline.requests_left_out, "a picture has room for all of its window"
    return _svg(what, payload(timeline), summary.sentence(timeline))


def _svg(what: Picture, data: dict[str, Any], sentence: str) -> str:
    bottom = _TOP - _LANE * data["rows"][-1]["bottom"]
    height = round(bottom + 34)
    title = f"{what.load} on {what.disk} under {what.scheduler}"
    kinds = [kind for kind in _KINDS if kind in data["bars"]]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{html.escape(title)}: {html.escape(sentence)}</title>",
        f"<style>{_STYLE}</style>",
        '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><path class="hatch" d="M0 0v6"/></pattern></defs>',
        f'<rect class="page" width="{_WIDTH}" height="{height}" rx="6"/>',
        _text(12, 20, title, "name"),
        *_legend(kinds, marks=bool(data["marks"]["x"])),
        *_axis(data, bottom),
    ]
    parts += [
        _text(12, _y((row["top"] + row["bottom"]) / 2) + 4, row["name"], "name")
        for row in data["rows"]
    ]
    for kind in kinds:
        parts += _bars(kind, data)
    marks = data["marks"]
    parts += [
        f'<path class="mark" d="M{_x(x, data):.1f} {_y(y) - 5:.1f}l4 5l-4 5l-4-5z"/>'
        for x, y in zip(marks["x"], marks["y"], strict=True)
    ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _bars(kind: str, data: dict[str, Any]) -> list[str]:
    bars = data["bars"][kind]
    css, drawn, labels = _class(kind), "", []
    rows = zip(bars["start"], bars["width"], bars["y"], bars["height"], bars["label"], strict=True)
    for start, width, y, height, label in rows:
        left, right = _x(start, data), _x(start + width, data)
        top = _y(y + height / 2)
        drawn += (
            f"M{left:.1f} {top:.1f}h{max(right - left, 0.6):.1f}v{height * _LANE:.1f}H{left:.1f}z"
        )
        # estimate: a letter is some 5.6 px wide.
        if label and right - left > 5.6 * len(label) + 6:
            labels.append(
                f'<text x="{right - 3:.1f}" y="{top + height * _LANE - 2.5:.1f}" class="label" '
                f'text-anchor="end">{html.escape(label)}</text>'
            )
    return [f'<path class="{css}" d="{drawn}"/>', *labels]


def _axis(data: dict[str, Any], bottom: float) -> list[str]:
    parts = []
    for tick in range(_TICKS):
        at = data["from"] + (data["until"] - data["from"]) * tick / (_TICKS - 1)
        x, anchor = _x(at, data), ("start", "middle", "end")[(tick > 0) + (tick == _TICKS - 1)]
        parts.append(f'<path class="line" d="M{x:.1f} {_TOP - 6}V{bottom:.1f}"/>')
        unit = f" {data['unit']}" if tick == _TICKS - 1 else ""
        parts.append(
            f'<text x="{x:.1f}" y="{bottom + 18:.1f}" class="quiet" text-anchor="{anchor}">'
            f"{at:,.0f}{unit}</text>"
        )
    return parts


def _legend(kinds: Sequence[str], *, marks: bool) -> list[str]:
    parts, x = [], 12.0
    told: set[str] = set()
    for kind in kinds:
        if not _KINDS[kind] or _KINDS[kind] in told:
            continue
        told.add(_KINDS[kind])
        parts.append(f'<rect class="{_class(kind)}" x="{x:.0f}" y="33" width="16" height="9"/>')
        parts.append(_text(x + 21, 42, _KINDS[kind], "quiet"))
        x += 32 + 6 * len(_KINDS[kind])
    if marks:
        parts.append(f'<path class="mark" d="M{x + 4:.0f} 33l4 5l-4 5l-4-5z"/>')
        parts.append(_text(x + 14, 42, "another decision", "quiet"))
    return parts


def _class(kind: str) -> str:
    return kind.replace(": ", "-").replace(" ", "-")


def _x(at: float, data: dict[str, Any]) -> float:
    share = (at - data["from"]) / (data["until"] - data["from"])
    place: float = _LEFT + share * (_WIDTH - _LEFT - _RIGHT)
    return place


def _y(lanes: float) -> float:
    place: float = _TOP - lanes * _LANE
    return place


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}">{html.escape(text)}</text>'


if __name__ == "__main__":
    for name in sys.argv[1:] or [str(IMAGES / f"{name}.svg") for name in PICTURES]:
        target = Path(name)
        target.write_text(picture(target.stem), encoding="utf-8")
