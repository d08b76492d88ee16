"""Do runs from a file fit their set-up, so that they can be analysed and drawn?

Types are checked before (`blklab.domain.setup`). Here: columns of one length, figures that are
finite, every run of the set-up and none twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from blklab.domain.job_figures import Service
from blklab.domain.latencies import PERCENTILES, Latency
from blklab.domain.measurement import Measurement, Story
from blklab.domain.setup import INT_MAX, SetupDocument
from blklab.domain.stages import OPERATIONS as REQUESTS
from blklab.domain.stages import PERCENTILES as STAGE_PERCENTILES
from blklab.domain.stages import Spread, Stages

OPERATIONS = ("read", "write", "sync", "trim", "operation")
"""The operations with latencies."""
_RATE_MAX = 1e18
_LEAST = 1e-18
"""Less than a byte in the longest possible run."""
_NS_MAX = 2**63 - 1
"""Of virtual time, which goes on for 292 years."""
_TRACE = ("queued_ns", "issued_ns", "completed_ns", "sector", "sectors", "op", "process")
_UNIT_CHARACTERS_MAX = 40
_COUNTERS = ("read_ios", "write_ios")


def wrong(setup: SetupDocument, runs: Sequence[Measurement], behind: str = "") -> Iterator[str]:
    """What is wrong; where, with `behind` behind each run's place: ``$.runs[3]``."""
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
    """What is wrong with one run of a set-up in which `there` is `expected`; where in the run."""
    if (run.disk, run.workload, run.scheduler) not in there:
        yield "of a disk, workload or scheduler that is not in the set-up"
    if not 0 <= run.repeat < repeats:
        yield f"repeat: {run.repeat} is above {repeats}"
    yield from measured(run)


def labels(setup: SetupDocument) -> dict[str, list[str]]:
    """Names of what is compared, by where in the set-up they stand."""
    return {
        "disks": [disk.label for disk in setup.disks],
        "workloads": [load.name for load in setup.workloads],
        "schedulers": [scheduler.label for scheduler in setup.schedulers],
    }


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


def measured(run: Measurement) -> Iterator[str]:
    """What is wrong with one run's figures, each with where in the run."""
    if not 0 <= run.duration_ns <= _NS_MAX:
        yield "duration_ns: out of range"
    if not 0 <= run.seed < 2**64:
        yield "seed: not of 64 bits"
    for name in ("bytes_per_s", "ios_per_s"):
        if not _is_figure(getattr(run, name), _RATE_MAX):
            yield f"{name}: out of range"
    if run.figure is not None:
        if not _is_figure(run.figure.value, _RATE_MAX):
            yield "figure.value: out of range"
        if (
            not 0 < len(run.figure.unit) <= _UNIT_CHARACTERS_MAX
            or not run.figure.unit.isprintable()
        ):
            yield "figure.unit: no unit"
    yield from _latencies("latencies", run.latencies)
    if not _are_counts(run.disk_counters.values()) or any(
        name not in run.disk_counters for name in _COUNTERS
    ):
        yield "disk_counters: unexpected counters"
    for place, job in enumerate(run.jobs):
        yield from _latencies(f"jobs[{place}].latencies", job.latencies)
    yield from _stages(run.stages)
    if run.story is not None:
        yield from _story(run.story)
    if run.service is not None:
        yield from _service(run.service)


def _latencies(where: str, several: Mapping[str, Latency]) -> Iterator[str]:
    for name, latency in several.items():
        if name not in OPERATIONS:
            yield f"{where}: no operation of that name"
        columns = (latency.value_ns, latency.count)
        if len(latency.percentiles_ns) != len(PERCENTILES) or _differ(columns) or not columns[0]:
            yield f"{where}.{name}: columns of different lengths"
        counts = (*latency.percentiles_ns, *columns[0], *columns[1], latency.ios)
        total = sum(latency.count)
        if not _are_counts(counts) or not 0 < total <= INT_MAX:
            yield f"{where}.{name}: out of range"
        if list(latency.value_ns) != sorted(set(latency.value_ns)):
            yield f"{where}.{name}.value_ns: does not rise"
        if not _is_figure(latency.mean_ns, INT_MAX):
            yield f"{where}.{name}.mean_ns: out of range"


def _stages(several: Mapping[str, Stages]) -> Iterator[str]:
    for name, of in several.items():
        if name not in REQUESTS:
            yield "stages: no operation of that name"
        if not (0 < of.requests <= INT_MAX and 0 < of.one_in <= INT_MAX):
            yield f"stages.{name}: out of range"
        for stage in (of.queue, of.disk):
            yield from _spread(f"stages.{name}", stage)


def _spread(where: str, spread: Spread) -> Iterator[str]:
    if len(spread.percentiles_ns) != len(STAGE_PERCENTILES):
        yield f"{where}: columns of different lengths"
    figures = (spread.min_ns, spread.max_ns, *spread.percentiles_ns)
    moments = (spread.mean_ns, spread.stddev_ns)
    if not _are_counts(figures) or not all(_is_figure(value, INT_MAX) for value in moments):
        yield f"{where}: out of range"


def _story(story: Story) -> Iterator[str]:
    if not (0 < story.interval_ns <= INT_MAX and 0 < story.overview_stride <= INT_MAX):
        yield "story: out of range"
    for name, columns in (("series", story.series), ("overview", story.overview),
                          ("detail", story.detail)):  # fmt: skip
        if not all(_are_numbers(column) for column in columns.values()):
            yield f"story.{name}: out of range"
        if name == "series":
            lengths = {len(column) for column in columns.values()} - {0}
        else:
            lengths = {len(columns.get(key, ())) for key in _TRACE}
            lengths |= {len(column) for column in columns.values()}
        if len(lengths) > 1 or (name != "series" and not set(_TRACE) <= columns.keys()):
            yield f"story.{name}: columns are missing or of different lengths"


def _service(service: Service) -> Iterator[str]:
    if _differ((service.end_ns, service.process, service.bytes)) or _differ(
        (service.names, service.start_ns)
    ):
        yield "service: columns of different lengths"
    numbers = (*service.start_ns, *service.end_ns, *service.process, *service.bytes)
    if not _are_numbers(numbers) or sum(map(abs, service.bytes)) > INT_MAX:
        yield "service: out of range"


def _differ(columns: Sequence[Sequence[object]]) -> bool:
    return len(set(map(len, columns))) > 1


def _are_numbers(values: Iterable[int]) -> bool:
    return all(-_NS_MAX <= value <= _NS_MAX for value in values)


def _is_figure(value: float, most: float) -> bool:
    """Zero, or large enough that ratios of two of them are numbers."""
    return value == 0 or _LEAST <= value <= most


def _are_counts(values: Iterable[int]) -> bool:
    return all(0 <= value <= INT_MAX for value in values)
