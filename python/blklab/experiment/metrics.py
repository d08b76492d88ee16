"""The figures of a run that claims can use, by name; the name includes the unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from blklab.domain.job_figures import JobFigures
from blklab.domain.latencies import OPERATION_TEXT, Latency
from blklab.domain.measurement import PERCENTILES, Measurement
from blklab.domain.over_time import PileUps
from blklab.experiment import samples
from blklab.experiment.analyse import rate_resolution, resolution_of
from blklab.experiment.drift import drifts
from blklab.experiment.fairness import Fairness, fairness


@dataclass(frozen=True)
class Scope:
    """The scope of a figure: the processes, and their shares."""

    operation: str
    """The operation with the latency that counts."""
    job: str | None = None
    """The figure of this job's clones; None: of the whole run."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """The intended shares of jobs, by name."""


@dataclass(frozen=True)
class Metric:
    """One figure of a run."""

    name: str
    unit: str
    help: str
    more_is_better: bool
    of: Callable[[Measurement, Scope], float]
    """The figure's value. KeyError if the run has none."""
    of_a_job: bool = False
    """Also defined for a single job."""
    percent: float | None = None
    """For a percentile of latencies: the percentage."""
    is_rate: bool = False
    """It counts I/Os or their bytes."""
    is_total: bool = False
    """It grows with the workload: a scaled one has a part of it."""
    may_be_zero: bool = False
    """No ratios are formed of it: only a claim of the kind `bound` may be about it."""


def _job(run: Measurement, scope: Scope) -> JobFigures:
    return {job.name: job for job in run.jobs}[scope.job or ""]


def _of(read: Callable[[Any], float]) -> Callable[[Measurement, Scope], float]:
    """The common part of a run and of a job."""
    return lambda run, scope: read(_job(run, scope) if scope.job else run)


def _latency(read: Callable[[Latency], float]) -> Callable[[Measurement, Scope], float]:
    return lambda run, scope: read(
        (_job(run, scope) if scope.job else run).latencies[scope.operation]
    )


def _percentile(which: float) -> Callable[[Measurement, Scope], float]:
    place = PERCENTILES.index(which)
    return _latency(lambda latency: latency.percentiles_ns[place] / 1e3)


def _p95_us(latency: Latency) -> float:
    """From the histogram: runs are stored without this percentile."""
    return latency.histogram().percentile(95.0) / 1e3


def _later_us(job: JobFigures) -> float | None:
    return None if job.later_ns is None else job.later_ns / 1e3


def _own(unit: str, factor: float) -> Callable[[Measurement, Scope], float]:
    """A program's own figure in `unit`, times `factor`; KeyError if it has none in that unit."""

    def found(run: Measurement, scope: Scope) -> float:
        if run.figure is None or run.figure.unit != unit:
            raise KeyError(unit)
        return run.figure.value * factor

    return found


def _start_peak(job: JobFigures) -> float | None:
    return job.early_ns / job.later_ns if job.early_ns and job.later_ns else None


def _stretch(read: Callable[[JobFigures], float | None]) -> Callable[[Measurement, Scope], float]:
    """The figure for a part of a job's time; KeyError if no command falls into it."""

    def found(run: Measurement, scope: Scope) -> float:
        job = _job(run, scope)
        figure = read(job)
        if figure is None:
            raise KeyError(job.name)
        return figure

    return found


def _service_stddev_us(run: Measurement, scope: Scope) -> float:
    """KeyError if the run has no stages of that operation."""
    return run.stages[scope.operation].disk.stddev_ns / 1e3


def _pile_ups(read: Callable[[PileUps], float]) -> Callable[[Measurement, Scope], float]:
    """KeyError if the run is too short, or has no series over time."""

    def found(run: Measurement, scope: Scope) -> float:
        if run.over_time is None or run.over_time.pile_ups is None:
            raise KeyError("pile-ups")
        return read(run.over_time.pile_ups)

    return found


def _uneven_percent(run: Measurement, scope: Scope) -> float:
    """KeyError if the run is too short, or has too few I/Os in an interval."""
    for drift in drifts([run.over_time] if run.over_time is not None else []):
        if drift.figure == "p99":
            return drift.uneven
    raise KeyError("p99")


def _shared(read: Callable[[Fairness], float]) -> Callable[[Measurement, Scope], float]:
    def found(run: Measurement, scope: Scope) -> float:
        how = fairness(run.service, scope.weights) if run.service is not None else None
        if how is None:
            raise KeyError("service")
        return read(how)

    return found


