"""The kernel rig: the simulator's I/O through Linux itself."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blklab
from blklab.base import binaries
from blklab.domain import core, scheduler, specs
from blklab.domain.result import Result
from blklab.errors import InputError, RunError
from blklab.rigs.kernel import cache, modelled_host, outcome
from blklab.rigs.kernel.errors import GuestPanicError
from blklab.store import read, schema
from blklab.store.opening import open_store
from blklab.store.place import find as locate
from tests import guest_place, real_fio, real_kernel
from tests.test_cli import failing

JOB = "[a]\nrw=randread\nbs=4k\ndirect=1\nsize=1g\nruntime=2\ntime_based\n"
PERCENTILES = (1, 10, 50, 90, 99, 99.9)
BLKLAB = str(Path(sys.executable).with_name("blklab"))


@pytest.fixture
def place(kernel: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """See `guest_place.current`."""
    with guest_place.current(monkeypatch) as found:
        yield found


def measured(result: Result) -> dict[str, Any]:
    """A process's exact figures."""
    read = result.jobs[0].read
    return {
        "ios": read.ios,
        "bytes": read.bytes,
        "percentiles_ns": result.histogram("read").percentiles(PERCENTILES).tolist(),
    }


def on_kernel(kernel: str, driver: str, job: str = JOB, spec: str = "mq-deadline") -> Result:
    return blklab.simulate(
        job, disk="wd10ezrx", scheduler=spec, rig="kernel", kernel=kernel, driver=driver
    )


def test_at_depth_one_simulator_and_kernel_agree_exactly(place: Path, kernel: str) -> None:
    simulated = blklab.simulate(JOB, disk="wd10ezrx", scheduler="mq-deadline")
    real = on_kernel(kernel, "native")
    assert measured(real)["ios"] > 200
    assert measured(real) == measured(simulated)
    counters = (real.disk.read_ios, real.disk.read_sectors, real.disk.write_ios)
    assert counters == (simulated.disk.read_ios, simulated.disk.read_sectors, 0)


@pytest.mark.parametrize(
    "job",
    [
        JOB + "ioengine=libaio\niodepth=8\n",
        JOB + "ioengine=libaio\niodepth=8\niodepth_batch=4\niodepth_batch_complete_min=2\n",
        JOB + "numjobs=4\n",
        JOB + "numjobs=3\nthinktime=20ms\n" + JOB.replace("bs=4k", "bs=64k\nioengine=libaio"),
    ],
)
def test_they_agree_request_by_request_where_requests_wait_for_a_tag(
    place: Path, kernel: str, job: str
) -> None:
    disk, none = "wd10ezrx:ncq=off", "none"
    simulated = blklab.simulate(job, disk=disk, scheduler=none, host=specs.GUEST)
    real = blklab.simulate(
        job, disk=disk, scheduler=none, rig="kernel", kernel=kernel, driver="native",
        host=specs.GUEST,
    )  # fmt: skip
    assert len(real.detail.sector) > 200
    assert np.array_equal(real.detail.sector, simulated.overview.sector)
    assert [job.read.ios for job in real.jobs] == [job.read.ios for job in simulated.jobs]


DEEP = "".join(
    f"[{name}]\nrw=randrw\nbs=16k\ndirect=1\nsize=1g\nioengine=libaio\niodepth=16\nruntime=3\n"
    "time_based\n"
    for name in "abc"
)
"""More I/Os than the disk has tags, so that the host decides which process gets one."""


def test_with_the_same_host_the_same_question_has_the_same_answer(place: Path, kernel: str) -> None:
    def figures(job: str = DEEP, **options: Any) -> list[tuple[int, int]]:
        run = blklab.simulate(job, disk="wd10ezrx", **options)
        return [(job.read.ios, job.write.ios) for job in run.jobs]

    there = {"rig": "kernel", "kernel": kernel, "driver": "native"}
    real = figures(host=specs.host(["guest"]), **there)
    assert real == figures(host=specs.host(["guest"]))
    assert real != figures(), "four CPUs whose work takes time let each process have its turn"
    # As many as the disk takes. Of more, those that end at one time have another order.
    fits = DEEP.replace("iodepth=16", "iodepth=10")
    assert figures(fits, **there) == figures(fits), "both have those CPUs by default"
    assert figures(fits) != figures(fits, host=specs.GUEST)
    with pytest.raises(InputError, match=r"cpus is 1 in a guest.*--driver native can work on"):
        figures(**there | {"driver": "fio"}, host={"cpus": 2})


