"""Decisions of a watch in words, for the terminal and the log."""

from __future__ import annotations

import math

from blklab.base.units import duration_text, rate_text
from blklab.watching.decide import Decision
from blklab.watching.evidence import Figures


def kind_line(decision: Decision) -> str:
    """The kind of load, and the figures that decide it."""
    return f"{decision.seen.kind.text} ({decision.seen.figures})"


def advice_line(decision: Decision) -> str:
    """The answer, with its figures and their source."""
    text = decision.reason
    found = decision.evidence
    if found is None:
        return text
    names = [decision.present] + ([decision.better] if decision.better else [])
    told = [f"{name} {_figures(found.figures[name])}" for name in names if name in found.figures]
    if len(names) > 1 and len(told) == len(names):
        text += f": {', '.join(told)} ({found.source})"
    else:
        text += f" ({found.source})"
    if found.sequential is not None:
        text += f"; {100 * found.sequential:.0f} % of the sampled I/Os are sequential"
    return text


def _figures(of: Figures) -> str:
    """The p99 and the throughput, whichever ranks: what one gains, the other may lose."""
    p99 = "" if math.isnan(of.latency_ns) else f"p99 {duration_text(of.latency_ns)} and "
    return f"{p99}{rate_text(of.bytes_per_s)}"