_LATENCY = "completion latency of reads, else of fsyncs, else of writes"
METRICS = {
    metric.name: metric
    for metric in (
        Metric("mb_s", "MB/s", "throughput, 10^6 bytes", True,
               _of(lambda run: run.bytes_per_s / 1e6), True, is_rate=True),
        Metric("mib_s", "MiB/s", "throughput, 2^20 bytes", True,
               _of(lambda run: run.bytes_per_s / 2**20), True, is_rate=True),
        Metric("kib_s", "KiB/s", "throughput, 2^10 bytes", True,
               _of(lambda run: run.bytes_per_s / 2**10), True, is_rate=True),
        Metric("iops", "IOPS", "I/Os", True, _of(lambda run: run.ios_per_s), True, is_rate=True),
        Metric("thousand_kib_s", "MB/s", "throughput, 1000 KiB: what the Phoronix Test Suite "
               "makes of fio's KB/s", True, _of(lambda run: run.bytes_per_s / 1_024_000), True,
               is_rate=True),
        Metric("own_mb_s", "MB/s", "a program's own figure, 10^6 bytes", True, _own("MB/s", 1.0)),
        Metric("own_mib_s", "MB/s", "the same, 2^20 bytes", True, _own("MB/s", 1e6 / 2**20)),
        Metric("own_tps", "TPS", "a program's own figure, transactions per second", True,
               _own("tps", 1.0)),
        Metric("own_tpmc", "tpmC", "a program's own figure, new orders per minute", True,
               _own("tpmC", 1.0)),
        Metric("own_ops", "ops/s", "a program's own figure, operations per second", True,
               _own("ops/s", 1.0)),
        Metric("mean_us", "us", f"mean {_LATENCY}", False,
               _latency(lambda latency: latency.mean_ns / 1e3), True),
        Metric("p50_us", "us", f"median {_LATENCY}", False, _percentile(50.0), True,
               percent=50.0),
        Metric("p95_us", "us", f"95th percentile of the {_LATENCY}", False,
               _latency(_p95_us), True, percent=95.0),
        Metric("p99_us", "us", f"99th percentile of the {_LATENCY}", False,
               _percentile(99.0), True, percent=99.0),
        Metric("p999_us", "us", f"99.9th percentile of the {_LATENCY}", False,
               _percentile(99.9), True, percent=99.9),
        Metric("duration_s", "s", "time from the start to the end of all jobs, or of one", False,
               lambda run, scope: (_lasted(_job(run, scope)) if scope.job else run.duration_ns)
               / 1e9, True, is_total=True),
        Metric("later_us", "us", "mean time from queue to completion of a job's commands, without "
               "those of its first second", False, _stretch(_later_us), True),
        Metric("start_peak", "times", "the same in its first second, over that of later", False,
               _stretch(_start_peak), True),
        Metric("service_stddev_us", "us", "standard deviation of the time that the disk takes for "
               "reads, else writes", False, _service_stddev_us),
        Metric("jain", "of 1", "Jain's index of the bytes per weight, while all compete for "
               "the disk", True, _shared(lambda how: how.jain)),
        Metric("lag_mib", "MiB", "the largest lag of a process behind its ideal share, while "
               "all compete for the disk", False, _shared(lambda how: how.lag_bytes / 2**20)),
        Metric("ends_apart", "times", "duration of the last process divided by that of the first",
               False, _shared(lambda how: how.ends_apart)),
        Metric("p99_uneven_percent", "% of the mean", "standard deviation of the 99th percentile "
               "from interval to interval of a [long run](comparing.md#over-time)", False,
               _uneven_percent),
        Metric("pile_ups", "pile-ups", "[pile-ups](comparing.md#pile-ups) of a run", False,
               _pile_ups(lambda of: float(of.count)), may_be_zero=True),
        Metric("pile_up_longest_s", "s", "the longest of them; 0 without any", False,
               _pile_ups(lambda of: of.longest_ns / 1e9), may_be_zero=True),
    )
}  # fmt: skip
"""By name."""


def _lasted(job: JobFigures) -> int:
    return job.end_ns - job.start_ns


def figures(metric: Metric, runs: Sequence[Measurement], scope: Scope) -> list[float] | None:
    """One figure for each run; None if a run has none, or 0 for a metric that forms ratios."""
    try:
        found = [metric.of(run, scope) for run in runs]
    except KeyError:
        return None
    if metric.may_be_zero:
        return found or None
    return found if found and all(value > 0 for value in found) else None


def too_few(metric: Metric, runs: Sequence[Measurement], scope: Scope) -> str:
    """The reason if a run has too few samples to judge the metric, which all runs have; else
    empty."""
    if metric.percent is None:
        return ""
    fewest = min(map(_latency(lambda latency: latency.ios), runs, [scope] * len(runs)))
    return samples.too_few(metric.percent, int(fewest), OPERATION_TEXT[scope.operation])


def resolution(metric: Metric, runs: Sequence[Measurement], scope: Scope) -> float:
    """The factor by which one I/O more or less changes the metric, which all runs have."""
    if not metric.is_rate:
        return 1.0
    return max(
        resolution_of(_job(run, scope).latencies) if scope.job else rate_resolution(run)
        for run in runs
    )