READERS_AND_A_WRITER = """
[global]
direct=1
size=1g
runtime=100ms
time_based
[readers]
rw=randread
norandommap
bs=16k
numjobs=2
[writer]
ioengine=libaio
iodepth=8
rw=write
bs=256k
"""
DURABLE = """
[global]
direct=1
size=1g
runtime=100ms
time_based
[log]
rw=write
bs=8k
sync={mode}
[reader]
ioengine=libaio
iodepth=2
rw=randread
norandommap
bs={bs}
"""


def own_io(run: Result) -> list[int]:
    """I/Os and their shortest and longest latency, of each job and direction."""
    parts = [part for job in run.jobs for part in (job.read, job.write) if part.ios]
    return [n for part in parts for n in (part.ios, part.clat.min_ns, part.clat.max_ns)]


@pytest.mark.parametrize("scheduler", ["none", "mq-deadline", "bfq"])
@pytest.mark.parametrize(
    ("disk", "job"),
    [
        ("su800-128gb", READERS_AND_A_WRITER),
        ("su800-128gb", DURABLE.format(mode="dsync", bs="4k")),
        ("950pro-256gb", DURABLE.format(mode="dsync", bs="8k")),
        ("950pro-256gb:hw_queues=1", DURABLE.format(mode="sync", bs="8k")),
        ("su800-128gb", DURABLE.format(mode="sync", bs="8k") + "filename=/dev/sdz\n"),
    ],
    ids=["readers-and-a-writer", "dsync", "dsync-fua", "sync-fua", "of-a-device"],
)
def test_default_options_have_the_same_answer_on_both_rigs(
    place: Path, kernel: str, scheduler: str, disk: str, job: str
) -> None:
    def run(**where: Any) -> Result:
        return blklab.simulate(job, disk=disk, scheduler=scheduler, **where)

    real = run(rig="kernel", kernel=kernel)
    ios = [part.ios for job in real.jobs for part in (job.read, job.write)]
    by_default = [part.ios for job in run().jobs for part in (job.read, job.write)]
    assert by_default == pytest.approx(ios, rel=0.02)
    # But for what each run on the kernel rig names, they are the same to the last digit.
    own = specs.fixed(cache.find(kernel).as_guest)
    assert own_io(run(host=own)) == own_io(real)
    assert not any("partitions" in note for note in real.notes)
    if scheduler == "mq-deadline":
        assert own_io(run(host=own | {"partitions": 1})) != own_io(real), "files in a file system"


def test_a_guests_disk_has_a_queue_for_each_cpu_of_the_host(place: Path, kernel: str) -> None:
    job = JOB.replace("runtime=2", "runtime=20ms")

    def told(disk: str, **host: int) -> list[str]:
        run = blklab.simulate(job, disk=disk, rig="kernel", kernel=kernel, host=host)
        return [note for note in run.notes if "hardware queue" in note]

    assert told("950pro-256gb") == told("pm983-960gb", cpus=64) == []
    # A disk model that has fewer is not reduced.
    assert told("950pro-256gb", cpus=20) == told("950pro-256gb:hw_queues=1") == []
    wanted = (
        r"^--host: cpus is 65, but a guest's kernel has queues for at most 64 CPUs: kernel_cpus=64$"
    )
    with pytest.raises(InputError, match=wanted):
        told("950pro-256gb", cpus=65)
    assert told("pm983-960gb", cpus=65, kernel_cpus=64) == []
    with pytest.raises(InputError, match="--host: kernel_cpus is 1 in a guest"):
        blklab.simulate(
            job, disk="950pro-256gb", rig="kernel", kernel=kernel, driver="fio",
            host={"kernel_cpus": 2},
        )  # fmt: skip


