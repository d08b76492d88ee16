"""Both distributions of each drive as a page that fetches nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import plotly.graph_objects as go


def write(folder: Path, name: str, measured: Sequence[float], simulated: Sequence[float]) -> Path:
    """``NAME.html`` in the folder: the cumulative distribution of response times."""
    figure = go.Figure()
    for label, times in (("measured", measured), ("model", simulated)):
        rising = sorted(times)
        shares = [100 * (number + 1) / len(rising) for number in range(len(rising))]
        figure.add_trace(go.Scattergl(x=rising, y=shares, name=label, mode="lines"))
    figure.update_layout(
        title=name,
        xaxis_title="response time, ms",
        yaxis_title="requests, %",
        template="plotly_white",
    )
    path = folder / f"{name}.html"
    # The script is beside the pages, once for all of them.
    figure.write_html(path, include_plotlyjs="directory")
    return path
