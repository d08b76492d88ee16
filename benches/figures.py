"""Figures that are measured in rounds, compared with goals, and stored as JSON.

Values and goals are stored. Whether a goal is met is computed when needed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from blklab import _core
from blklab.experiment.statistics import median_interval

BLKLAB = str(Path(sys.executable).parent / "blklab")
LOSS = 0.1
"""The allowed deviation from a goal before a benchmark fails: machines differ, and are shared.
Smaller losses are detected by a comparison in one run: `benches/against.py`."""


@dataclass(frozen=True)
class Figure:
    """One figure, and its goal."""

    what: str
    unit: str
    goal: float | None
    """None without a goal."""
    more_is_better: bool
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.values)

    def meets(self, loss: float = 0.0) -> bool | None:
        """Whether the median meets the goal, or misses it by at most the part `loss`; None without
        a goal."""
        if self.goal is None:
            return None
        if self.more_is_better:
            return self.median >= self.goal * (1 - loss)
        return self.median <= self.goal * (1 + loss)


@dataclass(frozen=True)
class Measure:
    """The measurement of a figure."""

    what: str
    unit: str
    goal: float | None
    more_is_better: bool
    once: Callable[[], float]
    rounds: int


def print_with_intervals(found: Sequence[Figure]) -> dict[str, dict[str, float]]:
    """Print each figure with the interval of its median; the intervals by figure."""
    intervals = {}
    for one in found:
        interval, coverage = median_interval(one.values)
        intervals[one.what] = {"low": interval.low, "high": interval.high, "coverage": coverage}
        bound = "least" if one.more_is_better else "most"
        goal = "" if one.goal is None else f" (at {bound} {one.goal:g})"
        print(
            f"{one.median:8.4g} {interval.low:8.4g} to {interval.high:.4g} {one.unit}{goal}: "
            f"{one.what}"
        )
    return intervals


def measured(everything: Sequence[Measure], rounds: int) -> list[Figure]:
    """Round by round, each figure once per round until it has enough values."""
    values: list[list[float]] = [[] for _ in everything]
    for number in range(rounds):
        for one, several in zip(everything, values, strict=True):
            if number < one.rounds:
                several.append(one.once())
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return [
        Figure(one.what, one.unit, one.goal, one.more_is_better, tuple(several))
        for one, several in zip(everything, values, strict=True)
    ]


def machine() -> dict[str, object]:
    """The machine and the kind of build."""
    cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    names = [line.split(":")[1].strip() for line in cpuinfo.splitlines() if "model name" in line]
    return {
        "cpu": names[0] if names else platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
        "profile_guided": _core.profile_guided(),
    }


def told(figures: Sequence[Figure]) -> None:
    """Print them."""
    word = {True: "met   ", False: "MISSED", None: "      "}
    for figure in figures:
        sign = ">=" if figure.more_is_better else "<="
        goal = "" if figure.goal is None else f" ({sign} {figure.goal:g})"
        print(f"{word[figure.meets()]} {figure.median:8.4g} {figure.unit}{goal}: {figure.what}")


def exit_code(figures: Sequence[Figure]) -> int:
    """1 if one misses its goal by more than `LOSS`, and a line for each."""
    lost = [figure for figure in figures if figure.meets(LOSS) is False]
    for figure in lost:
        sign = "below" if figure.more_is_better else "above"
        print(
            f"lost: {figure.what}: {figure.median:.4g} {figure.unit}, more than {LOSS:.0%} {sign} "
            f"{figure.goal:g}",
            file=sys.stderr,
        )
    return bool(lost)


def main(description: str | None, rounds: int, measures: Callable[[int], Sequence[Measure]]) -> int:
    """A benchmark as a program: measure, print, store; 1 if a goal is missed by more than `LOSS`.
    `rounds` by default."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--out", type=Path, help="also write the figures there, as JSON")
    options = parser.parse_args()
    here = machine()
    found = measured(measures(options.rounds), options.rounds)
    told(found)
    if options.out:
        keep(options.out, options.rounds, here, found, {})
    return exit_code(found)


def keep(
    path: Path,
    rounds: int,
    where: Mapping[str, object],
    figures: Sequence[Figure],
    more: Mapping[str, Any],
) -> None:
    """Write them as JSON; `where` was recorded before the measurement."""
    version = subprocess.run([BLKLAB, "--version"], check=True, capture_output=True, text=True)
    kept = {
        "version": version.stdout.split()[-1],
        "rounds": rounds,
        "machine": where,
        "figures": [asdict(f) | {"median": f.median} for f in figures],
        **more,
    }
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
