"""What a claim may be about: figures of a run, by name, in the unit that is in the name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from blklab.compare.measurement import PERCENTILES, Measurement


@dataclass(frozen=True)
class Metric:
    """One figure of a run."""

    name: str
    unit: str
    help: str
    more_is_better: bool
    of: Callable[[Measurement, str], float]
    """Of a run, and for latencies of whose; KeyError if the run had none of these."""


def _percentile(which: float) -> Callable[[Measurement, str], float]:
    place = PERCENTILES.index(which)
    return lambda run, operation: run.latencies[operation].percentiles_ns[place] / 1e3


_LATENCY = "completion latency of reads, else of fsyncs, else of writes"
METRICS = {
    metric.name: metric
    for metric in (
        Metric("mb_s", "MB/s", "throughput, 10^6 bytes", True,
               lambda run, _: run.bytes_per_s / 1e6),
        Metric("mib_s", "MiB/s", "throughput, 2^20 bytes", True,
               lambda run, _: run.bytes_per_s / 2**20),
        Metric("iops", "IOPS", "I/Os", True, lambda run, _: run.ios_per_s),
        Metric("mean_us", "us", f"mean {_LATENCY}", False,
               lambda run, operation: run.latencies[operation].mean_ns / 1e3),
        Metric("p50_us", "us", f"median {_LATENCY}", False, _percentile(50.0)),
        Metric("p99_us", "us", f"99th percentile of the {_LATENCY}", False, _percentile(99.0)),
        Metric("p999_us", "us", f"99.9th percentile of the {_LATENCY}", False, _percentile(99.9)),
        Metric("duration_s", "s", "time from the start to the end of all jobs", False,
               lambda run, _: run.duration_ns / 1e9),
    )
}  # fmt: skip
"""By name."""


def figures(metric: Metric, runs: Sequence[Measurement], operation: str) -> list[float] | None:
    """One of each run; None if one of them has none, or none above zero."""
    try:
        found = [metric.of(run, operation) for run in runs]
    except KeyError:
        return None
    return found if found and all(value > 0 for value in found) else None
