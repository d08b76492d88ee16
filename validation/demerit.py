"""The distance of simulated response times from measured ones, and its bound.

The demerit is the root mean square of the horizontal distance between the two cumulative
distributions (Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer 1994);
with as many requests on both sides, between the k-th times of both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Distance:
    """Between simulated and measured times, in % of the measured mean."""

    mean_error: float
    demerit: float


@dataclass(frozen=True)
class Bar:
    """DiskSim on the same trace and facts; and the effect of random rotation alone."""

    disksim: Distance
    noise: float

    def met(self, found: Distance) -> bool:
        """Whether the model is at least as accurate as DiskSim, within the noise."""
        mean_error = abs(self.disksim.mean_error) + self.noise
        return abs(found.mean_error) <= mean_error and (
            found.demerit <= self.disksim.demerit + self.noise
        )


def distance(simulated: Sequence[float], measured: Sequence[float]) -> Distance:
    """The demerit of two lists of equally many times."""
    mean = sum(measured) / len(measured)
    pairs = zip(sorted(simulated), sorted(measured), strict=True)
    square = sum((ours - real) ** 2 for ours, real in pairs) / len(measured)
    error = sum(simulated) / len(simulated) - mean
    return Distance(100 * error / mean, 100 * math.sqrt(square) / mean)


def bar(disksim: dict[str, Any]) -> Bar:
    """From the table ``[disksim]`` of a drive's facts: with the true gaps, where those differ."""

    def figure(name: str) -> float:
        return float(disksim.get(f"true_gaps_{name}", disksim[name]))

    figures = Distance(figure("mean_error_percent"), figure("demerit_percent"))
    return Bar(figures, float(disksim["replay_noise_percent"]))