@pytest.mark.parametrize(
    ("more", "what"), [("direct=0", "buffered I/O"), ("ioengine=io_uring", "I/O of io_uring")]
)
def test_io_that_a_guest_cannot_have_as_of_files_is_told(
    place: Path, kernel: str, more: str, what: str
) -> None:
    on: dict[str, Any] = {"disk": "su800-128gb", "rig": "kernel", "kernel": kernel}
    job = JOB.replace("runtime=2", "runtime=20ms") + f"{more}\n"
    told = f"{what} is that of partitions: on the simulator --host partitions=1"
    assert told in blklab.simulate(job, **on).notes
    assert told not in blklab.simulate(job, **on, host={"partitions": 1}).notes


@pytest.mark.parametrize("scheduler", ["none", "mq-deadline", "bfq"])
@pytest.mark.parametrize(("engine", "depth"), [("psync", 1), ("libaio", 32), ("io_uring", 8)])
def test_where_the_cpu_limits_both_rigs_have_the_same_limit(
    place: Path, kernel: str, scheduler: str, engine: str, depth: int
) -> None:
    job = JOB.replace("runtime=2", "runtime=20ms") + "numjobs=3\n"
    job += f"ioengine={engine}\niodepth={depth}\n"

    def rate(cpus: int, **options: Any) -> int:
        costs = {"cpus": cpus, "submit_ns": 6000, "complete_ns": 4000, "wake_ns": 2000}
        host = costs | specs.fixed(cache.find(kernel).as_guest)
        run = blklab.simulate(job, disk="optane-900p", scheduler=scheduler, host=host, **options)
        return sum(job.read.ios for job in run.jobs)

    there = {"rig": "kernel", "kernel": kernel, "driver": "native"}
    for cpus in (1, 2):
        assert rate(cpus, **there) == pytest.approx(rate(cpus), rel=0.02), cpus


def test_a_guest_has_a_value_of_everything_that_cannot_be_set_there() -> None:
    of_schedulers = {f"lock_ns.{info.name}" for info in core.schedulers()}
    assert (
        specs.GUEST.keys()
        == core.check_host({}).keys() - modelled_host.that_counts("fio") - of_schedulers
    )
    of_any_kernel = {name: specs.GUEST[name] for name in specs.GUEST if name != "kernel"}
    assert specs.host([" guest ,memory_kb=65536"]) == {**of_any_kernel, "memory_kb": 65536}
    bare = specs.GuestKernel("7.3.4", 100, has_transports=False, has_cpus=False)
    older = specs.guest(bare)
    assert specs.guest_name(bare, "fio") == "guest,hz=100,budget=0,interrupt_ns=0"
    one_cpu = "clock_stands=1,kernel_cpus=1"
    assert specs.guest_name(bare, "native") == f"hz=100,budget=0,large_folios=0,{one_cpu}"

    def patched(version: str, *, has_cpus: bool = True) -> specs.GuestKernel:
        return specs.GuestKernel(version, 1000, has_transports=True, has_cpus=has_cpus)

    native = specs.guest_name(patched("7.3.4"), "native")
    assert native == "large_folios=0,interrupt_ns=1,clock_stands=1"
    native = specs.guest_name(patched("7.3.4", has_cpus=False), "native")
    assert native == f"large_folios=0,interrupt_ns=1,{one_cpu}"
    for words in (
        ["guest,hz=100", "budget=0,interrupt_ns=0"],
        ["interrupt_ns=0,hz=100,budget=0,guest"],
    ):
        assert core.check_host(specs.host(words)) == core.check_host(older)
    assert specs.guest_name(patched("7.3.4"), "fio") == "guest"
    assert specs.guest(patched("7.3.4")) == specs.guest(patched("6.18.1")) == specs.GUEST
    assert specs.guest_name(patched("6.12.107"), "fio") == "guest,kernel=6.12"
    assert specs.guest(patched("6.12.107")) == specs.host(["guest", "kernel=6.12"])
    with pytest.raises(
        InputError, match=r"^host:kernel: expected 4.12, 6.12 or 7.3, found .6.13.$"
    ):
        specs.host(["kernel=6.13"])
    with pytest.raises(InputError, match="--host: 'hz' is given twice"):
        specs.host(["guest", "hz=250", "hz=100"])
    with pytest.raises(InputError, match="expected name=number, @FILE or guest, found 'gest'"):
        specs.host(["gest"])


