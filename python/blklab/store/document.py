"""One stored comparison as a document, and the check that its parts match, so that it can be
stored, judged and drawn. msgspec checks types and ranges.

`check` includes the checks of `blklab.domain.check_runs`, and checks names for control characters,
times and numbers of runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec

from blklab.domain import check_runs
from blklab.domain.measurement import Measurement
from blklab.domain.ranges import Count
from blklab.domain.setup import Label, SetupDocument, Value

_DEPTH_MAX = 50
_YEARS = range(1970, 9999)


@dataclass(frozen=True)
class RunDocument:
    """One run with all its stored data."""

    number: Count
    begun_at: str
    ended_at: str
    measurement: Measurement
    device_before: Mapping[str, Any] | None = None
    device_after: Mapping[str, Any] | None = None
    raw: Mapping[Label, bytes] = field(default_factory=dict)
    """In base64."""


@dataclass(frozen=True)
class ComparisonDocument:
    """One comparison with all its runs."""

    uid: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
    begun_at: str
    ended_at: str | None
    rig: Label
    machine: Label
    objective: Literal["throughput", "latency", "both"]
    planned: Count
    setup: Mapping[str, Any]
    """As `SetupData`, with all that it has."""
    facts: dict[str, dict[str, Value]]
    runs: tuple[RunDocument, ...]
    study: str | None = None
    part: str | None = None


def check(one: ComparisonDocument, setup: SetupDocument) -> str:
    """The first error, with ``$`` for the comparison; empty if there is none."""
    return next(_wrong(one, setup), "")


def _wrong(one: ComparisonDocument, setup: SetupDocument) -> Iterator[str]:
    yield from _names(one, setup)
    for name in ("begun_at", "ended_at"):
        if (text := getattr(one, name)) is not None and not _is_time(text):
            yield f"$.{name}: not a time with its zone, from 1970 to 9998"
    if _is_deep(one.setup):
        yield "$.setup: nested too deeply"
    if one.rig != setup.rig:
        yield "$.rig: not that of the set-up"
    yield from _cells(one, setup)
    yield from _runs(one)
    measured = [run.measurement for run in one.runs]
    yield from check_runs.wrong(setup, measured, ".measurement")


def _names(one: ComparisonDocument, setup: SetupDocument) -> Iterator[str]:
    labels = check_runs.labels(setup)
    told = [("$.rig", one.rig), ("$.machine", one.machine)]
    told += [("$.study", one.study or ""), ("$.part", one.part or "")]
    told += [
        (f"$.setup.{kind}[{place}]", name)
        for kind, names in labels.items()
        for place, name in enumerate(names)
    ]
    told += [(f"$.runs[{n}].raw", name) for n, run in enumerate(one.runs) for name in run.raw]
    for where, name in told:
        if not name.isprintable():
            yield f"{where}: its name has a control character"


def _cells(one: ComparisonDocument, setup: SetupDocument) -> Iterator[str]:
    cells = {(disk, load) for disk, load, _ in check_runs.expected(setup)}
    if len(cells) < len(setup.disks) * len(setup.workloads):
        yield "$.setup.left_out: leaves no scheduler for a disk"
    if one.planned != len(check_runs.expected(setup)) * setup.repeats:
        yield "$.planned: not the number of runs of the set-up"


def _runs(one: ComparisonDocument) -> Iterator[str]:
    numbers: set[int] = set()
    for place, run in enumerate(one.runs):
        where = f"$.runs[{place}]"
        if run.number in numbers or run.number >= one.planned:
            yield f"{where}.number: run {run.number} is duplicated or out of range"
        if not (_is_time(run.begun_at) and _is_time(run.ended_at)):
            yield f"{where}: its start or end is not a time with its zone, from 1970 to 9998"
        if _is_deep(run.device_before) or _is_deep(run.device_after):
            yield f"{where}: a device's state is nested too deeply"
        numbers.add(run.number)


def _is_deep(value: Any) -> bool:
    """Deeper than later readers can parse."""
    level = [value]
    for _ in range(_DEPTH_MAX):
        level = [
            inner
            for one in level
            if isinstance(one, (dict, list))
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
    return bool(level)


def _is_time(text: str) -> bool:
    try:
        found = datetime.fromisoformat(text)
        # At the edges of the calendar another zone's clock has no time.
        return found.tzinfo is not None and found.astimezone(UTC).year in _YEARS
    except (ValueError, OverflowError):
        return False
