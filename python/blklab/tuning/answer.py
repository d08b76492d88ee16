"""The answer of a search, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blklab.base.plain import plain
from blklab.experiment.statistics import Interval, Verdict
from blklab.tuning.fidelity import FurtherSeeds, ShortRuns
from blklab.tuning.search import Effect
from blklab.tuning.sensitivity import Sensitivity


@dataclass(frozen=True)
class Confirmed:
    """The finalists and the defaults on fresh seeds."""

    rig: str
    disk: str
    """A model, or the directory or device of the live rig."""
    repeats: int
    verdict: Verdict
    """By the search's objective, over all loads."""
    gains: Mapping[str, Interval]
    """For each scheduler with its settings: how many times better than the reference, by the same
    measure."""
    beyond: Mapping[str, int]
    """For each, the repeats in which a bound was not kept."""
    agreement: float | None
    """Kendall's tau of the order here and on the simulator, of the settings that both have; None on
    the simulator itself."""
    kept: int | None
    """The comparison's number in the store."""
    page: Path | None
    """Its report."""

    def contradicts(self, settings: str) -> bool:
        """Whether these settings are shown to be worse than the reference here."""
        gain = self.gains.get(settings)
        return gain is not None and gain.high < 1.0


@dataclass(frozen=True)
class Tuned:
    """What tuning has found."""

    disk: str
    workloads: tuple[str, ...]
    objective: str
    reference: str
    """The settings that others are compared with."""
    best: str
    """The recommended scheduler with its settings; the reference if nothing is shown to be
    better."""
    gain: Interval | None
    """How many times better it is than the reference, on fresh seeds; None for the reference."""
    contradicted: str | None
    """What the simulator alone would recommend, if it is shown to be worse than the reference in
    Linux itself or on the real disk."""
    keeps: bool
    """Whether the recommended settings kept every bound in every repeat."""
    worth: Mapping[str, float]
    """For each setting of the search's best: how many times worse it is without it; infinite if a
    bound is then exceeded."""
    searched: str
    """The search's best, which `worth` is about."""
    effects: tuple[Effect, ...]
    """The largest effect of each tunable between settings that were tried, the largest first; 1 is
    none at all."""
    front: tuple[tuple[str, tuple[float, ...]], ...]
    """With several goals: settings of which none is worse than another in all, with the ratio to
    the reference in each goal."""
    trials: int
    """Settings that the search tried."""
    runs: int
    """Runs that it made now; the others were kept from a search that was interrupted."""
    enumerated: bool
    """Whether it tried all settings that differ."""
    short: ShortRuns | None
    """What short runs were worth to the search; None if it made none."""
    further: FurtherSeeds | None
    """What further seeds were worth to the search."""
    confirmed: tuple[Confirmed, ...]
    """On the simulator, then where else that was asked for."""
    unconfirmed: tuple[str, ...]
    """For each place where it was asked for and was not possible, a line with the reason."""
    sensitivity: Sensitivity | None
    """How the figures change around the recommended settings, if that was asked for."""
    page: Path | None
    """All of this as a page, beside the confirmation's report; None without `out`."""

    def to_json(self) -> dict[str, Any]:
        """Plain data, as ``blklab tune --json`` prints it."""
        document: dict[str, Any] = plain(self)
        document["page"] = None if self.page is None else str(self.page)
        document["confirmed"] = [
            {**plain(one), "page": None if one.page is None else str(one.page)}
            for one in self.confirmed
        ]
        return document
