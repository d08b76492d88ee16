"""Draw a picture of the docs: ``python docs/pictures.py docs/images/disk-position.svg``.

Each shows, for one workload on a hard disk without command queueing, the positions of the disk's
arm by process, for each scheduler. The picture of ``docs/own-scheduler.md`` uses Linux itself, and
builds a kernel with the scheduler if there is none yet.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import blklab
from blklab.base.units import duration_text, rate_text
from blklab.domain.histogram import Floats
from blklab.domain.result import KERNEL_PROCESS, Result, Trace
from blklab.rigs.kernel.build import build

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Picture:
    """A run, and the part of it that is drawn."""

    title: str
    load: str
    """Its name in words."""
    disk: str
    schedulers: Sequence[str]
    from_ns: int
    span_ns: int
    run: Callable[[Picture, str], Result]
    trace: Callable[[Result], Trace]
    figures: Callable[[Result], str]
    """The text of a panel about its run."""
    legend: Mapping[str, str]
    """Kind of dots -> their process."""
    names_px: int = 100
    """Space for the schedulers' names."""
    joined: bool = False
    """A line from each place of the arm to the next."""


def _simulated(picture: Picture, scheduler: str) -> Result:
    return blklab.simulate(picture.load, disk=picture.disk, scheduler=scheduler)


def _on_kernel(picture: Picture, scheduler: str) -> Result:
    return blklab.simulate(
        ROOT / "examples" / f"{picture.load}.fio",
        disk=picture.disk,
        scheduler=scheduler,
        rig="kernel",
        kernel=build(added_files=[ROOT / "examples/sstf-iosched.c"]).kernel.key,
        driver="native",
    )


def _beside_writes(run: Result) -> str:
    written = run.disk.write_sectors * 512e9 / run.duration_ns
    return f"{_half_and_most(run)}; writes {rate_text(written)}"


def _reads_a_second(run: Result) -> str:
    ios = sum(job.read.ios for job in run.jobs) * 1e9 / run.duration_ns
    return f"{ios:.0f} reads a second, {_half_and_most(run)}"


def _half_and_most(run: Result) -> str:
    reads = run.histogram("read")
    return (
        f"half of the reads within {duration_text(reads.percentile(50))}, "
        f"99 % within {duration_text(reads.percentile(99))}"
    )


PICTURES = {
    "disk-position": Picture(
        "Positions of the disk's arm, by process",
        "readers-vs-writer",
        "wd10ezrx:ncq=false",
        ("noop", "mq-deadline", "kyber"),
        from_ns=4_000_000_000,
        span_ns=2_000_000_000,
        run=_simulated,
        trace=lambda run: run.overview,
        figures=_beside_writes,
        legend={"reader": "two readers", "flusher": "write-back"},
    ),
    "own-scheduler": Picture(
        "Where Linux sends the disk's arm",
        "all-over-the-disk",
        "wd10ezrx:ncq=false",
        ("kyber", "mq-deadline", "sstf", "sstf:max_wait=5000"),
        from_ns=4_000_000_000,
        span_ns=1_000_000_000,
        run=_on_kernel,
        trace=lambda run: run.detail,
        figures=_reads_a_second,
        legend={},
        names_px=165,
        joined=True,
    ),
}

_WIDTH, _PANEL, _LEFT, _RIGHT, _TOP, _GAP = 840, 108, 16, 16, 60, 34
# With a ground of its own: a page can be light on a dark desktop and the other way round.
_STYLE = """
.ground { fill: #ffffff }
text { font: 13px system-ui, sans-serif; fill: #24292f }
.quiet { fill: #57606a; font-size: 12px }
.name { font-weight: 600 }
.frame { fill: none; stroke: #d0d7de }
.path { fill: none; stroke: #8c959f; stroke-width: 0.6 }
.dots { fill: none; stroke-width: 3.2; stroke-linecap: round }
.reader { stroke: #0969da } .flusher { stroke: #d1741a }
@media (prefers-color-scheme: dark) {
  .ground { fill: #0d1117 }
  text { fill: #e6edf3 } .quiet { fill: #9da7b1 } .frame { stroke: #3d444d }
  .reader { stroke: #58a6ff } .flusher { stroke: #e3964a }
}
"""


def picture(name: str) -> str:
    """The SVG of that name; the same on every machine."""
    what = PICTURES[name]
    runs = {scheduler: what.run(what, scheduler) for scheduler in what.schedulers}
    top_sector = max(int(what.trace(run).sector.max()) for run in runs.values())
    height = _TOP + len(runs) * (_PANEL + _GAP) + 2
    seconds = [what.span_ns // 10**9, max(run.duration_ns for run in runs.values()) // 10**9]
    plural = "s" * (seconds[0] > 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>Where a disk's arm is, over {seconds[0]} second{plural}, by scheduler</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="ground" width="{_WIDTH}" height="{height}" rx="6"/>',
        _text(_LEFT, 22, what.title, "name"),
        _text(
            _LEFT,
            42,
            f"{what.load} on {what.disk}, {seconds[0]} of {seconds[1]} seconds; "
            f"height: place on the disk, {top_sector * 512 / 1e9:.0f} GB",
            "quiet",
        ),
        *_legend(what.legend, _WIDTH - _RIGHT - 176, 18),
    ]
    for number, (scheduler, run) in enumerate(runs.items()):
        parts += _panel(what, scheduler, run, _TOP + number * (_PANEL + _GAP), top_sector)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(what: Picture, scheduler: str, run: Result, top: int, top_sector: int) -> list[str]:
    trace, width = what.trace(run), _WIDTH - _LEFT - _RIGHT
    shown = (trace.issued_ns >= what.from_ns) & (trace.issued_ns < what.from_ns + what.span_ns)
    order = np.flatnonzero(shown)[np.argsort(trace.issued_ns[shown], kind="stable")]
    x = _LEFT + (trace.issued_ns[order] - what.from_ns) * width / what.span_ns
    y = top + 22 + (_PANEL - 12) * (1 - trace.sector[order] / top_sector)
    by_kernel = trace.process[order] == KERNEL_PROCESS
    return [
        _text(_LEFT, top + 12, scheduler, "name"),
        _text(_LEFT + what.names_px, top + 12, what.figures(run), "quiet"),
        f'<rect class="frame" x="{_LEFT}" y="{top + 18}" width="{width}" height="{_PANEL - 4}"/>',
        *([_path(x, y)] if what.joined else []),
        _dots("flusher", x[by_kernel], y[by_kernel]),
        _dots("reader", x[~by_kernel], y[~by_kernel]),
    ]


def _path(x: Floats, y: Floats) -> str:
    points = " ".join(f"{a:.0f},{b:.0f}" for a, b in zip(x, y, strict=True))
    return f'<polyline class="path" points="{points}"/>'


def _dots(kind: str, x: Floats, y: Floats) -> str:
    path = "".join(f"M{a:.0f} {b:.0f}h0" for a, b in zip(x, y, strict=True))
    return f'<path class="dots {kind}" d="{path}"/>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text x="{x}" y="{y}" class="{kind}">{text}</text>'


def _legend(kinds: Mapping[str, str], x: int, y: int) -> list[str]:
    return [
        f'<path class="dots {kind}" d="M{left} {y}h0"/>{_text(left + 8, y + 4, name, "quiet")}'
        for left, (kind, name) in zip(range(x, x + 1000, 92), kinds.items(), strict=False)
    ]


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(picture(target.stem), encoding="utf-8")
