"""Real fio, where it is installed: run it, and read its json+ back into a `Result`."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blklab.domain.result import Result
from tests import plausible

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")


_DISK_COUNTERS = (
    *("read_ios", "write_ios", "read_merges", "write_merges"),
    *("read_ticks", "write_ticks", "in_queue"),
)


@dataclass(frozen=True)
class FioRun:
    """One run's output in three formats."""

    document: dict[str, Any]
    terse: list[str]
    normal: str


def run(directory: Path, *options: str) -> FioRun:
    """Run fio in `directory` with 4 MiB files."""
    command = ["fio", f"--directory={directory}", "--size=4m", *options]
    command += ["--output-format=normal,terse,json+"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    start, end = text.index("\n{") + 1, text.rindex("\n}") + 2
    head, tail = text[:start], text[end:]
    terse = [line for line in head.splitlines() if line.startswith("3;")]
    normal = "\n".join(line for line in head.splitlines() if not line.startswith("3;")) + tail
    document = json.loads(text[start:end])
    if "disk_util" not in document:
        # The null engine has no disk; a rig always has one.
        document["disk_util"] = [
            {"name": "null"} | dict.fromkeys(_DISK_COUNTERS, 0) | {"util": 0.0}
        ]
        terse = [line + ";null;0;0;0;0;0;0;0;0.00%" for line in terse]
        normal += (
            "\nDisk stats (read/write):\n"
            "  null: ios=0/0, merge=0/0, ticks=0/0, in_queue=0, util=0.00%\n"
        )
    return FioRun(document, terse, normal)


def as_result(document: dict[str, Any]) -> Result:
    """fio's measurements as a rig would return them; one process per printed job."""
    made = plausible.run(jobs=len(document["jobs"]))
    shared = document.get("global options", {})
    for index, (job, source) in enumerate(
        zip(made.document["jobs"], document["jobs"], strict=True)
    ):
        runtime_ns = source["job_runtime"] * 1_000_000
        rw_total = sum(source[name]["total_ios"] for name in ("read", "write", "trim"))
        job.update(
            name=source["jobname"],
            group=source["groupid"],
            options=[[key, value] for key, value in (shared | source["job options"]).items()],
            percentiles=_percentiles(source),
            start_ns=0,
            end_ns=runtime_ns,
            user_ns=round(source["usr_cpu"] * runtime_ns / 100),
            system_ns=round(source["sys_cpu"] * runtime_ns / 100),
            context_switches=source["ctx"],
            sync_lat=_latency(source["sync"]["lat_ns"]),
            depth_levels=_counts(source["iodepth_level"], rw_total),
            submit_levels=_counts(source["iodepth_submit"], 10**6),
            complete_levels=_counts(source["iodepth_complete"], 10**6),
            latency_levels=[
                count
                for name in ("latency_ns", "latency_us", "latency_ms")
                for count in _counts(source[name], rw_total)
            ],
        )
        _histogram(made, f"jobs.{index}.sync_hist", source["sync"]["lat_ns"])
        for name in ("read", "write", "trim"):
            part = source[name]
            job[name] = {
                "ios": part["total_ios"],
                "bytes": part["io_bytes"],
                "runtime_ns": part["runtime"] * 1_000_000,
                "slat": _latency(part["slat_ns"]),
                "clat": _latency(part["clat_ns"]),
                "lat": _latency(part["lat_ns"]),
                "bw": _samples(part, "bw", "bw_dev"),
                "iops": _samples(part, "iops", "iops_stddev"),
            }
            _histogram(made, f"jobs.{index}.{name}.clat_hist", part["clat_ns"])
    disk = document["disk_util"][0]
    for key in ("read_ios", "write_ios", "read_merges", "write_merges"):
        made.document["disk"][key] = disk[key]
    for key in ("read_ticks", "write_ticks", "in_queue"):
        made.document["disk"][f"{key}_ns"] = disk[key] * 1_000_000
    longest_ns = max(job["end_ns"] for job in made.document["jobs"])
    made.document["duration_ns"] = longest_ns
    made.document["disk"]["io_ticks_ns"] = round(disk["util"] * longest_ns / 100)
    return Result.from_run(made)


def _percentiles(source: dict[str, Any]) -> list[float]:
    for name in ("read", "write", "trim"):
        if "percentile" in source[name]["clat_ns"]:
            return [float(key) for key in source[name]["clat_ns"]["percentile"]]
    return []


def _latency(part: dict[str, Any]) -> dict[str, Any]:
    return {
        "count": part["N"],
        "min_ns": part["min"],
        "max_ns": part["max"],
        "mean_ns": part["mean"],
        "stddev_ns": part["stddev"],
    }


def _samples(part: dict[str, Any], name: str, deviation: str) -> dict[str, Any]:
    return {
        "count": part[f"{name}_samples"],
        "min": part[f"{name}_min"],
        "max": part[f"{name}_max"],
        "mean": part[f"{name}_mean"],
        "stddev": part[deviation],
    }


def _counts(shares: dict[str, float], total: int) -> list[int]:
    # fio rounds smaller shares up to 0.01: of 16,000 one is 0.01 as well.
    return [
        max(1, total // 10_000) if share == _SHARE_LEAST else round(share * total / 100)
        for share in shares.values()
    ]


_SHARE_LEAST = 0.01


def _histogram(made: plausible.MadeRun, prefix: str, part: dict[str, Any]) -> None:
    bins = part.get("bins", {})
    made.data[f"{prefix}.value_ns"] = np.array([int(value) for value in bins], dtype=np.int64)
    made.data[f"{prefix}.count"] = np.array(list(bins.values()), dtype=np.int64)