BUFFERED = "[a]\nsize=64m\n"


@pytest.mark.parametrize(
    ("disk", "job"),
    [
        ("wd10ezrx", BUFFERED + "rw=read\nbs=64k\nloops=2\n"),
        ("wd10ezrx", BUFFERED + "rw=randread\nbs=4k\nnrfiles=3\nnumber_ios=300\n"),
        ("su800-128gb", BUFFERED + "rw=read\nbs=64k\n[b]\nstonewall\nsize=8m\nrw=randread\n"),
        ("su800-128gb", "[a]\nsize=16m\nrw=randtrim\nbs=64k\ndirect=1\n"),
        ("su800-128gb", "[a]\nsize=16m\nrw=trimwrite\nbs=64k\ndirect=1\n"),
    ],
)
def test_they_agree_on_buffered_reads_and_on_trims(
    place: Path, kernel: str, disk: str, job: str
) -> None:
    simulated = blklab.simulate(job, disk=disk, scheduler="none", host=specs.GUEST)
    real = blklab.simulate(
        job, disk=disk, scheduler="none", rig="kernel", kernel=kernel, driver="native",
        host=specs.GUEST,
    )  # fmt: skip
    assert len(real.detail.sector) > 30
    assert np.array_equal(real.detail.sector, simulated.detail.sector)
    for ours, theirs in zip(simulated.jobs, real.jobs, strict=True):
        for direction in ("read", "write", "trim"):
            one, other = ours.direction(direction), theirs.direction(direction)
            assert (one.ios, one.bytes) == (other.ios, other.bytes)
            assert one.clat.mean_ns == pytest.approx(other.clat.mean_ns, abs=10)


def test_buffered_writes_are_on_the_disk_after_fsync(place: Path, kernel: str) -> None:
    job = BUFFERED + "rw=randwrite\nbs=8k\nfsync=4\nnumber_ios=400\n"
    real = on_kernel(kernel, "native", job)
    simulated = blklab.simulate(job, disk="wd10ezrx", scheduler="mq-deadline")
    assert real.disk.write_sectors >= 400 * 8192 // 512 == simulated.disk.write_sectors
    assert real.disk.flush_ios == simulated.disk.flush_ios == 100
    ours, theirs = (result.jobs[0].sync_lat.mean_ns for result in (simulated, real))
    assert ours == pytest.approx(theirs, rel=0.02)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("ioengine=posixaio", "a: the native driver knows no ioengine=posixaio: use libaio"),
        ("rw=trim\nioengine=libaio", "a: the native driver trims only by engines that wait"),
    ],
)
def test_the_native_driver_refuses_options_that_it_lacks(
    place: Path, kernel: str, options: str, message: str
) -> None:
    with pytest.raises(RunError) as told:
        on_kernel(kernel, "native", f"{JOB}{options}\n")
    assert message in str(told.value)
    assert "\n" not in str(told.value)


def test_the_disk_is_punctual_to_the_nanosecond(place: Path, kernel: str) -> None:
    job = JOB.replace("runtime=2", "runtime=20ms")
    real = blklab.simulate(
        job, disk="optane-900p", scheduler="none", rig="kernel", kernel=kernel, driver="native",
        host=specs.GUEST,
    )  # fmt: skip
    simulated = blklab.simulate(job, disk="optane-900p", scheduler="none", host=specs.GUEST)
    real_ns, simulated_ns = (result.jobs[0].read.clat.mean_ns for result in (real, simulated))
    assert real.jobs[0].read.ios > 1000
    assert real_ns == simulated_ns


@real_fio.needs_fio
def test_fio_itself_comes_to_the_same_within_a_few_per_cent(place: Path, kernel: str) -> None:
    job = JOB.replace("runtime=2", "runtime=16")
    simulated = measured(blklab.simulate(job, disk="wd10ezrx", scheduler="mq-deadline"))
    real = measured(on_kernel(kernel, "fio", job))
    # fio draws its own offsets. The means of 2,250 reads, a third of whose time is random,
    # differ by 1 % (standard error).
    assert real["ios"] == pytest.approx(simulated["ios"], rel=0.05)
    assert real["percentiles_ns"][2] == pytest.approx(simulated["percentiles_ns"][2], rel=0.05)


