"""Figures as pictures show them: four digits, in a unit that suits."""

from __future__ import annotations

from typing import Any

import numpy as np

_POWER_MAX = 300
_UNITS = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))


def unit_of(typical_ns: float) -> tuple[str, float]:
    """A unit of time, and what it has of ns."""
    for name, unit_ns in _UNITS:
        if typical_ns >= unit_ns:
            return name, unit_ns
    return _UNITS[-1]


def digits(values: Any, count: int = 4) -> list[float | None]:
    """Rounded to significant digits; what is no number becomes a gap."""
    array = np.asarray(values, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        power = count - 1 - np.floor(np.log10(np.abs(array)))
    # What is smaller than any picture shows is rounded to nothing.
    scale = 10.0 ** np.where(np.isfinite(power), np.minimum(power, _POWER_MAX), 0.0)
    rounded = np.where(np.isfinite(array), np.round(array * scale) / scale, np.nan)
    return [None if value != value else value for value in rounded.tolist()]  # noqa: PLR0124
