"""Results that a rig could have returned, made from random numbers of a fixed seed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from blklab.domain import summaries
from blklab.domain.histogram import Histogram
from blklab.domain.result import Result
from blklab.domain.summaries import RunSummary


@dataclass
class MadeRun:
    """Has the interface of the core's `Run`."""

    document: dict[str, Any]
    data: dict[str, np.ndarray[Any, np.dtype[np.int64]]] = field(default_factory=dict)

    @property
    def summary(self) -> RunSummary:
        return summaries.DECODER.decode(json.dumps(self.document))

    def columns(self) -> list[str]:
        return list(self.data)

    def column(self, name: str) -> bytes:
        return self.data[name].astype("<i8").tobytes()


def histogram(latency_ns: np.ndarray[Any, Any]) -> Histogram:
    value_ns, count = np.unique(latency_ns.astype(np.int64), return_counts=True)
    return Histogram(value_ns, count.astype(np.int64))


def latency(sample: np.ndarray[Any, Any]) -> dict[str, Any]:
    if not len(sample):
        return {"count": 0, "min_ns": 0, "max_ns": 0, "mean_ns": 0.0, "stddev_ns": 0.0}
    return {
        "count": len(sample),
        "min_ns": int(sample.min()),
        "max_ns": int(sample.max()),
        "mean_ns": float(sample.mean()),
        "stddev_ns": float(sample.std(ddof=1)) if len(sample) > 1 else 0.0,
    }


def samples(values: list[float]) -> dict[str, Any]:
    array = np.array(values or [0.0])
    return {
        "count": len(values),
        "min": float(array.min()),
        "max": float(array.max()),
        "mean": float(array.mean()),
        "stddev": float(array.std(ddof=1)) if len(values) > 1 else 0.0,
    }


def run(
    seed: int = 1,
    *,
    jobs: int = 2,
    read_ios: int = 400,
    write_ios: int = 200,
    syncs: int = 0,
    mean_ns: float = 8e6,
    names: tuple[str, ...] = ("reader", "writer"),
    group_reporting: bool = False,
    duration_ns: int = 3_000_000_000,
) -> MadeRun:
    """`jobs` processes with lognormal latencies around `mean_ns`."""
    random = np.random.default_rng(seed)
    made = MadeRun(
        {
            "duration_ns": duration_ns,
            "jobs": [],
            "detail_left_out": 0,
            "decisions_left_out": None,
        }
    )
    total = 0
    for index in range(jobs):
        job: dict[str, Any] = {
            "name": names[index % len(names)],
            "group": 0,
            "group_reporting": group_reporting,
            "options": [["rw", "randrw"], ["bs", "4k"], ["ioengine", "libaio"], ["iodepth", "8"]],
            "percentiles": [1.0, 50.0, 90.0, 99.0, 99.9, 99.99],
            "start_ns": 0,
            "end_ns": duration_ns,
            "user_ns": 40_000_000,
            "system_ns": 120_000_000,
            "context_switches": read_ios + write_ios,
        }
        for name, ios in (("read", read_ios), ("write", write_ios), ("trim", 0)):
            clat = np.rint(random.lognormal(np.log(mean_ns), 0.6, ios))
            rates = [float(r) for r in random.normal(500.0, 30.0, 5 if ios else 0)]
            job[name] = {
                "ios": ios,
                "bytes": ios * 4096,
                "runtime_ns": duration_ns if ios else 0,
                "slat": latency(np.full(ios, 2000)),
                "clat": latency(clat),
                "lat": latency(clat + 2000),
                "bw": samples([4 * rate for rate in rates]),
                "iops": samples(rates),
            }
            hist = histogram(clat)
            made.data[f"jobs.{index}.{name}.clat_hist.value_ns"] = hist.value_ns
            made.data[f"jobs.{index}.{name}.clat_hist.count"] = hist.count
        sync = np.rint(random.lognormal(np.log(2e7), 0.3, syncs))
        job["sync_lat"] = latency(sync)
        hist = histogram(sync)
        made.data[f"jobs.{index}.sync_hist.value_ns"] = hist.value_ns
        made.data[f"jobs.{index}.sync_hist.count"] = hist.count
        ios = read_ios + write_ios
        total += ios
        job["depth_levels"] = [1, 1, 2, ios - 4, 0, 0, 0]
        job["submit_levels"] = [0, ios, 0, 0, 0, 0, 0]
        job["complete_levels"] = [0, ios, 0, 0, 0, 0, 0]
        job["latency_levels"] = [0] * 20 + [0, min(ios, 10), max(ios - 10, 0)] + [0] * 9
        made.document["jobs"].append(job)
    made.document["disk"] = {
        "read_ios": read_ios * jobs,
        "read_merges": 3,
        "read_sectors": read_ios * jobs * 8,
        "read_ticks_ns": int(read_ios * jobs * mean_ns),
        "write_ios": write_ios * jobs,
        "write_merges": 1,
        "write_sectors": write_ios * jobs * 8,
        "write_ticks_ns": int(write_ios * jobs * mean_ns),
        "flush_ios": syncs,
        "flush_ticks_ns": syncs * 1000,
        "discard_ios": 0,
        "discard_ticks_ns": 0,
        "io_ticks_ns": duration_ns,
        "in_queue_ns": int(total * mean_ns),
        "joined_ns": 0,
        "in_flight_ns": int(total * mean_ns * 0.7),
        "service_ns": int(total * mean_ns * 0.7),
        "disk_busy_ns": int(duration_ns * 0.9),
        "depth_max": 16,
    }
    _series(made, random, total, duration_ns, mean_ns)
    _traces(made, random, total, duration_ns, mean_ns, jobs)
    return made


def _series(
    made: MadeRun, random: np.random.Generator, total: int, duration_ns: int, mean_ns: float
) -> None:
    intervals = 60
    made.document["series_interval_ns"] = duration_ns // intervals
    ios = random.poisson(total / intervals / 2, (2, intervals))
    columns = {
        "read_bytes": ios[0] * 4096,
        "write_bytes": ios[1] * 4096,
        "read_ios": ios[0],
        "write_ios": ios[1],
        "read_clat_sum_ns": ios[0] * int(mean_ns),
        "write_clat_sum_ns": ios[1] * int(mean_ns),
        "read_clat_max_ns": np.full(intervals, int(mean_ns * 4)),
        "write_clat_max_ns": np.full(intervals, int(mean_ns * 4)),
        "waiting_milli": random.integers(0, 9000, intervals),
        "in_flight_milli": random.integers(0, 16000, intervals),
    }
    made.data.update({f"series.{name}": values for name, values in columns.items()})


def _traces(
    made: MadeRun,
    random: np.random.Generator,
    total: int,
    duration_ns: int,
    mean_ns: float,
    jobs: int,
) -> None:
    made.document["overview_stride"] = 4
    for name, stride, span_ns in (("overview", 4, duration_ns), ("detail", 1, duration_ns // 10)):
        count = total // stride // (1 if name == "overview" else 10)
        issued = np.sort(random.integers(0, span_ns, count))
        columns = {
            "queued_ns": issued - int(mean_ns / 3),
            "issued_ns": issued,
            "completed_ns": issued + int(mean_ns),
            "sector": random.integers(0, 1_000_000_000, count),
            "sectors": np.full(count, 8),
            "op": random.integers(0, 2, count),
            "process": random.integers(-1, jobs, count),
        }
        made.data.update({f"{name}.{key}": values for key, values in columns.items()})


def result(seed: int = 1, **changes: Any) -> Result:
    """The run above as a `Result`."""
    return Result.from_run(run(seed, **changes))