@pytest.mark.parametrize(
    ("disk", "settings", "largest_read", "largest_write"),
    [
        # The job advises sequential reads: windows are twice `read_ahead_kb`, 16 MiB on hard disks.
        ("wd10ezrx", "", 8192, 8192),
        ("su800-128gb", "", 512, 8192),
        ("su800-128gb", ":max_sectors_kb=1280,read_ahead_kb=512", 2048, 2560),
        # The controller takes less than the kernel would send.
        ("950pro-256gb:hw_queues=1", "", 256, 256),
        ("950pro-256gb:hw_queues=1", ":max_sectors_kb=64", 128, 128),
        ("pm983-960gb:hw_queues=1", "", 512, 4096),
    ],
)
def test_a_guests_limits_of_the_queue_are_the_simulators(
    place: Path, kernel: str, disk: str, settings: str, largest_read: int, largest_write: int
) -> None:
    """Nothing sets them in a guest, unless the user does."""
    job = "[r]\nrw=read\nbs=64k\nsize=48m\n[w]\nrw=write\nbs=64k\nsize=48m\nend_fsync=1\n"
    options: dict[str, Any] = {"disk": disk, "scheduler": f"none{settings}"}
    rig: dict[str, Any] = {"rig": "kernel", "kernel": kernel, "driver": "native"}
    both = []
    here: dict[str, Any] = {}
    for on in (here, rig):
        seen = blklab.simulate(job, **options, **on, host=specs.GUEST).overview
        commands = zip(seen.op, seen.sector, seen.sectors, strict=True)
        both.append(sorted((int(op), int(first), int(length)) for op, first, length in commands))
    assert both[0] == both[1]
    largest = [max(length for op, _, length in both[1] if op == kind) for kind in (0, 1)]
    assert largest == [largest_read, largest_write]


def test_over_time_simulator_and_kernel_see_the_same_queue(place: Path, kernel: str) -> None:
    # Two tags, so that most wait in the scheduler; at time zero the kernel sorts first.
    job = JOB + "ioengine=libaio\niodepth=8\n"
    options: dict[str, Any] = {"disk": "wd10ezrx:ncq=off", "scheduler": "mq-deadline"}
    ours = blklab.simulate(job, **options)
    real = blklab.simulate(job, **options, rig="kernel", kernel=kernel, driver="native")
    assert real.series.interval_ns == ours.series.interval_ns
    for name in ("waiting_milli", "in_flight_milli"):
        one, other = (getattr(result.series, name).mean() for result in (ours, real))
        assert other == pytest.approx(one, rel=0.02), name
    assert real.disk.depth_max == ours.disk.depth_max == 8
    # The kernel counts whole milliseconds.
    queue_ns = real.disk.in_flight_ns + 1_000_000 * int(real.series.waiting_milli.sum()) // 1000
    assert queue_ns == pytest.approx(real.disk.in_queue_ns, rel=0.01)
    assert_whole(real)


@real_fio.needs_fio
def test_fios_direct_io_is_followed_over_time_to_the_last_byte(place: Path, kernel: str) -> None:
    # Merged on its way, split on its way, and two processes.
    job = (
        "[global]\ndirect=1\nioengine=libaio\niodepth=8\nsize=64m\n"
        "[a]\nrw=write\nbs=4k\niodepth_batch_submit=8\n[b]\nrw=randread\nbs=8m\n"
    )
    real = on_kernel(kernel, "fio", job)
    assert real.disk.write_merges > 1000 and real.disk.read_ios > real.jobs[1].read.ios
    assert real.series.read_bytes.sum() == real.jobs[1].read.bytes == 64 << 20
    assert real.series.write_ios.sum() == real.jobs[0].write.ios == 16384
    clat_ns = real.jobs[0].write.clat.mean_ns * 16384
    assert real.series.write_clat_sum_ns.sum() == pytest.approx(clat_ns, rel=0.02)
    assert set(real.overview.process.tolist()) == {0, 1}
    assert_whole(real)


