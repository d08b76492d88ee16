"""A hostile guest's output is not trusted: links are not followed, sizes have bounds, and invalid
results are refused in one line."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import blklab
from blklab.domain import specs
from blklab.errors import RunError
from blklab.rigs.kernel import cache, program
from tests import hostile_kernel
from tests.hostile_kernel import needs_wall

pytestmark = needs_wall

GOOD: dict[str, Any] = {
    "error": None,
    "scheduler": "none",
    "rounded": [],
    "program": {"exit_code": 0, "signal": None, "duration_ns": 1},
    "counters": {"read_ios": 0, "write_ios": 0, "read_ticks_ms": 0, "write_ticks_ms": 0},
    "disk": {
        **dict.fromkeys(("reads", "read_sectors", "writes", "write_sectors", "flushes"), 0),
        "lateness": {"p50_ns": 0, "p99_ns": 0, "max_ns": 0},
        "errors": 0,
    },
    "trace": {"file": "trace.txt", "events": 0, "lost": 0},
}
SECRET = "of this machine"


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="blklab-test-") as name:
        Path(name).chmod(0o755)
        monkeypatch.setenv("BLKLAB_CACHE", f"{name}/cache")
        monkeypatch.chdir(name)
        (Path(name) / "secret").write_text(SECRET)
        yield Path(name)


def leaves(place: Path, script: str, result: dict[str, Any] | None = None, **more: Any) -> bytes:
    """The output for a program in a guest that leaves that result and runs the script."""
    lines = ["os.chdir('/run/blklab/run')", "write('program.stderr', '')"]
    if result is not None:
        lines.append(f"write('result.json', {json.dumps(result)!r})")
    kernel = hostile_kernel.kept(place, "\n".join([*lines, script]))
    out = io.BytesIO()
    task = program.Program(["true"], specs.disk("su800-128gb"), **more)
    program.run(cache.find(kernel), task, out, io.BytesIO())
    return out.getvalue()


def test_a_good_result_is_taken(place: Path) -> None:
    assert leaves(place, "write('program.stdout', 'said')", GOOD) == b"said"


@pytest.mark.parametrize("name", ["result.json", "program.stdout", "trace.txt"])
@pytest.mark.parametrize(
    "plant",
    [
        "os.symlink({there!r}, {name!r})",
        "os.symlink('/proc/self/root' + {there!r}, {name!r})",
        "os.mkfifo({name!r})",
        "os.mkdir({name!r})",
        "socket.socket(socket.AF_UNIX).bind({name!r})",
    ],
)
def test_only_regular_files_of_a_guest_are_read(place: Path, name: str, plant: str) -> None:
    there = str(place / "secret")
    if name == "result.json":
        (place / "secret").write_text(json.dumps(GOOD))
    script = f"os.path.lexists({name!r}) and os.unlink({name!r})\n"
    with pytest.raises(RunError, match=f"the guest left {name}, which is not a file"):
        leaves(place, script + plant.format(there=there, name=name), GOOD, trace=place / "kept")
    assert not (place / "kept" / name).exists()


@pytest.mark.parametrize("file", ["../../stolen", "/etc/blklab-stolen", "secret", "", 5, None])
def test_a_guest_does_not_choose_the_written_files(place: Path, file: Any) -> None:
    result = GOOD | {"trace": GOOD["trace"] | {"file": file}}
    with pytest.raises(RunError, match=r"result\.json does not have the expected format"):
        leaves(place, "write('trace.txt')", result, trace=place / "a/b/kept")
    assert not (place / "stolen").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"scheduler": 5},
        {"scheduler": "none\033[2J"},
        {"rounded": [{"tunable": "a\nb", "asked": "1", "set": "2"}]},
        {"program": {"exit_code": 10**30, "signal": None, "duration_ns": 1}},
        {"program": {"exit_code": -1, "signal": None, "duration_ns": 1}},
        {"program": None},
        {"disk": GOOD["disk"] | {"reads": -1}},
        {"disk": GOOD["disk"] | {"reads": 2**64}},
        {"disk": GOOD["disk"] | {"lateness": []}},
        {"counters": {"read_ios": "many"}},
        {"error": 5},
    ],
)
def test_a_result_of_other_types_is_one_line(place: Path, change: dict[str, Any]) -> None:
    with pytest.raises(RunError) as told:
        leaves(place, "", GOOD | change)
    assert str(told.value).isprintable()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "[" * 100_000, '{"error": "\\u001b[2J\\nsecond"}', "\x00\xff"]
)
def test_an_invalid_result_of_a_guest_is_one_line(place: Path, text: str) -> None:
    with pytest.raises(RunError) as told:
        leaves(place, f"write('result.json', {text!r})")
    assert str(told.value).isprintable()
    assert len(str(told.value)) < 3000


@pytest.mark.parametrize("name", ["result.json", "program.stdout", "trace.txt"])
def test_a_file_that_is_one_hole_has_an_end(place: Path, name: str) -> None:
    script = f"write({name!r}); os.truncate({name!r}, 1 << 50)"
    with pytest.raises(RunError, match=f"the guest left {name} of more than"):
        leaves(place, script, GOOD, trace=place / "kept", scratch_mib=16)


def test_a_trace_that_was_asked_for_is_there_or_missed(place: Path) -> None:
    with pytest.raises(RunError, match="the guest left no trace"):
        leaves(place, "", GOOD | {"trace": None}, trace=place / "kept")


def test_an_error_after_the_disk_was_full_has_both_reasons(place: Path) -> None:
    error = {"error": "/dev/sda: Input/output error", "disk": GOOD["disk"] | {"errors": 3}}
    with pytest.raises(RunError) as told:
        leaves(place, "", GOOD | error)
    assert str(told.value) == (
        "the disk's data did not fit into the guest's memory; in the guest: /dev/sda: Input/output "
        "error"
    )


def test_a_guest_without_a_result_is_reported(place: Path) -> None:
    with pytest.raises(RunError, match="the guest left no result"):
        leaves(place, "")


def test_a_run_directory_that_is_full_is_told_with_its_limit(place: Path) -> None:
    script = """
