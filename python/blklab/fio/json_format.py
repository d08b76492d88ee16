"""fio's ``json`` and ``json+``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from blklab.domain.histogram import Histogram
from blklab.domain.stages import Times
from blklab.fio.status import (
    DirectionStatus,
    GroupStatus,
    JobStatus,
    Moments,
    Report,
    group_status,
    times_status,
)

FIO_VERSION = "fio-3.33"
"""The version of fio with this schema; readers check it."""

_DEPTHS = ("1", "2", "4", "8", "16", "32", ">=64")
_BATCHES = ("0", "4", "8", "16", "32", "64", ">=64")
_CLASSES = ("2", "4", "10", "20", "50", "100", "250", "500", "750", "1000")
_KIB = 1024


def render(report: Report, bins: bool) -> str:
    """The whole document; `bins` adds the histograms (``json+``)."""
    return _dump(document(report, bins)) + "\n"


def document(report: Report, bins: bool) -> dict[str, Any]:
    """The same as plain data."""
    head: dict[str, Any] = {
        "fio version": FIO_VERSION,
        "timestamp": report.end_ms // 1000,
        "timestamp_ms": report.end_ms,
        "time": report.end_text,
    }
    if report.global_options:
        head["global options"] = dict(report.global_options)
    head["jobs"] = [_job(job, report, bins) for job in report.jobs]
    head["disk_util"] = [
        {"name": report.disk_name} | report.disk_figures() | {"util": report.disk_util_percent}
    ]
    if report.requests:
        # Not fio's: from the block layer's events.
        head["requests"] = {
            "one_in": report.requests_one_in,
            **{name: _request(of, report, bins) for name, of in report.requests.items()},
        }
    return head


def _request(of: Times, report: Report, bins: bool) -> dict[str, Any]:
    return {
        name: _latency(*times_status(took), report.percentiles, bins)
        for name, took in (("queue_ns", of.queue_ns), ("disk_ns", of.disk_ns))
    }


def _job(job: JobStatus, report: Report, bins: bool) -> dict[str, Any]:
    user, system = job.cpu_percent()
    below_us, below_ms, longer = job.latency_percent()
    own = {key: value for key, value in job.options if report.global_options.get(key) != value}
    group = [other for other in report.jobs if other.group == job.group]
    return {
        "jobname": job.name,
        "groupid": job.group,
        "error": 0,
        "eta": 0,
        "elapsed": -(-report.duration_ms // 1000),
        "job options": own,
        **{
            name: _direction(job, part, group_status(group, name), bins)
            for name, part in job.directions.items()
        },
        "sync": {
            "total_ios": job.sync.count,
            "lat_ns": _latency(job.sync, job.sync_hist, job.percentiles, bins),
        },
        "job_runtime": job.runtime_ms,
        "usr_cpu": user,
        "sys_cpu": system,
        "ctx": job.context_switches,
        # Virtual processes have no pages to fault on.
        "majf": 0,
        "minf": 0,
        "iodepth_level": _named(_DEPTHS, job.depth_percent()),
        "iodepth_submit": _named(_BATCHES, job.submit_percent()),
        "iodepth_complete": _named(_BATCHES, job.complete_percent()),
        "latency_ns": _named(_CLASSES, below_us),
        "latency_us": _named(_CLASSES, below_ms),
        "latency_ms": _named((*_CLASSES, "2000", ">=2000"), longer),
        "latency_depth": job.iodepth,
        "latency_target": 0,
        "latency_percentile": 100.0,
        "latency_window": 0,
    }


def _direction(
    job: JobStatus, part: DirectionStatus, group: GroupStatus | None, bins: bool
) -> dict[str, Any]:
    return {
        "io_bytes": part.io_bytes,
        "io_kbytes": part.io_bytes // _KIB,
        "bw_bytes": part.bw_bytes,
        "bw": part.bw_bytes // _KIB,
        "iops": part.iops_rate,
        "runtime": part.runtime_ms,
        "total_ios": part.total_ios,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": _latency(part.slat, None, (), bins),
        "clat_ns": _latency(part.clat, part.hist, job.percentiles, bins),
        "lat_ns": _latency(part.lat, None, (), bins),
        "bw_min": int(part.bw.min),
        "bw_max": int(part.bw.max),
        "bw_agg": share_of_group(part, group) if part.bw.count else 0.0,
        "bw_mean": float(part.bw.mean),
        "bw_dev": part.bw.stddev,
        "bw_samples": part.bw.count,
        "iops_min": int(part.iops.min),
        "iops_max": int(part.iops.max),
        "iops_mean": float(part.iops.mean),
        "iops_stddev": part.iops.stddev,
        "iops_samples": part.iops.count,
    }


def share_of_group(part: DirectionStatus, group: GroupStatus | None) -> float:
    """Mean bandwidth in percent of the group's (`convert_agg_kbytes_percent`)."""
    if group is None or group.agg <= _KIB:
        return 100.0
    return min(100.0, int(part.bw.mean) * 100.0 / (group.agg / _KIB))


def _latency(
    moments: Moments, hist: Histogram | None, percentiles: tuple[float, ...], bins: bool
) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "min": int(moments.min),
        "max": int(moments.max),
        "mean": float(moments.mean),
        "stddev": moments.stddev,
        "N": moments.count,
    }
    if hist is not None and moments.count:
        values = hist.percentiles(percentiles).tolist()
        keys = [f"{percent:f}" for percent in percentiles]
        figures["percentile"] = dict(zip(keys, values, strict=True))
        if bins:
            keys = [str(value) for value in hist.value_ns.tolist()]
            figures["bins"] = dict(zip(keys, hist.count.tolist(), strict=True))
    return figures


def _named(names: Iterable[str], values: list[float]) -> dict[str, float]:
    return dict(zip(names, values, strict=True))


def _dump(value: Any, indent: int = 0) -> str:
    """JSON as fio lays it out: two spaces, `` : ``, six digits behind the point."""
    inner, outer = "  " * (indent + 1), "  " * indent
    if isinstance(value, dict):
        rows = [f"{inner}{json.dumps(key)} : {_dump(v, indent + 1)}" for key, v in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{outer}}}" if rows else "{\n" + outer + "}"
    if isinstance(value, list):
        rows = [f"{inner}{_dump(v, indent + 1)}" for v in value]
        return "[\n" + ",\n".join(rows) + f"\n{outer}]"
    return f"{value:f}" if isinstance(value, float) else json.dumps(value)