@real_fio.needs_fio
def test_columns_that_were_not_tracked_are_omitted(place: Path, kernel: str) -> None:
    real = on_kernel(kernel, "fio", JOB.replace("direct=1", "direct=0"))
    columns = real.series.columns()
    assert "read_bytes" not in columns and len(real.series.read_bytes) == 0
    assert len(columns["in_flight_milli"]) == len(columns["start_ns"]) > 1000
    assert_whole(real)


def assert_whole(result: Result) -> None:
    """Every command that the kernel has counted is in the overview."""
    assert result.overview.stride == 1
    assert len(result.overview.op) == result.disk.read_ios + result.disk.write_ios
    moved = result.disk.read_sectors + result.disk.write_sectors
    assert result.overview.sectors.sum() == moved
    assert np.array_equal(result.overview.sector, result.detail.sector)
    served_ns = (result.overview.completed_ns - result.overview.issued_ns).sum()
    assert served_ns == result.disk.service_ns
    area_ns = int(result.series.in_flight_milli.sum()) * result.series.interval_ns // 1000
    assert area_ns == pytest.approx(result.disk.in_flight_ns, rel=0.001)


def test_a_comparison_names_kernel_and_driver(place: Path, kernel: str) -> None:
    (place / "job.fio").write_text(JOB)
    done = subprocess.run(
        [BLKLAB, "compare", "--rig=kernel", f"--kernel={kernel}", "--driver=native",
         "--disk=wd10ezrx", "--workload=job.fio", "--scheduler=none",
         "--scheduler=bfq:low_latency=0", "--repeats=2", "--out=out", "--host=dirty_ratio=5"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    setup = json.loads((place / "out/results.json").read_text())["setup"]
    assert (setup["rig"], setup["rig_setup"]["driver"]) == ("kernel", "native")
    assert setup["rig_setup"]["kernel"]["key"] == kernel
    assert set(setup["host"]) >= {"dirty_ratio", "memory_kb"} and "cpus" in setup["host"]
    assert {info["follows"] for info in setup["schedulers"]} == {"the kernel that ran"}
    tunables = {row["name"]: row for row in setup["schedulers"][1]["tunables"]}
    assert (tunables["low_latency"]["value"], tunables["low_latency"]["changed"]) == (0, True)
    assert not tunables["slice_idle"]["changed"]
    page = (place / "out/report.html").read_text()
    assert "driver native, disk of its transport, clock inf-cpu" in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"driver": "nativ"}, "--driver: no 'nativ'; did you mean 'native'?"),
        ({"kernel": "no-such-kernel"}, "no kernel 'no-such-kernel'"),
        ({"rig": "sim", "kernel": "x"}, "--kernel: the rig 'sim' has no such option"),
        ({"rig": "sim", "driver": "fio"}, "--driver: the rig 'sim' has no such option"),
        ({"rig": "kernle"}, "--rig: no rig 'kernle'; did you mean 'kernel'?"),
        ({"driver": "fio", "host": {"cpus": 2}}, "--host: cpus is 1 in a guest"),
        ({"scheduler": "kyber:read"}, "expected tunable=value, found 'read'"),
        ({"scheduler": "kyber:"}, "expected tunable=value, found ''"),
        ({"scheduler": "kyber:nr_requests=x"}, "nr_requests"),
    ],
)
def test_wrong_arguments_are_refused_before_a_guest_starts(
    place: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as told:
        blklab.simulate(JOB, **{"disk": "wd10ezrx", "rig": "kernel"} | options)
    assert message in str(told.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("cfq", "scheduler: 'cfq' was not taken"),
        ("kyber:read_lat=3", "read_lat: no such tunable; there are: read_lat_nsec"),
    ],
)
def test_a_scheduler_or_tunable_that_the_kernel_lacks_is_reported_in_its_words(
    place: Path, kernel: str, spec: str, message: str
) -> None:
    with pytest.raises(RunError) as told:
        on_kernel(kernel, "native", spec=spec)
    assert message in str(told.value)


