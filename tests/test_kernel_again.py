"""The same guest repeats exactly, whatever the machine's load: to the nanosecond and to the byte.

Two boots draw the same random numbers, read the same clock, and do not depend on the host's load.
"""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import blklab
from blklab.base import pool
from blklab.domain import specs
from blklab.domain.result import Result
from blklab.programs.file_system import FileSystem
from blklab.rigs.kernel import cache, program
from blklab.rigs.kernel.boot import TimeTravel
from blklab.rigs.kernel.errors import GuestMemoryError
from tests import real_fio


def _again(kernel: str, job: str, scheduler: str, driver: str, boots: int = 2) -> list[Result]:
    return [
        blklab.simulate(
            job,
            disk="wd10ezrx",
            scheduler=scheduler,
            rig="kernel",
            kernel=kernel,
            driver=driver,
            host={"memory_kb": 131072},
        )
        for _ in range(boots)
    ]


def _assert_same(first: Result, second: Result) -> None:
    assert len(first.jobs) == len(second.jobs)
    for one, other in zip(first.jobs, second.jobs, strict=True):
        for name in ("read", "write"):
            ours, others = one.direction(name), other.direction(name)
            assert (ours.ios, ours.runtime_ns) == (others.ios, others.runtime_ns)
            assert ours.clat == others.clat
    assert first.disk == second.disk
    for table in ("overview", "detail"):
        mine, theirs = (getattr(result, table).columns() for result in (first, second))
        for name, column in mine.items():
            assert np.array_equal(column, theirs[name]), f"{table}: {name}"


def test_the_native_drivers_run_is_the_same_again(kernel: str) -> None:
    job = "[a]\nrw=randrw\nbs=4k\ndirect=1\nsize=1g\nruntime=2\ntime_based\n"
    first, second = _again(kernel, f"{job}ioengine=libaio\niodepth=8\n", "kyber", "native")
    assert first.disk.read_ios > 100
    _assert_same(first, second)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
@pytest.mark.parametrize("driver", ["native", pytest.param("fio", marks=real_fio.needs_fio)])
def test_a_run_beside_others_on_one_cpu_is_the_same_as_alone_on_two(
    kernel: str, driver: str
) -> None:
    job = "[a]\nrw=randrw\nbs=4k\ndirect=1\nsize=1g\nruntime=2\ntime_based\nnumjobs=3\n"
    (alone,) = _again(kernel, job, "bfq", driver, boots=1)
    every_cpu = len(os.sched_getaffinity(0))
    others: list[Result] = []
    pool.run_all(
        lambda _: _again(kernel, job, "bfq", driver, boots=1)[0],
        range(every_cpu),
        every_cpu,
        others.extend,
        lambda: None,
    )
    assert alone.disk.read_ios > 100 and len(others) == every_cpu
    for other in others:
        _assert_same(alone, other)


@real_fio.needs_fio
@pytest.mark.parametrize("load", ["rw=write\nbs=64k\n", "rw=randrw\nbs=16k\nfsync=32\n"])
def test_a_buffered_run_of_fio_is_the_same_again(kernel: str, load: str) -> None:
    job = f"[a]\n{load}size=256m\nruntime=3\ntime_based\n"
    first, second = _again(kernel, job, "mq-deadline", "fio")
    assert first.jobs[0].write.ios > 200
    _assert_same(first, second)


@real_fio.needs_fio
def test_a_copy_that_starves_the_guest_of_memory_is_the_same_again(kernel: str) -> None:
    job = "[global]\ntime_based\nruntime=6\nsize=4g\nbs=1m\n[from]\nrw=read\n[to]\nrw=write\n"
    first, *others = _again(kernel, job, "bfq", "fio", boots=3)
    # More than the memory.
    assert (first.disk.read_sectors + first.disk.write_sectors) * 512 > 131072 << 10
    for other in others:
        _assert_same(first, other)