with open("program.stdout", "wb", buffering=0) as file:
    attempt("fill", lambda: [file.write(bytes(1 << 16)) for _ in range(1 << 20)])
"""
    with pytest.raises(RunError) as told:
        leaves(place, script, scratch_mib=16)
    assert str(told.value) == (
        "the guest has filled its run directory, which has room for 16 MiB; "
        "more of it: --scratch MIB"
    )


def _latency(**change: Any) -> dict[str, Any]:
    zero = dict.fromkeys(("count", "min_ns", "max_ns", "mean_ns", "stddev_ns"), 0)
    return zero | change


def run_json(**change: Any) -> dict[str, Any]:
    """A ``run.json`` of one job."""
    rate = dict.fromkeys(("count", "min", "max", "mean", "stddev"), 0)
    latencies = {"slat": _latency(), "clat": _latency(), "lat": _latency()}
    side = {"ios": 0, "bytes": 0, "runtime_ns": 0, **latencies, "bw": rate, "iops": rate}
    times = ("group", "start_ns", "end_ns", "user_ns", "system_ns", "context_switches")
    levels = ("depth_levels", "submit_levels", "complete_levels", "latency_levels")
    job = {
        "name": "a", "group_reporting": False, "options": [], "percentiles": [50.0],
        **dict.fromkeys(times, 0), **dict.fromkeys(("read", "write", "trim"), side),
        "sync_lat": _latency(), **{name: [0] * 7 for name in levels},
    }  # fmt: skip
    disk = list(blklab.domain.summaries.DiskCounters.__dataclass_fields__)
    summary = {
        "duration_ns": 1, "jobs": [job], "disk": dict.fromkeys(disk, 0), "series_interval_ns": 1,
        "overview_stride": 1, "detail_left_out": 0, "decisions_left_out": None,
    }  # fmt: skip
    histogram = "jobs.0.read.clat_hist"
    columns = [[f"{histogram}.value_ns", 2], [f"{histogram}.count", 2]]
    return {"summary": summary | change, "columns": columns}


BULK = [1, 2, 3, 4]


def of_job(
    place: Path, scalars: Any, bulk: list[int], disk: str = "su800-128gb"
) -> blklab.domain.result.Result:
    """The result of a job in a guest that leaves these files."""
    result = GOOD | {"program": None, "trace": None}
    script = f"""
os.chdir('/run/blklab/run')
write('result.json', {json.dumps(result)!r})
write('run.json', {json.dumps(scalars)!r})
with open('run.i64', 'wb') as file:
    for value in {bulk}: file.write(value.to_bytes(8, 'little', signed=True))
