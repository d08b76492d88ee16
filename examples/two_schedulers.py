"""Two schedulers under one load, and a picture of how long reads take.

``python examples/two_schedulers.py PICTURE.html [SCHEDULER SCHEDULER]``
"""

from __future__ import annotations

import sys
from pathlib import Path

import plotly.graph_objects as go

import blklab

DISK = "wd10ezrx:ncq=false"
LOAD = "readers-vs-writer"


def main(picture: Path, schedulers: list[str]) -> None:
    """Simulate, print the 99th percentiles, draw."""
    figure = go.Figure()
    for scheduler in schedulers:
        result = blklab.simulate(LOAD, disk=DISK, scheduler=scheduler)
        reads = result.histogram("read")
        print(f"{scheduler}: {reads.total} reads, p99 {reads.percentile(99) / 1e6:.0f} ms")
        latency_ns, share = reads.cdf()
        figure.add_scatter(x=latency_ns / 1e6, y=share * 100, name=scheduler, line_shape="hv")
    figure.update_layout(
        title=f"{LOAD} on {DISK}",
        xaxis={"title": "latency of reads, ms", "type": "log"},
        yaxis={"title": "reads at or below it, %"},
    )
    figure.write_html(picture)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or ["mq-deadline", "kyber"])
