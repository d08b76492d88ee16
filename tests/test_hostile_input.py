"""Any input of a user gives a result or one line: never a panic, never a hang."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import blklab
from blklab import _core, fio
from blklab.domain import specs
from blklab.errors import BlklabError, InputError, RunError
from blklab.fio.status import report

BLKLAB = str(Path(sys.executable).with_name("blklab"))
DISK_KEYS = _core.disk_keys()

_NUMBERS = ("0", "1", "2", "3", "7", "8", "16", "50", "99", "100", "512", "4k", "1m", "-1", "1%")
_HUGE = ("4g", "36500d", "100t", str(2**31), str(2**32), str(2**63), str(2**64), "0x7fffffff")
_TIMES = ("1ms", "10us", "1s", "5", "1ms-3ms")
_LISTS = ("4k,8k", "1,2,3", "4k/50:8k/50", "4k-16k", "512-4k,1k-2k", "50:99.9", "60/10:40/90")
_WORDS = (
    *("read", "write", "randrw", "randread:8", "write:4k", "trimwrite", "randtrim", "rw:-8k"),
    *("libaio", "psync", "io_uring", "posixaio", "zipf:1.2", "pareto:0.3", "normal:10"),
    *("zoned:60/10:40/90", "zoned_abs:50/1m:50/2m", "poisson", "issue", "identical", "dsync"),
    *("a", "b", "/dev/sda", "f:g", "roundrobin:4", "random", "sequential", "zipf:1.1", "lfsr", ""),
)
_VALUES = st.sampled_from((*_NUMBERS, *_HUGE, *_TIMES, *_LISTS, *_WORDS))
_NAMES = st.sampled_from([option.name for option in _core.workload_options()])
_OPTIONS = st.lists(st.tuples(_NAMES, _VALUES), max_size=6)

# Small enough to end soon whatever the options drawn make of them.
_BASES = (
    "size=256k\nnumber_ios=200\nruntime=1",
    "size=256k\nnumber_ios=200\nruntime=1\ndirect=1\nioengine=libaio\niodepth=16\nrw=randrw",
    "size=1m\nnrfiles=5\nnumber_ios=200\nruntime=1\nrw=randwrite\nfsync=3",
    "filename=/dev/sda\nnumber_ios=200\nruntime=1\nrw=randread\ndirect=1\nbs=4k",
)
_NEVER_RAISED = {
    # What makes a run long is tested by name below.
    *("number_ios", "runtime", "time_based", "loops", "numjobs", "nrfiles", "ramp_time"),
    *("io_size", "include", "size", "filesize"),
}


def refused_or_run(text: str, disk: str, scheduler: str) -> None:
    try:
        result = blklab.simulate(text, disk=disk, scheduler=scheduler, ignore_unsupported=True)
    except (InputError, RunError) as error:
        assert "\n" not in str(error)
        assert "mistake of blklab's own" not in str(error)
        assert "please report" not in str(error)
        return
    assert all(job.end_ns <= result.duration_ns for job in result.jobs)
    fio.render(report(result, "disk"), ("json+", "terse", "normal"))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    base=st.sampled_from(_BASES),
    jobs=st.lists(_OPTIONS, min_size=1, max_size=3),
    disk=st.sampled_from(
        ["su800-128gb", "950pro-256gb", "optane-900p", "desktop-5900rpm", "sas-10k:queue_depth=1"]
    ),
    scheduler=st.sampled_from(
        ["none", "noop", "deadline", "mq-deadline", "mq-deadline:fifo_batch=1", "kyber"]
    ),
)
def test_any_options_give_a_result_or_one_line(
    base: str, jobs: list[list[tuple[str, str]]], disk: str, scheduler: str
) -> None:
    sections = [
        f"[job{number}]\n"
        + "".join(f"{name}={value}\n" for name, value in options if name not in _NEVER_RAISED)
        for number, options in enumerate(jobs)
    ]
    refused_or_run(f"[global]\n{base}\n" + "".join(sections), disk, scheduler)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.text(max_size=200))
def test_any_text_is_refused_in_one_line(text: str) -> None:
    refused_or_run(f"[job]\nnumber_ios=10\n{text}", "su800-128gb", "none")


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    key=st.sampled_from(sorted({row.key for table in DISK_KEYS.values() for row in table})),
    value=st.sampled_from(["-1", "0", "1", "1e300", "nan", "true", '"x"', "[]", str(2**63), "{}"]),
    disk=st.sampled_from(["su800-128gb", "desktop-5900rpm", "pm983-960gb"]),
)
def test_any_value_of_a_disk_is_taken_or_refused_in_one_line(
    key: str, value: str, disk: str
) -> None:
    job = "[job]\nsize=256k\nrw=randrw\ndirect=1\nnumber_ios=200\n"
    refused_or_run(job, f"{disk}:{key}={value}", "mq-deadline")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("size=100t", "the files need .* bytes, the disk has"),
        ("size=1m\nnumjobs=5000", "expected a whole number, 1 to 4096"),
        ("size=1m\nnumjobs=4096\nioengine=libaio\niodepth=1m", r"I/Os under way .* at most"),
        ("size=1m\nnrfiles=1000000", "expected a whole number, 1 to"),
        ("filename=/dev/sda\nrw=randread\nbs=1", "blocks in random maps .*norandommap.* at most"),
        ("size=1m\nbs=4g", "expected bytes such as 4k, 1 to"),
        ("size=1m\nbs=513\ndirect=1", "multiples of 512"),
        ("size=1m\nbsrange=512-4k\nbs_unaligned\ndirect=1", "multiples of 512"),
        ("size=1m\nthinktime=36501d", "up to 36500d"),
        ("size=1m\nthinktime=36500d", "292 years of virtual time"),
        ("size=100g\nrate=1\nbs=1g\ndirect=1", "292 years of virtual time"),
        ("size=1m\ninclude /dev/zero", "not a regular file"),
    ],
)
def test_jobs_that_cannot_be_simulated_are_refused(options: str, message: str) -> None:
    with pytest.raises(BlklabError, match=message):
        blklab.simulate(f"[job]\n{options}\n", disk="su800-128gb")


def test_a_seed_or_a_host_value_beyond_64_bits_is_refused() -> None:
    with pytest.raises(InputError, match="64 bits"):
        blklab.simulate("[job]\nsize=1m\n", disk="su800-128gb", seed=2**64)
    with pytest.raises(InputError, match="64 bits"):
        blklab.simulate("[job]\nsize=1m\n", disk="su800-128gb", host={"cpus": 2**64})


@pytest.mark.parametrize(
    "options",
    [
        "size=1m\ntime_based\nruntime=1000000000",
        "size=4k\nloops=2147483648",
        "size=1g\nrw=randread\ndirect=1\nioengine=libaio\niodepth=32\ntime_based\nruntime=100000000",
    ],
)
def test_ctrl_c_ends_a_single_run_within_a_second(tmp_path: Path, options: str) -> None:
    job = tmp_path / "long.fio"
    job.write_text(f"[job]\n{options}\n")
    command = [BLKLAB, "fio", str(job), "--disk=su800-128gb", "--output=out.json"]
    running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(timeout=4)
    running.send_signal(signal.SIGINT)
    pressed_s = time.monotonic()
    _, text = running.communicate(timeout=20)
    # A machine that is busy with other tests may take its time; without an answer to
    # Ctrl-C these runs take hours.
    assert time.monotonic() - pressed_s < 5
    assert running.returncode == 130
    assert text == "blklab: interrupted; nothing was written\n"
    assert list(tmp_path.iterdir()) == [job]


def on_terminal(command: list[str], directory: Path) -> tuple[str, str]:
    """What stands on stdout, and what a terminal saw on stderr."""
    terminal, stderr = pty.openpty()
    running = subprocess.Popen(
        command,
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env=os.environ | {"TERM": "xterm"},
    )
    os.close(stderr)
    seen = b""
    # Reading fails when the last writer has closed its end.
    with contextlib.suppress(OSError):
        while piece := os.read(terminal, 4096):
            seen += piece
    os.close(terminal)
    stdout, _ = running.communicate(timeout=60)
    assert running.returncode == 0
    return stdout, seen.decode()


def test_a_long_run_shows_on_a_terminal_how_far_it_is_and_leaves_no_trace(tmp_path: Path) -> None:
    job = tmp_path / "long.fio"
    options = "rw=randread\nsize=1g\nioengine=libaio\niodepth=32\ndirect=1\ntime_based\n"
    job.write_text(f"[job]\n{options}runtime=15\n")
    command = [BLKLAB, "fio", str(job), "--disk=optane-900p", "--output-format=json"]
    stdout, seen = on_terminal(command, tmp_path)
    assert json.loads(stdout)["jobs"][0]["job_runtime"] == pytest.approx(15_000, abs=10)
    assert re.search(r"\d+\.\d of 15\.0 s of virtual time, about \d+ s left", seen)
    # The last thing is to erase the line, and to show the cursor again.
    assert seen.rstrip().endswith("\x1b[2K")
    assert "\x1b[?25h" in seen
    quiet = subprocess.run(command, check=True, cwd=tmp_path, capture_output=True, text=True)
    assert quiet.stderr == ""
    assert quiet.stdout == stdout


def test_many_processes_are_read_back_in_no_time() -> None:
    started_s = time.monotonic()
    result = blklab.simulate("[job]\nsize=64k\nnumjobs=2000\n", disk="950pro-256gb")
    assert len(result.jobs) == 2000
    # Looking up each column anew among those of all processes took a minute.
    assert time.monotonic() - started_s < 20


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_is_no_traceback(tmp_path: Path, closed: str) -> None:
    job = tmp_path / "job.fio"
    job.write_text("[job]\nsize=64k\n")
    command = f"exec {BLKLAB} fio {job} --disk=optane-900p {closed}"
    done = subprocess.run(
        ["sh", "-c", command], check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["fio", "/dev/zero", "--disk=su800-128gb"],
            "/dev/zero: is a device; expected a regular file that is a workload",
        ),
        (
            ["fio", "randread", "--disk=/dev/zero"],
            "/dev/zero: is a device; expected a regular file that is a disk",
        ),
        (["compare", "--out=taken"], "taken: taken is not a directory"),
        (["compare", "--out=taken/x"], "is not a directory"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_at_once(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "taken").write_text("mine")
    command = [BLKLAB, *arguments]
    done = subprocess.run(
        command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert re.fullmatch(f"blklab: .*{message}.*\n", done.stderr)
    assert (tmp_path / "taken").read_text() == "mine"


def test_an_unknown_tunable_of_the_host_is_reported_with_all_names() -> None:
    with pytest.raises(
        InputError, match="no tunable 'memory_kib'; did you mean 'memory_kb'"
    ) as one:
        specs.host(["memory_kib=1"])
    assert "\n" not in str(one.value)
    with pytest.raises(InputError, match=r"there are: kernel, cpus, .*, memory_kb, .*dirty_ratio"):
        specs.host(["zzzzzzzz=1"])
    with pytest.raises(InputError, match="'cpus' is given twice"):
        specs.host(["cpus=1", "hz=100,cpus=1"])
