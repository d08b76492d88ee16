"""Figures in readable form, for printing only; times that users write."""

from __future__ import annotations

import math
import re

_STEP = 1000.0
_SIZE_STEP = 1024.0
_UNITS_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_LAST_NS = 2**63 - 1


def span_ns(text: str) -> int | None:
    """``4s``, ``250ms``, ``80us`` or ``5ns`` in ns; None for another text, or beyond 292 years."""
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*(ns|us|ms|s)\s*", text)
    span = float(found[1]) * _UNITS_NS[found[2]] if found else math.nan
    return round(span) if span < _LAST_NS else None


def duration_text(span_ns: float) -> str:
    """``85 us``, ``4.17 ms``, ``30 s``: three digits, the unit that keeps the figure above one."""
    if not math.isfinite(span_ns):
        return "-"
    value, unit = float(span_ns), "ns"
    for larger in ("us", "ms", "s"):
        if abs(value) < _STEP:
            break
        value, unit = value / _STEP, larger
    return f"{number_text(value)} {unit}"


def rate_text(bytes_per_s: float) -> str:
    """Megabytes (10^6 bytes) per second, as data sheets give them."""
    return f"{number_text(bytes_per_s / 1e6)} MB/s"


def size_text(size_bytes: float) -> str:
    """``512 B``, ``128 KiB``, ``8 MiB``: three digits, powers of 1024 as in fio."""
    value, unit = float(size_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < _SIZE_STEP:
            break
        value, unit = value / _SIZE_STEP, larger
    return f"{number_text(value)} {unit}"


def number_text(value: float) -> str:
    """Three significant digits without an exponent; thousands separated."""
    if not math.isfinite(value):
        return "-"
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{min(digits, 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
