"""What a guest has left: ``result.json``, and whether its disk was in time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from blklab.errors import RunError

LATENESS_PART = 0.02
"""A run is invalid if half of its completions were late by more than this part of the mean
latency that the processes saw."""


def read(directory: Path) -> dict[str, Any]:
    """A guest's result. RunError if there is none, or if the guest says what went wrong."""
    try:
        outcome: dict[str, Any] = json.loads((directory / "result.json").read_bytes())
    except (OSError, ValueError) as error:
        raise RunError(f"the guest left no result: {error}") from error
    if outcome["error"]:
        raise RunError(f"in the guest: {outcome['error']}")
    return outcome


def notes(outcome: Mapping[str, Any]) -> tuple[str, ...]:
    """What the kernel has made of tunables, other than was asked for; a line each."""
    return tuple(
        f"{Path(row['tunable']).name}={row['asked']} is {row['set']}: the kernel counts in ticks"
        for row in outcome["rounded"]
    )


def too_late(lateness: Mapping[str, int], latency_ns: float) -> str | None:
    """Why a run whose mean latency was `latency_ns` is invalid, or None if it is not."""
    late_ns = lateness["p50_ns"]
    if latency_ns == 0 or late_ns <= LATENESS_PART * latency_ns:
        return None
    return (
        f"invalid: half of the disk's completions came {late_ns} ns late or later "
        f"(the latency seen is {latency_ns:.0f} ns)"
    )
