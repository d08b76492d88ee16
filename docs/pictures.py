"""Draw README's picture: ``python docs/pictures.py docs/images/disk-position.svg``.

Three runs of the load ``readers-vs-writer`` on a hard disk without command queueing: where
the disk's arm was and for whom, under three schedulers.
"""

from __future__ import annotations

import sys
from pathlib import Path

import blklab
from blklab.histogram import Floats
from blklab.result import KERNEL_PROCESS, Result
from blklab.units import duration_text, rate_text

DISK = "wd10ezrx:ncq=false"
LOAD = "readers-vs-writer"
SCHEDULERS = ("noop", "mq-deadline", "kyber")

_FROM_NS, _SPAN_NS = 4_000_000_000, 2_000_000_000
_WIDTH, _PANEL, _LEFT, _RIGHT, _TOP, _GAP = 840, 108, 16, 16, 60, 34
# With a ground of its own: a page can be light on a dark desktop and the other way round.
_STYLE = """
.ground { fill: #ffffff }
text { font: 13px system-ui, sans-serif; fill: #24292f }
.quiet { fill: #57606a; font-size: 12px }
.name { font-weight: 600 }
.frame { fill: none; stroke: #d0d7de }
.dots { fill: none; stroke-width: 3.2; stroke-linecap: round }
.reader { stroke: #0969da } .flusher { stroke: #d1741a }
@media (prefers-color-scheme: dark) {
  .ground { fill: #0d1117 }
  text { fill: #e6edf3 } .quiet { fill: #9da7b1 } .frame { stroke: #3d444d }
  .reader { stroke: #58a6ff } .flusher { stroke: #e3964a }
}
"""


def picture() -> str:
    """The SVG; the same on every machine."""
    runs = {name: blklab.simulate(LOAD, disk=DISK, scheduler=name) for name in SCHEDULERS}
    top_sector = max(int(run.overview.sector.max()) for run in runs.values())
    height = _TOP + len(runs) * (_PANEL + _GAP) + 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>Where a disk's arm is, over {_SPAN_NS // 10**9} seconds, by scheduler</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="ground" width="{_WIDTH}" height="{height}" rx="6"/>',
        _text(_LEFT, 22, "Where the disk's arm is, and for whom", "name"),
        _text(
            _LEFT,
            42,
            f"{LOAD} on {DISK}, {_SPAN_NS // 10**9} of 10 seconds; "
            f"height: place on the disk, {top_sector * 512 / 1e9:.0f} GB",
            "quiet",
        ),
        _legend(_WIDTH - _RIGHT - 176, 18),
    ]
    for number, (name, run) in enumerate(runs.items()):
        parts += _panel(name, run, _TOP + number * (_PANEL + _GAP), top_sector)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(name: str, run: Result, top: int, top_sector: int) -> list[str]:
    trace, width = run.overview, _WIDTH - _LEFT - _RIGHT
    shown = (trace.issued_ns >= _FROM_NS) & (trace.issued_ns < _FROM_NS + _SPAN_NS)
    x = _LEFT + (trace.issued_ns[shown] - _FROM_NS) * width / _SPAN_NS
    y = top + 22 + (_PANEL - 12) * (1 - trace.sector[shown] / top_sector)
    by_kernel = trace.process[shown] == KERNEL_PROCESS
    reads, written = run.histogram("read"), run.disk.write_sectors * 512e9 / run.duration_ns
    figures = (
        f"half of the reads within {duration_text(reads.percentile(50))}, "
        f"99 % within {duration_text(reads.percentile(99))}; writes {rate_text(written)}"
    )
    return [
        _text(_LEFT, top + 12, name, "name"),
        _text(_LEFT + 100, top + 12, figures, "quiet"),
        f'<rect class="frame" x="{_LEFT}" y="{top + 18}" width="{width}" height="{_PANEL - 4}"/>',
        _dots("flusher", x[by_kernel], y[by_kernel]),
        _dots("reader", x[~by_kernel], y[~by_kernel]),
    ]


def _dots(kind: str, x: Floats, y: Floats) -> str:
    path = "".join(f"M{a:.0f} {b:.0f}h0" for a, b in zip(x, y, strict=True))
    return f'<path class="dots {kind}" d="{path}"/>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text x="{x}" y="{y}" class="{kind}">{text}</text>'


def _legend(x: int, y: int) -> str:
    return (
        f'<path class="dots reader" d="M{x} {y}h0"/>{_text(x + 8, y + 4, "two readers", "quiet")}'
        f'<path class="dots flusher" d="M{x + 92} {y}h0"/>'
        f"{_text(x + 100, y + 4, 'write-back', 'quiet')}"
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(), encoding="utf-8")
