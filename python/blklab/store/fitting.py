"""Do the parts of an imported comparison fit each other, so that it can be judged and drawn?

Types are checked before. Here: names without control characters, columns of one length, figures
that are finite, every run of the set-up and none twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from blklab.compare.jobs import Service
from blklab.compare.latencies import PERCENTILES, Latency
from blklab.compare.measurement import Measurement, Story
from blklab.store.exchange import ComparisonDocument, SetupDocument

_INT_MAX = 2**53
_RATE_MAX = 1e18
_DEPTH_MAX = 50
_TRACE = ("queued_ns", "issued_ns", "completed_ns", "sector", "sectors", "op", "process")
_OPERATIONS = ("read", "sync", "write", "trim", "operation")
_UNIT_CHARACTERS_MAX = 40
_COUNTERS = ("read_ios", "write_ios")


def check(one: ComparisonDocument, setup: SetupDocument) -> str:
    """What is wrong first, with ``$`` for the comparison; empty if nothing is."""
    return next(_wrong(one, setup), "")


def _wrong(one: ComparisonDocument, setup: SetupDocument) -> Iterator[str]:
    yield from _names(one, setup)
    for name in ("begun_at", "ended_at"):
        if (text := getattr(one, name)) is not None and not _is_time(text):
            yield f"$.{name}: not a time with its zone"
    if _is_deep(one.setup):
        yield "$.setup: nested too deeply"
    if one.rig != setup.rig:
        yield "$.rig: not that of the set-up"
    yield from _cells(one, setup)
    yield from _runs(one, setup)


def _names(one: ComparisonDocument, setup: SetupDocument) -> Iterator[str]:
    labels = {
        "disks": [disk.label for disk in setup.disks],
        "workloads": [load.name for load in setup.workloads],
        "schedulers": [scheduler.label for scheduler in setup.schedulers],
    }
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
    for kind, names in labels.items():
        if len(set(names)) < len(names):
            yield f"$.setup.{kind}: one is there twice"


def expected(setup: SetupDocument) -> set[tuple[str, str, str]]:
    """What is run in every repeat: disk, workload, scheduler."""
    left_out = {(pair.disk, pair.scheduler) for pair in setup.left_out}
    return {
        (disk.label, load.name, scheduler.label)
        for disk in setup.disks
        for load in setup.workloads
        for scheduler in setup.schedulers
        if (disk.label, scheduler.label) not in left_out
    }


def _cells(one: ComparisonDocument, setup: SetupDocument) -> Iterator[str]:
    cells = {(disk, load) for disk, load, _ in expected(setup)}
    if len(cells) < len(setup.disks) * len(setup.workloads):
        yield "$.setup.left_out: leaves nothing of a disk"
    if one.planned != len(expected(setup)) * setup.repeats:
        yield "$.planned: not what the set-up comes to"


def _runs(one: ComparisonDocument, setup: SetupDocument) -> Iterator[str]:
    there = expected(setup)
    seen: set[tuple[str, str, str, int]] = set()
    numbers: set[int] = set()
    for place, run in enumerate(one.runs):
        where, measured = f"$.runs[{place}]", run.measurement
        what = (measured.disk, measured.workload, measured.scheduler)
        if what not in there:
            yield f"{where}: of a disk, load or scheduler that is not of the set-up"
        if not 0 <= measured.repeat < setup.repeats or (*what, measured.repeat) in seen:
            yield f"{where}.measurement.repeat: {measured.repeat} is there twice or beyond"
        if run.number in numbers or run.number >= one.planned:
            yield f"{where}.number: {run.number} is there twice or beyond what was planned"
        if not (_is_time(run.begun_at) and _is_time(run.ended_at)):
            yield f"{where}: begins or ends at no time with its zone"
        if _is_deep(run.device_before) or _is_deep(run.device_after):
            yield f"{where}: a device's state is nested too deeply"
        seen.add((*what, measured.repeat))
        numbers.add(run.number)
        for wrong in _measured(measured):
            yield f"{where}.measurement.{wrong}"


def _measured(run: Measurement) -> Iterator[str]:
    if not _are_counts([run.duration_ns]):
        yield "duration_ns: beyond what is possible"
    if not 0 <= run.seed < 2**64:
        yield "seed: not of 64 bits"
    for name in ("bytes_per_s", "ios_per_s"):
        if not 0 <= getattr(run, name) <= _RATE_MAX:
            yield f"{name}: beyond what is possible"
    if run.figure is not None:
        if not (math.isfinite(run.figure.value) and 0 <= run.figure.value <= _RATE_MAX):
            yield "figure.value: beyond what is possible"
        if (
            not 0 < len(run.figure.unit) <= _UNIT_CHARACTERS_MAX
            or not run.figure.unit.isprintable()
        ):
            yield "figure.unit: no unit"
    yield from _latencies("latencies", run.latencies)
    if not _are_counts(run.disk_counters.values()) or any(
        name not in run.disk_counters for name in _COUNTERS
    ):
        yield "disk_counters: not what a disk counts"
    for place, job in enumerate(run.jobs):
        yield from _latencies(f"jobs[{place}].latencies", job.latencies)
    if run.story is not None:
        yield from _story(run.story)
    if run.service is not None:
        yield from _service(run.service)


def _latencies(where: str, several: Mapping[str, Latency]) -> Iterator[str]:
    for name, latency in several.items():
        if name not in _OPERATIONS:
            yield f"{where}: no operation of that name"
        columns = (latency.value_ns, latency.count)
        if len(latency.percentiles_ns) != len(PERCENTILES) or _differ(columns) or not columns[0]:
            yield f"{where}.{name}: columns of other lengths"
        counts = (*latency.percentiles_ns, *columns[0], *columns[1], latency.ios)
        total = sum(latency.count)
        if not _are_counts(counts) or not 0 < total <= _INT_MAX:
            yield f"{where}.{name}: beyond what is possible"
        if list(latency.value_ns) != sorted(set(latency.value_ns)):
            yield f"{where}.{name}.value_ns: does not rise"
        if not (math.isfinite(latency.mean_ns) and 0 <= latency.mean_ns <= _INT_MAX):
            yield f"{where}.{name}.mean_ns: beyond what is possible"


def _story(story: Story) -> Iterator[str]:
    if not (0 < story.interval_ns <= _INT_MAX and 0 < story.overview_stride <= _INT_MAX):
        yield "story: beyond what is possible"
    for name, columns in (("series", story.series), ("overview", story.overview),
                          ("detail", story.detail)):  # fmt: skip
        if not all(_are_numbers(column) for column in columns.values()):
            yield f"story.{name}: beyond what is possible"
        if name == "series":
            lengths = {len(column) for column in columns.values()} - {0}
        else:
            lengths = {len(columns.get(key, ())) for key in _TRACE}
            lengths |= {len(column) for column in columns.values()}
        if len(lengths) > 1 or (name != "series" and not set(_TRACE) <= columns.keys()):
            yield f"story.{name}: columns are missing or of other lengths"


def _service(service: Service) -> Iterator[str]:
    if _differ((service.end_ns, service.process, service.bytes)) or _differ(
        (service.names, service.start_ns)
    ):
        yield "service: columns of other lengths"
    numbers = (*service.start_ns, *service.end_ns, *service.process, *service.bytes)
    if not _are_numbers(numbers) or sum(map(abs, service.bytes)) > _INT_MAX:
        yield "service: beyond what is possible"


def _differ(columns: Sequence[Sequence[object]]) -> bool:
    return len(set(map(len, columns))) > 1


def _are_numbers(values: Iterable[int]) -> bool:
    return all(-_INT_MAX <= value <= _INT_MAX for value in values)


def _are_counts(values: Iterable[int]) -> bool:
    return all(0 <= value <= _INT_MAX for value in values)


def _is_deep(value: Any) -> bool:
    """Deeper than whoever reads it later can follow."""
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
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
