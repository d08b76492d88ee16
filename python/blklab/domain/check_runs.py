"""Checks that runs from a file match their set-up, so that they can be analysed and drawn. msgspec
has checked types and ranges before (`blklab.domain.ranges`).

Here: columns have equal length, and every run of the set-up exists exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from blklab.domain.job_figures import Service
from blklab.domain.latencies import Latency
from blklab.domain.measurement import Measurement, Story
from blklab.domain.over_time import COLUMNS, OverTime
from blklab.domain.ranges import INT_MAX
from blklab.domain.setup import SetupDocument

_LEAST = 1e-18
"""Less than a byte in the longest possible run."""
_TRACE = ("queued_ns", "issued_ns", "completed_ns", "sector", "sectors", "op", "process")
_COUNTERS = ("read_ios", "write_ios")


def wrong(setup: SetupDocument, runs: Sequence[Measurement], behind: str = "") -> Iterator[str]:
    """The errors, each with its place: ``$.runs[3]`` followed by `behind`."""
    for kind, names in labels(setup).items():
        if len(set(names)) < len(names):
            yield f"$.setup.{kind}: duplicate entry"
    there = expected(setup)
    seen: set[tuple[str, str, str, int]] = set()
    for place, run in enumerate(runs):
        where = f"$.runs[{place}]{behind}"
        what = (run.disk, run.workload, run.scheduler)
        if what not in there:
            yield f"$.runs[{place}]: of a disk, workload or scheduler that is not in the set-up"
        if not 0 <= run.repeat < setup.repeats or (*what, run.repeat) in seen:
            yield f"{where}.repeat: repeat {run.repeat} is duplicated or out of range"
        seen.add((*what, run.repeat))
        for one in measured(run):
            yield f"{where}.{one}"


def wrong_in(run: Measurement, there: Set[tuple[str, str, str]], repeats: int) -> Iterator[str]:
    """The errors of one run of a set-up in which `there` is `expected`, each with its place in the
    run."""
    if (run.disk, run.workload, run.scheduler) not in there:
        yield "of a disk, workload or scheduler that is not in the set-up"
    if not 0 <= run.repeat < repeats:
        yield f"repeat: {run.repeat} is above {repeats}"
    yield from measured(run)


def labels(setup: SetupDocument) -> dict[str, list[str]]:
    """Names of the compared things, by their place in the set-up."""
    return {
        "disks": [disk.label for disk in setup.disks],
        "workloads": [load.name for load in setup.workloads],
        "schedulers": [scheduler.label for scheduler in setup.schedulers],
    }


def expected(setup: SetupDocument) -> set[tuple[str, str, str]]:
    """The runs of every repeat: disk, workload, scheduler."""
    left_out = {(pair.disk, pair.scheduler) for pair in setup.left_out}
    return {
        (disk.label, load.name, scheduler.label)
        for disk in setup.disks
        for load in setup.workloads
        for scheduler in setup.schedulers
        if (disk.label, scheduler.label) not in left_out
    }


def measured(run: Measurement) -> Iterator[str]:
    """The errors of one run's figures, each with its place in the run."""
    if not run.seed < 2**64:
        yield "seed: not of 64 bits"
    for where, value in _figures(run):
        if 0 < value < _LEAST:
            yield f"{where}: above 0 and below {_LEAST:g}"
    if run.figure is not None and not run.figure.unit.isprintable():
        yield "figure.unit: no unit"
    for name in _COUNTERS:
        if name not in run.disk_counters:
            yield f"disk_counters: '{name}' is missing"
    yield from _latencies("latencies", run.latencies)
    for place, job in enumerate(run.jobs):
        yield from _latencies(f"jobs[{place}].latencies", job.latencies)
    if run.story is not None:
        yield from _story(run.story)
    if run.service is not None:
        yield from _service(run.service)
    if run.over_time is not None:
        yield from _over_time(run.over_time)


def _figures(run: Measurement) -> Iterator[tuple[str, float]]:
    """The figures that form ratios, each with its place."""
    yield "bytes_per_s", run.bytes_per_s
    yield "ios_per_s", run.ios_per_s
    if run.figure is not None:
        yield "figure.value", run.figure.value
    for name, latency in run.latencies.items():
        yield f"latencies.{name}.mean_ns", latency.mean_ns
    for place, job in enumerate(run.jobs):
        for name, latency in job.latencies.items():
            yield f"jobs[{place}].latencies.{name}.mean_ns", latency.mean_ns
    for name, of in run.stages.items():
        for stage in ("queue", "disk"):
            spread = getattr(of, stage)
            yield f"stages.{name}.{stage}.mean_ns", spread.mean_ns
            yield f"stages.{name}.{stage}.stddev_ns", spread.stddev_ns


def _latencies(where: str, several: Mapping[str, Latency]) -> Iterator[str]:
    for name, latency in several.items():
        if len(latency.value_ns) != len(latency.count):
            yield f"{where}.{name}: columns of different lengths"
        if not 0 < sum(latency.count) <= INT_MAX:
            yield f"{where}.{name}.count: the sum is not from 1 to 2^53"
        if list(latency.value_ns) != sorted(set(latency.value_ns)):
            yield f"{where}.{name}.value_ns: does not rise"


def _story(story: Story) -> Iterator[str]:
    for name, columns in (("series", story.series), ("overview", story.overview),
                          ("detail", story.detail)):  # fmt: skip
        lengths = {len(column) for column in columns.values()}
        if name == "series":
            lengths -= {0}
        elif not set(_TRACE) <= columns.keys():
            yield f"story.{name}: columns are missing"
        if len(lengths) > 1:
            yield f"story.{name}: columns of different lengths"


def _over_time(course: OverTime) -> Iterator[str]:
    for name in COLUMNS:
        if len(getattr(course, name)) not in (0, course.intervals):
            yield f"over_time.{name}: not as long as there are intervals"
    if course.pile_ups is not None and course.pile_ups.count < len(course.pile_ups.found):
        yield "over_time.pile_ups: more are found than counted"


def _service(service: Service) -> Iterator[str]:
    if _differ((service.end_ns, service.process, service.bytes)) or _differ(
        (service.names, service.start_ns)
    ):
        yield "service: columns of different lengths"
    if sum(map(abs, service.bytes)) > INT_MAX:
        yield "service.bytes: the sum is above 2^53"


def _differ(columns: Sequence[Sequence[object]]) -> bool:
    return len(set(map(len, columns))) > 1