def test_the_same_process_waits_for_a_tag_under_bfq_again(kernel: str) -> None:
    # Linux begins its search for a free tag at a random one, and a process with more than its
    # share may have only some of the few.
    job = "[a]\nrw=randwrite\nbs=64k\ndirect=1\nsize=4g\nruntime=4\ntime_based\n"
    queued = f"{job}ioengine=libaio\niodepth=16\nnumjobs=4\n"
    first, *others = _again(kernel, queued, "bfq:nr_requests=4", "native", boots=4)
    assert first.disk.write_ios > 300
    for other in others:
        _assert_same(first, other)


def _traced(kernel: str, command: str, to: Path, **different: object) -> tuple[str, bytes]:
    """The command's output, and the block layer's trace."""
    task = program.Program(
        ["sh", "-c", command],
        specs.disk("wd10ezrx:ncq=off"),
        scheduler="bfq",
        file_system=FileSystem("ext4"),
        memory_mib=128,
        trace=to,
        trace_format="blktrace",
    )
    said, errors = io.BytesIO(), io.BytesIO()
    ran = program.run(cache.find(kernel), replace(task, **different), said, errors)  # type: ignore[arg-type]
    assert ran.exit_code == 0, errors.getvalue()
    traced = ran.outcome["trace"]
    assert traced is not None
    return said.getvalue().decode(), (to / traced["file"]).read_bytes()


MIXED = """
for each in 1 2 3; do (
    dd if=/dev/zero of=file$each bs=64k count=300 conv=fsync status=none
    dd if=file$each of=/dev/null bs=16k status=none
    mkdir many$each
    for part in 1 2 3 4 5 6 7 8 9; do head -c 3000 /dev/urandom > many$each/$part; done
    sync
) & done
wait
cat many*/* | md5sum; cat /proc/sys/kernel/random/boot_id; date; cat /proc/vmstat /proc/diskstats
"""
"""Three processes write and read more than fits into memory, and files of random contents."""


@pytest.mark.parametrize("memory_mib", [50, 54, 58, 62, 66, 70])
def test_where_memory_is_short_time_goes_on_to_an_end(
    kernel: str, tmp_path: Path, memory_mib: int
) -> None:
    # While a process looks for memory in vain, nothing else happens that could free some: without
    # the waits of clock.patch each of these is at some length of tmp_path a loop without an end.
    try:
        said, trace = _traced(kernel, MIXED, tmp_path, memory_mib=memory_mib, timeout_s=300)
    except GuestMemoryError as error:
        assert str(error).startswith(f"the guest ran out of its {memory_mib} MiB of memory; more")
        assert str(error).endswith("the disk's data in a file: --data FILE")
    else:
        assert "oom_kill 0\n" in said
        assert len(trace) > 100_000


def test_programs_on_a_file_system_are_the_same_again_to_the_byte_of_a_trace(
    kernel: str, tmp_path: Path
) -> None:
    said, trace = _traced(kernel, MIXED, tmp_path / "first")
    assert len(trace) > 100_000
    assert _traced(kernel, MIXED, tmp_path / "second") == (said, trace)
    # All of it depends on the seed.
    other_said, other_trace = _traced(kernel, MIXED, tmp_path / "other", seed=2)
    assert other_trace != trace
    assert other_said.splitlines()[:2] != said.splitlines()[:2]


@pytest.mark.parametrize("clock", ["off", "on"])
def test_where_cpu_time_counts_chance_is_the_hosts(
    kernel: str, tmp_path: Path, clock: TimeTravel
) -> None:
    command = "cat /proc/sys/kernel/random/boot_id; date +%Y"
    # No file system: to make one takes a quarter of a minute of this disk's real time.
    first, second = (
        _traced(kernel, command, tmp_path / name, time_travel=clock, file_system=None)[0].split()
        for name in ("first", "second")
    )
    assert first[0] != second[0]
    assert int(first[1]) > 2020
