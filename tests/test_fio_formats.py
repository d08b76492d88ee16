"""blklab's rendering of real fio's measurements equals fio's own output."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blklab
from blklab import _core, fio
from blklab.base.catalogue import Entry
from blklab.domain.result import Result
from blklab.fio import json_format
from blklab.fio.status import report
from tests import plausible, real_fio

JOBS = {
    "psync randrw fsync": ["--name=a", "--rw=randrw", "--ioengine=psync", "--fsync=32"],
    "libaio read two jobs": [
        "--name=a",
        "--rw=read",
        "--ioengine=libaio",
        "--iodepth=16",
        "--numjobs=2",
    ],
    "group_reporting": [
        "--name=a",
        "--rw=randrw",
        "--ioengine=libaio",
        "--iodepth=4",
        "--numjobs=3",
        "--group_reporting",
    ],
    "stonewall": ["--name=a", "--rw=write", "--name=b", "--stonewall", "--rw=randread"],
    "trim": ["--name=a", "--rw=randtrim", "--ioengine=null"],
    "trimwrite": ["--name=a", "--rw=trimwrite", "--ioengine=null", "--iodepth=4"],
    "samples": ["--name=a", "--rw=randread", "--runtime=2", "--time_based", "--bs=16k"],
    "whole percentiles": ["--name=a", "--rw=randwrite", "--percentile_list=50:99"],
    "percentile_list": ["--name=a", "--rw=randwrite", "--percentile_list=50:99:99.9"],
}


@pytest.fixture(scope="module", params=list(JOBS), ids=lambda name: str(name).replace(" ", "-"))
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return real_fio.run(tmp_path_factory.mktemp("fio"), *JOBS[request.param])


def ours(real: real_fio.FioRun) -> Any:
    disk_name = real.document["disk_util"][0]["name"]
    shared = real.document.get("global options")
    return report(real_fio.as_result(real.document), disk_name, shared)


def difference(expected: Any, found: Any, path: str = "") -> list[str]:
    """Where `found` lacks a key, has another type or another value."""
    if isinstance(expected, dict):
        if list(expected) != list(found):
            return [f"{path}: keys {list(expected)} != {list(found)}"]
        return [
            d for key in expected for d in difference(expected[key], found[key], f"{path}/{key}")
        ]
    if isinstance(expected, list):
        if len(expected) != len(found):
            return [f"{path}: length {len(expected)} != {len(found)}"]
        pairs = enumerate(zip(expected, found, strict=True))
        return [d for i, (a, b) in pairs for d in difference(a, b, f"{path}/{i}")]
    if type(expected) is not type(found):
        return [f"{path}: {expected!r} is not of the type of {found!r}"]
    if isinstance(expected, float):
        return [] if found == pytest.approx(expected, rel=1e-3, abs=2e-3) else [f"{path}: {found}"]
    return [] if expected == found else [f"{path}: {expected!r} != {found!r}"]


# Values that depend on the wall clock, the real process or memory.
_OF_THE_DAY = {"timestamp", "timestamp_ms", "time"}
_OF_THE_PROCESS = {"eta", "elapsed", "majf", "minf"}


def without_circumstances(document: dict[str, Any]) -> dict[str, Any]:
    kept = {key: 0 if key in _OF_THE_DAY else value for key, value in document.items()}
    kept["jobs"] = [
        {key: 0 if key in _OF_THE_PROCESS else value for key, value in job.items()}
        for job in document["jobs"]
    ]
    return kept


@real_fio.needs_fio
def test_json_plus_has_every_key_type_and_value_that_real_fio_prints(
    real: real_fio.FioRun,
) -> None:
    rendered = json.loads(json_format.render(ours(real), bins=True))
    assert not difference(without_circumstances(real.document), without_circumstances(rendered))


@real_fio.needs_fio
def test_terse_line_is_field_by_field_that_of_real_fio(real: real_fio.FioRun) -> None:
    lines = fio.render(ours(real), ("terse",)).splitlines()
    assert len(lines) == len(real.terse)
    for line, expected in zip(lines, real.terse, strict=True):
        fields, wanted = line.split(";"), expected.split(";")
        assert len(fields) == len(wanted)
        faults = _FAULTS_FIELDS
        for index, (a, b) in enumerate(zip(fields, wanted, strict=True)):
            if index in faults:
                continue
            if re.fullmatch(r"-?[\d.]+%?", b):
                assert float(a.rstrip("%")) == pytest.approx(
                    float(b.rstrip("%")), rel=1e-3, abs=0.011
                ), index
            else:
                assert a == b, index


# Page faults: fields 91 and 92, counted from 1, of terse version 3.
_FAULTS_FIELDS = {90, 91}


@real_fio.needs_fio
def test_normal_output_reads_like_that_of_real_fio(real: real_fio.FioRun) -> None:
    found, expected = _comparable(fio.render(ours(real), ("normal",))), _comparable(real.normal)
    assert [_MEAN.sub("", line) for line in found] == [_MEAN.sub("", line) for line in expected]
    # In the middle between two hundredths the last bit of fio's sum decides, which is not in JSON.
    means = [
        [float(number) for number in _MEAN.findall("\n".join(text))] for text in (found, expected)
    ]
    assert means[0] == pytest.approx(means[1], rel=0, abs=0.0101)
    assert sum(one != other for one, other in zip(*means, strict=True)) <= 1


_MEAN = re.compile(r"avg= *([\d.]+)")


def _comparable(text: str) -> list[str]:
    """Lines without the parts that always differ: start, members, pid, date, page faults."""
    body = text[re.search(r"^\S+: \(groupid", text, re.M).start() :]  # type: ignore[union-attr]
    body = re.sub(r"jobs=\d+\): err= 0: pid=\d+: .*", "pid", body)
    return re.sub(r"majf=\d+, minf=\d+", "", body).strip().splitlines()


@real_fio.needs_fio
def test_header_reads_like_that_of_real_fio(tmp_path: Path) -> None:
    options = ["--name=a", "--rw=read", "--bs=64k", "--ioengine=psync"]
    real = real_fio.run(tmp_path, *options)
    expected = real.normal.splitlines()[0]
    rendered = fio.render(ours(real), ("normal",)).splitlines()
    assert rendered[0] == expected
    assert rendered[1:3] == ["fio-3.33", "Starting 1 process"]


def test_the_same_result_gives_the_same_bytes() -> None:
    texts = {fio.render(report(plausible.result(7), "hdd"), fio.FORMATS) for _ in range(3)}
    assert len(texts) == 1


@given(
    st.lists(st.integers(1000, 10**9), min_size=1, max_size=200),
    st.integers(1, 5),
)
def test_group_reporting_is_as_if_one_process_had_done_it_all(
    latencies_ns: list[int], jobs: int
) -> None:
    whole = plausible.run(jobs=1, write_ios=0, group_reporting=True)
    parts = plausible.run(jobs=jobs, write_ios=0, group_reporting=True)
    _set_reads(whole, 0, latencies_ns)
    for index in range(jobs):
        _set_reads(parts, index, latencies_ns[index::jobs])
    one = report(Result.from_run(whole), "hdd").jobs[0]
    (merged,) = report(Result.from_run(parts), "hdd").jobs
    assert merged.members == jobs
    assert merged.read.clat.count == one.read.clat.count
    assert merged.read.clat.min == one.read.clat.min
    assert merged.read.clat.max == one.read.clat.max
    assert merged.read.clat.mean == pytest.approx(one.read.clat.mean)
    assert merged.read.clat.stddev == pytest.approx(one.read.clat.stddev, rel=1e-6, abs=1e-3)
    assert merged.read.hist.columns()["count"].tolist() == one.read.hist.count.tolist()
    assert merged.read.io_bytes == one.read.io_bytes
    assert merged.runtime_ms == one.runtime_ms * jobs


def _set_reads(made: plausible.MadeRun, index: int, latencies_ns: list[int]) -> None:
    sample = np.array(latencies_ns, dtype=np.int64)
    part = made.document["jobs"][index]["read"]
    part.update(ios=len(sample), bytes=len(sample) * 4096, clat=plausible.latency(sample))
    hist = plausible.histogram(sample)
    made.data[f"jobs.{index}.read.clat_hist.value_ns"] = hist.value_ns
    made.data[f"jobs.{index}.read.clat_hist.count"] = hist.count


def test_trims_are_reported_as_trims() -> None:
    made = plausible.run(jobs=1, write_ios=0)
    job = made.document["jobs"][0]
    job["trim"], job["read"] = job["read"], job["trim"]
    for column in ("value_ns", "count"):
        a, b = f"jobs.0.read.clat_hist.{column}", f"jobs.0.trim.clat_hist.{column}"
        made.data[a], made.data[b] = made.data[b], made.data[a]
    rendered = json_format.document(report(Result.from_run(made), "ssd"), bins=False)
    assert rendered["jobs"][0]["trim"]["total_ios"] == 400
    assert rendered["jobs"][0]["read"]["total_ios"] == 0
    text = fio.render(report(Result.from_run(made), "ssd"), ("normal",))
    assert "  trim: IOPS=" in text
    assert "   TRIM: bw=" in text


def test_a_separator_in_a_name_does_not_shift_terse_fields() -> None:
    plain = fio.render(report(plausible.result(names=("a",)), "hdd"), ("terse",))
    hostile = fio.render(report(plausible.result(names=("a;b\nc",)), "h;dd"), ("terse",))
    assert plain.count(";") == hostile.count(";")
    assert plain.count("\n") == hostile.count("\n")


@pytest.mark.parametrize("chart", [["-l", "-n", "1"], ["-H", "-d", "8", "-n", "1"]])
def test_fio_plot_draws_a_chart_from_our_json(tmp_path: Path, chart: list[str]) -> None:
    pytest.importorskip("fio_plot")
    for iodepth in ("1", "8"):
        made = plausible.run(jobs=1, write_ios=0, names=("randread",))
        made.document["jobs"][0]["options"] = [
            ["rw", "randread"],
            ["bs", "4k"],
            ["iodepth", iodepth],
            ["numjobs", "1"],
        ]
        status = report(Result.from_run(made), "hdd")
        path = tmp_path / f"randread-{iodepth}-1.json"
        path.write_text(fio.render(status, ("json",)))
    picture = tmp_path / "chart.png"
    command = [str(Path(sys.executable).with_name("fio-plot")), "-i", str(tmp_path), "-T", "ours"]
    command += [*chart, "-r", "randread", "-o", str(picture)]
    done = subprocess.run(command, check=False, capture_output=True, timeout=120, cwd=tmp_path)
    assert picture.is_file(), done.stdout + done.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_run_in_real_time_ended_when_it_did_and_one_in_virtual_time_in_1970(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "CET-1")
    time.tzset()
    try:
        made = plausible.result(names=("a",))
        ended_at = datetime(2026, 11, 22, 23, 36, 26, 500_000, UTC)
        real = report(made, "sda", ended_at=ended_at)
        head = json_format.document(real, bins=False)
        assert head["time"] == "Mon Nov 23 00:36:26 2026"
        assert head["timestamp_ms"] == head["timestamp"] * 1000 + 500
        assert head["timestamp"] == int(ended_at.timestamp())
        text = fio.render(real, ("normal",))
        assert "err= 0: pid=1: Mon Nov 23 00:36:26 2026\n" in text
        assert ": Thu Jan  1 00:00:" in fio.render(report(made, "hdd"), ("normal",))
    finally:
        monkeypatch.undo()
        time.tzset()


def test_our_json_read_as_fios_has_the_same_figures() -> None:
    text = (
        "[global]\nioengine=libaio\ndirect=1\nsize=16m\n"
        "[reads]\nrw=randrw\niodepth=8\nnumjobs=2\n[writes]\nrw=write\nbs=64k\nfsync=16\n"
    )
    run = blklab.run_job(Entry("a", Path("a.fio"), text), disk="950pro-256gb", seed=3)
    job = _core.FioJob(text, "a.fio", {}, False, 1 << 30, 3)
    read = Result.from_run(job.read(run.fio_output("json+"), run.result.duration_ns))
    assert [one.name for one in read.jobs] == ["reads", "reads", "writes"]
    for before, after in zip(run.result.jobs, read.jobs, strict=True):
        # fio's times are whole milliseconds.
        assert abs(after.end_ns - after.start_ns - (before.end_ns - before.start_ns)) <= 1_000_000
        assert after.sync_lat.count == before.sync_lat.count
        for name in ("read", "write", "trim"):
            ours, fios = before.direction(name), after.direction(name)
            assert (fios.ios, fios.bytes) == (ours.ios, ours.bytes)
            assert abs(fios.runtime_ns - ours.runtime_ns) <= 1_000_000
            assert (fios.clat.count, fios.clat.min_ns) == (ours.clat.count, ours.clat.min_ns)
            assert fios.clat.max_ns == ours.clat.max_ns
            assert fios.clat_hist.total == ours.clat_hist.total
            if ours.ios:
                percent = (50.0, 99.0, 99.9)
                steps = fios.clat_hist.percentiles(percent) / ours.clat_hist.percentiles(percent)
                # fio's buckets are under one percent of 64 to the power of two.
                assert (abs(steps - 1) < 1 / 64).all()