def test_without_a_kernel_the_message_says_how_to_get_one(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLKLAB_CACHE", str(tmp_path))
    told = (2, "blklab: no kernel in the cache; build one: blklab kernel build\n")
    fio = ("fio", "randread", "--disk", "wd10ezrx", "--rig", "kernel")
    assert failing(capfd, monkeypatch, *fio) == told
    assert failing(capfd, monkeypatch, "kernel", "run", "--disk", "wd10ezrx", "--", "ls") == told


def test_a_guest_that_panics_is_reported_with_its_console(
    place: Path, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "find", lambda _: Path("/bin/true"))
    with pytest.raises(GuestPanicError, match=r"^the guest's kernel panicked$") as told:
        on_kernel(kernel, "native")
    assert "Attempted to kill init" in told.value.detail[-1]


def test_a_disk_that_is_late_makes_a_run_invalid() -> None:
    def too_late(p50_ns: int) -> str | None:
        late = outcome.Lateness(p50_ns=p50_ns, p99_ns=0, max_ns=0)
        return outcome.too_late(late, 10_000_000)

    assert "invalid" in (too_late(200_001) or "")
    assert too_late(200_000) is None


def test_tunables_go_where_the_kernel_has_them() -> None:
    parsed = scheduler.parse("mine:nr_requests=8,read_ahead_kb=0,wait_ms=100")
    assert parsed.for_guest({"wbt_lat_usec": 0}, "7.3.4") == {
        "scheduler": "mine",
        "queue": {"wbt_lat_usec": 0, "nr_requests": 8, "read_ahead_kb": 0},
        "iosched": {"wait_ms": "100"},
    }
    assert scheduler.parse("none:nr_requests=0").for_guest({}, "7.3.4")["queue"] == {}


@real_fio.needs_fio
def test_fios_output_is_kept_and_a_resumed_comparison_uses_the_same_kernel(
    place: Path, kernel: str
) -> None:
    (place / "job.fio").write_text(JOB)
    done = subprocess.run(
        [BLKLAB, "compare", "--rig=kernel", f"--kernel={kernel}", "--disk=su800-128gb",
         "--driver=fio", "--workload=job.fio", "--scheduler=none", "--repeats=2", "--out=out"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    store = open_store(locate())
    found = read.comparison(store, 1, raw=True)
    for one in found.runs:
        written = json.loads(one.raw["fio.json"])
        # The result has fio's own counts.
        clat_ns = written["jobs"][0]["read"]["clat_ns"]
        assert clat_ns["N"] == one.measurement.latencies["read"].ios
    assert str(found.facts["versions"]["fio"]).startswith("fio-")
    with store.writing() as connection:
        connection.execute(schema.RUN.delete().where(schema.RUN.c.number == 1))
        connection.execute(schema.COMPARISON.update().values(ended_at=None, owner=None))
    resumed = subprocess.run(
        [BLKLAB, "compare", "--resume"], capture_output=True, text=True, check=False, timeout=120
    )
    assert resumed.returncode == 0, resumed.stderr
    again = read.comparison(store, 1, raw=True)
    assert (again.listed.state, len(again.runs)) == (read.COMPLETE, 2)
    assert again.runs[0] == found.runs[0]
    assert again.runs[1].measurement.seed == found.runs[1].measurement.seed


@pytest.mark.parametrize("command", [["fio", "long.fio"], ["compare", "--workload", "long.fio"]])
def test_ctrl_c_ends_the_guests_and_leaves_nothing(
    place: Path, kernel: str, command: list[str]
) -> None:
    (place / "long.fio").write_text(JOB.replace("runtime=2", "runtime=100000"))
    process = subprocess.Popen(
        [BLKLAB, *command, "--rig=kernel", f"--kernel={kernel}", "--driver=native",
         "--disk=wd10ezrx"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    end_s = time.monotonic() + 60
    while not (guests := real_kernel.descendants([process.pid], "linux")):
        assert process.poll() is None and time.monotonic() < end_s
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    kept = "finished runs are stored; to continue: blklab compare --resume 1"
    told = kept if command[0] == "compare" else "nothing was written"
    assert errors.splitlines()[-1] == f"blklab: interrupted; {told}"
    assert not any(Path("/proc", guest["Pid"]).exists() for guest in guests)