"""
    kernel = hostile_kernel.kept(place, script)
    return blklab.simulate(
        "[a]\nrw=read\nsize=1m\n", disk=disk, scheduler="none", rig="kernel", kernel=kernel
    )


def test_a_good_result_of_a_job_is_taken(place: Path) -> None:
    found = of_job(place, run_json(), BULK)
    assert found.histogram("read").total == 7


@pytest.mark.parametrize(
    ("change", "bulk"),
    [
        ({"duration_ns": "long"}, BULK),
        ({"duration_ns": 2**70}, BULK),
        ({"duration_ns": -1}, BULK),
        ({"disk": {}}, BULK),
        ({"jobs": [{"name": "a"}]}, BULK),
        ({"jobs": {}}, BULK),
        ({}, BULK[:3]),
        ({}, [*BULK, 5]),
        ({}, []),
        ({}, [1, 2, 3, -4]),
        ({}, [2, 1, 3, 4]),
    ],
)
def test_a_result_of_a_job_that_is_none_is_one_line(
    place: Path, change: dict[str, Any], bulk: list[int]
) -> None:
    with pytest.raises(RunError) as told:
        of_job(place, run_json(**change), bulk)
    assert str(told.value).isprintable()


@pytest.mark.parametrize(
    "columns",
    [
        [["jobs.0.read.clat_hist.value_ns", 4]],
        [["jobs.0.read.clat_hist.value_ns", 1], ["jobs.0.read.clat_hist.count", 3]],
        [["series.read_ios", -4], ["series.write_ios", 8]],
        [["series.read_ios", 2], ["series.read_ios", 2]],
        [["a\033[2J", 4]],
        [["series.read_ios", 2**62]],
        "none",
    ],
)
def test_columns_that_are_not_there_are_refused(place: Path, columns: Any) -> None:
    with pytest.raises(RunError) as told:
        of_job(place, run_json() | {"columns": columns}, BULK)
    assert str(told.value).isprintable()


@pytest.mark.parametrize(
    ("disk", "note"),
    [
        ("su800-128gb", None),
        ("wd10ezrx:ncq=off", None),
        (
            "optane-900p:hw_queues=1,queue_depth=256",
            "1 hardware queue of 128 commands, not 1 of 256",
        ),
        ("optane-900p:hw_queues=1,queue_depth=128", None),
        (
            "optane-900p:hw_queues=32,queue_depth=64",
            "1 hardware queue of 64 commands, not 4 of 64",
        ),
        (
            "optane-900p:hw_queues=32,queue_depth=1023",
            "1 hardware queue of 128 commands, not 4 of 1023",
        ),
    ],
)
def test_a_disk_that_has_fewer_queues_in_a_guest_says_so_with_each_result(
    place: Path, disk: str, note: str | None
) -> None:
    found = of_job(place, run_json(), BULK, disk)
    assert found.notes == (
        "buffered I/O is that of partitions: on the simulator --host partitions=1",
        *(() if note is None else (f"{disk}: a guest has {note}",)),
    )


def test_a_comparison_states_the_transport_of_its_guests_disk(place: Path) -> None:
    of_job(place, run_json(), BULK)
    (place / "j.fio").write_text("[a]\nrw=read\nsize=1m\n")
    done = subprocess.run(
        [sys.executable, "-m", "blklab", "compare", "--rig=kernel", "--kernel=000000000000",
         "--disk=optane-900p:hw_queues=32,queue_depth=32", "--workload=j.fio", "--scheduler=none",
         "--scheduler=bfq", "--repeats=2"],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    text = " ".join(done.stdout.split())
    note = "a guest has 1 hardware queue of 32 commands, not 4 of 32"
    assert f"Note: none, bfq: optane-900p:hw_queues=32,queue_depth=32: {note}" in text, done.stderr


def test_a_comparison_without_a_wall_ends_before_it_begins(place: Path) -> None:
    (place / "j.fio").write_text("[a]\nrw=read\nsize=1m\n")
    kernel = hostile_kernel.kept(place, "")
    done = subprocess.run(
        [sys.executable, "-m", "blklab", "compare", "--rig=kernel", f"--kernel={kernel}",
         "--disk=su800-128gb", "--workload=j.fio", "--repeats=2"],
        env=os.environ | {"PATH": str(place)},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "blklab: blklab starts no guest without confinement: apt-get install bubblewrap"
    )


def test_a_shell_that_had_no_disk_says_so_in_one_line(place: Path) -> None:
    script = "os.chdir('/run/blklab/run'); write('failed', 'no\\033[2J\\ndisk')"
    kernel = hostile_kernel.kept(place, script)
    ours, theirs = os.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "blklab", "kernel", "shell", kernel, "--disk", "wd10ezrx"],
        stdin=theirs, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == r"blklab: in the guest: no\x1b[2J\ndisk"


def test_a_temporary_directory_that_is_full_or_away_is_no_matter(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(place / "away"))
    monkeypatch.setattr(tempfile, "tempdir", str(place / "away"))
    assert leaves(place, "write('program.stdout', 'said')", GOOD) == b"said"
