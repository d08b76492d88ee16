"""How schedulers serve a kind of load: what a decision rests on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_EQUAL = 1.02
"""Figures that differ by less count as equal."""


@dataclass(frozen=True)
class Figures:
    """One scheduler under a load."""

    latency_ns: float
    """99th percentile of reads, else of syncs, else of writes; NaN if it is not known."""
    bytes_per_s: float
    """Reads and writes together."""

    def cost(self, objective: str) -> float:
        """The figure that ranks, of which less is better: ns, or s for each byte."""
        return 1 / self.bytes_per_s if objective == "throughput" else max(self.latency_ns, 1.0)


@dataclass(frozen=True)
class Evidence:
    """Several schedulers under one load, by one objective."""

    source: str
    """Where it comes from, in words."""
    figures: Mapping[str, Figures]
    """By scheduler, as on the command line; for people."""
    cases: tuple[Mapping[str, float], ...]
    """The cost of each scheduler in each case, such as ways to replay a sample; ratios within a
    case count. The first case has the estimates. Empty if nothing is known."""
    best: tuple[str, ...] | None = None
    """The schedulers of which it is not proven that one is better; None if the cases decide."""
    why_none: str = ""
    """Without cases: the reason."""
    sequential: float | None = None
    """The part of the sampled I/Os that begin where the last one of their process ended, 0 to 1;
    None without a sample."""

    def ratio(self, better: str, present: str) -> float:
        """How many times better one scheduler is; 1 if a case contradicts the estimate, NaN if one
        of the two is not known."""
        if not self.cases:
            return math.nan
        ratios = [one.get(present, math.nan) / one.get(better, math.nan) for one in self.cases]
        estimate, least, most = ratios[0], min(ratios), max(ratios)
        against = (estimate > 1 and least < 1 / _EQUAL) or (estimate < 1 and most > _EQUAL)
        return 1.0 if against else estimate

    def is_proven(self, better: str, present: str) -> bool:
        """Whether the difference is more than the chance of the runs, and so in all cases."""
        if self.best is not None:
            return better in self.best and present not in self.best
        return all(one[better] * _EQUAL < one[present] for one in self.cases)

    def decides(self, present: str) -> bool:
        """Whether it says how the present scheduler compares with the best estimate."""
        if not self.cases or present not in self.cases[0]:
            return False
        estimates = self.cases[0]
        first = min(estimates, key=lambda name: estimates[name])
        is_equal = estimates[present] <= estimates[first] * _EQUAL
        return is_equal or self.ratio(first, present) > 1


def gain(evidences: Sequence[tuple[float, Evidence]], better: str, present: str) -> float:
    """How many times better one scheduler is than another over several loads, each with its weight:
    the geometric mean of the ratios. NaN if one is not known."""
    total = sum(weight for weight, _ in evidences)
    if total <= 0:
        return math.nan
    logs = [weight * math.log(one.ratio(better, present)) for weight, one in evidences]
    return math.exp(sum(logs) / total)


def is_proven(evidences: Sequence[tuple[float, Evidence]], better: str, present: str) -> bool:
    """Whether the difference is proven in some of the loads, and in none the other way round."""
    every = [one for _, one in evidences]
    return any(one.is_proven(better, present) for one in every) and not any(
        one.is_proven(present, better) for one in every
    )
