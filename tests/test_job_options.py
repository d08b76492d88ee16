"""Job options have the effect described in fio's manual: a test for each, on the simulated
result."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import blklab
from blklab.domain.result import Job, Result
from blklab.errors import InputError

SSD, HDD, NVME = "su800-128gb", "desktop-5900rpm", "950pro-256gb"
MIB = 1 << 20
SECTOR = 512


def simulate(*options: str, disk: str = SSD, scheduler: str = "none", seed: int = 1) -> Result:
    """A job of these options; direct 4 KiB I/O of psync over 4 MiB unless they say otherwise."""
    defaults = ("direct=1", "size=4m", "bs=4k", "ioengine=psync")
    text = "\n".join(["[job]", *defaults, *options, ""])
    return blklab.simulate(text, disk=disk, scheduler=scheduler, seed=seed)


def only(result: Result) -> Job:
    (job,) = result.jobs
    return job


def offsets(result: Result) -> list[int]:
    """Bytes from the disk's start, of the commands as they were issued."""
    assert result.overview.stride == 1
    return [int(sector) * SECTOR for sector in result.overview.sector]


def sizes(result: Result) -> list[int]:
    return [int(sectors) * SECTOR for sectors in result.overview.sectors]


def seeks(result: Result) -> float:
    """Share of commands that do not begin where the one before ended."""
    trace = result.overview
    return float(np.mean(trace.sector[1:] != trace.sector[:-1] + trace.sectors[:-1]))


# Directions, sizes and order.


@pytest.mark.parametrize(
    ("rw", "counts"),
    [
        ("read", (1024, 0, 0)),
        ("write", (0, 1024, 0)),
        ("trim", (0, 0, 1024)),
        ("randread", (1024, 0, 0)),
        ("randwrite", (0, 1024, 0)),
        ("randtrim", (0, 0, 1024)),
        ("trimwrite", (0, 1024, 1024)),
        ("randtrimwrite", (0, 1024, 1024)),
    ],
)
def test_rw_chooses_direction_and_order(rw: str, counts: tuple[int, int, int]) -> None:
    result = simulate(f"rw={rw}")
    job = only(result)
    assert (job.read.ios, job.write.ios, job.trim.ios) == counts
    places = [offset for offset in offsets(result) if offset < 4 * MIB]
    assert sorted(set(places)) == list(range(0, 4 * MIB, 4096))
    assert (places == sorted(places)) == (not rw.startswith("rand"))


@pytest.mark.parametrize("rw", ["rw", "readwrite", "randrw"])
def test_mixed_directions_touch_each_block_once_half_of_them_reading(rw: str) -> None:
    job = only(simulate(f"rw={rw}"))
    assert job.read.ios + job.write.ios == 1024
    assert job.read.ios == pytest.approx(512, abs=60)


@pytest.mark.parametrize(("option", "reads"), [("rwmixread=90", 0.9), ("rwmixwrite=90", 0.1)])
def test_rwmix_sets_the_share_of_reads(option: str, reads: float) -> None:
    job = only(simulate("rw=randrw", option))
    assert job.read.ios / 1024 == pytest.approx(reads, abs=0.03)


def test_rw_with_a_number_keeps_to_a_random_offset_for_so_many_ios() -> None:
    assert seeks(simulate("rw=randread:8", "norandommap")) == pytest.approx(1 / 8, abs=0.03)


def test_rw_sequencer_identical_repeats_the_offset() -> None:
    places = offsets(simulate("rw=randwrite:4", "rw_sequencer=identical", "norandommap"))
    assert all(len(set(places[at : at + 4])) == 1 for at in range(0, 64, 4))


def test_sequential_rw_with_a_number_leaves_that_much_out() -> None:
    assert offsets(simulate("rw=write:12k"))[:4] == [0, 16384, 32768, 49152]


def test_bs_may_differ_by_direction() -> None:
    job = only(simulate("rw=randrw", "bs=4k,16k", "norandommap"))
    assert job.read.bytes == job.read.ios * 4096
    assert job.write.bytes == job.write.ios * 16384


def test_bssplit_draws_sizes_by_their_shares() -> None:
    drawn = sizes(simulate("rw=randread", "bssplit=4k/75:64k/25", "size=64m"))
    assert set(drawn) <= {4096, 65536} | {size for size in drawn if size < 65536}
    small = sum(size == 4096 for size in drawn) / len(drawn)
    assert small == pytest.approx(0.75, abs=0.05)


def test_bsrange_draws_multiples_of_its_lower_end() -> None:
    drawn = set(sizes(simulate("rw=randread", "bsrange=4k-16k", "norandommap", "size=16m")))
    assert drawn == {4096, 8192, 12288, 16384}


def test_blockalign_places_random_ios_at_its_multiples() -> None:
    places = offsets(simulate("rw=randread", "blockalign=64k"))
    assert all(place % 65536 == 0 for place in places)


def test_percentage_random_sets_how_many_ios_seek() -> None:
    shares = [
        seeks(simulate("rw=randread", f"percentage_random={percent}", "size=32m", "io_size=4m"))
        for percent in (0, 25, 75, 100)
    ]
    assert shares == pytest.approx([0.0, 0.25, 0.75, 1.0], abs=0.05)


def test_fewer_seeks_make_a_hard_disk_faster() -> None:
    def duration(percent: int) -> int:
        more = ("size=256m", "io_size=1m")
        return simulate("rw=randread", f"percentage_random={percent}", *more, disk=HDD).duration_ns

    assert duration(10) < duration(50) < duration(100)


def test_a_random_map_hits_every_block_once_and_norandommap_does_not() -> None:
    mapped = offsets(simulate("rw=randread"))
    free = offsets(simulate("rw=randread", "norandommap"))
    assert len(set(mapped)) == len(mapped) == 1024
    assert len(free) == 1024
    # Of n draws from n, 1/e of the blocks stay untouched.
    assert len(set(free)) / 1024 == pytest.approx(1 - np.exp(-1), abs=0.05)


@pytest.mark.parametrize(
    ("distribution", "busiest_tenth"),
    [("random", 0.2), ("zipf:1.2", 0.8), ("pareto:0.1", 0.8), ("normal:5", 0.45)],
)
def test_a_skewed_distribution_hits_few_blocks_often(
    distribution: str, busiest_tenth: float
) -> None:
    # Without randrepeat=0 each pass over the 4 MiB would hit the same blocks again.
    repeats = ("norandommap", "io_size=32m", "randrepeat=0")
    options = (f"random_distribution={distribution}", *repeats)
    _, hits = np.unique(offsets(simulate("rw=randread", *options)), return_counts=True)
    share = np.sort(hits)[::-1][:102].sum() / hits.sum()
    if distribution == "random":
        assert share < busiest_tenth
    else:
        assert share > busiest_tenth


def test_a_zoned_distribution_hits_its_zones_by_their_shares() -> None:
    # The width of the last zone is what is left.
    zoned = "random_distribution=zoned:60/10:30/20:8/30:2/"
    places = np.array(offsets(simulate("rw=randread", zoned, "size=100m", "io_size=16m")))
    edges = np.array([0, 10, 30, 60, 100]) * MIB
    shares = np.histogram(places, edges)[0] / len(places)
    assert shares == pytest.approx([0.60, 0.30, 0.08, 0.02], abs=0.02)


def test_zones_may_be_given_in_bytes() -> None:
    zoned = "random_distribution=zoned_abs:90/1m:10/3m"
    places = np.array(offsets(simulate("rw=randread", zoned, "io_size=16m")))
    assert np.mean(places < MIB) == pytest.approx(0.9, abs=0.02)


def test_randseed_replaces_the_runs_seed() -> None:
    def order(*options: str, seed: int) -> list[int]:
        return offsets(simulate("rw=randread", *options, seed=seed))

    assert order("randseed=7", seed=1) == order("randseed=7", seed=2)
    assert order("randseed=7", seed=1) != order("randseed=8", seed=1)
    assert order(seed=1) != order(seed=2)


def test_randrepeat_decides_whether_loops_repeat_the_order() -> None:
    def passes(randrepeat: int) -> tuple[list[int], list[int]]:
        places = offsets(simulate("rw=randread", "loops=2", f"randrepeat={randrepeat}"))
        return places[:1024], places[1024:]

    first, second = passes(1)
    assert first == second
    first, second = passes(0)
    assert first != second
    assert sorted(first) == sorted(second)


# How much, and where.


def test_size_offset_and_offset_increment_lay_clones_side_by_side() -> None:
    result = simulate("rw=write", "filename=f", "offset=1m", "offset_increment=8m", "numjobs=3")
    trace = result.overview
    for process in range(3):
        mine = trace.sector[trace.process == process] * SECTOR
        assert mine.min() == (1 + 8 * process) * MIB
        assert mine.max() == (5 + 8 * process) * MIB - 4096


def test_io_size_is_the_amount_of_io_for_any_file_size() -> None:
    less, more = simulate("rw=write", "io_size=1m"), simulate("rw=write", "io_size=10m")
    assert (only(less).write.bytes, only(more).write.bytes) == (MIB, 10 * MIB)
    assert max(offsets(more)) == 4 * MIB - 4096


def test_filesize_sets_the_size_of_each_file() -> None:
    text = "[job]\ndirect=1\nrw=read\nbs=4k\nfilesize=1m\nnrfiles=3\n"
    result = blklab.simulate(text, disk=SSD)
    assert only(result).read.bytes == 3 * MIB


def test_nrfiles_share_the_size() -> None:
    result = simulate("rw=read", "nrfiles=4")
    assert only(result).read.bytes == 4 * MIB
    assert offsets(result)[:5] == [0, MIB, 2 * MIB, 3 * MIB, 4096]


def test_a_percentage_of_a_device_counts_from_its_capacity() -> None:
    result = simulate("filename=/dev/sda", "size=1%", "bs=1m", "rw=read")
    assert only(result).read.bytes == pytest.approx(0.01 * 128e9, rel=0.01)


def test_loops_repeat_the_pass() -> None:
    assert only(simulate("rw=read", "loops=3")).read.bytes == 12 * MIB


def test_number_ios_ends_the_job() -> None:
    assert only(simulate("rw=randread", "number_ios=100")).read.ios == 100
    # As real fio 3.33 does.
    assert only(simulate("rw=randread", "number_ios=100", "loops=3")).read.ios == 300
    timed = only(simulate("rw=randread", "number_ios=3", "time_based", "runtime=1"))
    assert timed.read.ios > 3


# Engines and depth.


@pytest.mark.parametrize("engine", ["sync", "psync", "vsync", "pvsync", "pvsync2"])
def test_a_blocking_engine_has_one_io_under_way_whatever_iodepth_says(engine: str) -> None:
    result = simulate("rw=randread", f"ioengine={engine}", "iodepth=32")
    assert result.disk.depth_max == 1
    assert only(result).depth_levels == (1024, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("engine", ["libaio", "io_uring"])
def test_a_queueing_engine_keeps_iodepth_under_way(engine: str) -> None:
    result = simulate("rw=randread", f"ioengine={engine}", "iodepth=16")
    assert result.disk.depth_max == 16
    levels = only(result).depth_levels
    assert levels[4] > 0.95 * sum(levels)


def test_posixaio_keeps_iodepth_waiting_and_one_io_per_file_under_way() -> None:
    options = ("rw=randread", "ioengine=posixaio", "iodepth=16")
    result = simulate(*options)
    assert result.disk.depth_max == 1
    levels = only(result).depth_levels
    assert levels[4] > 0.95 * sum(levels)
    assert simulate(*options, "nrfiles=8").disk.depth_max == 8


def test_iodepth_batch_is_the_size_of_a_submit_call() -> None:
    options = ("rw=randread", "ioengine=libaio", "iodepth=16", "iodepth_low=4")
    alone = only(simulate(*options)).submit_levels
    batched = only(simulate(*options, "iodepth_batch=8")).submit_levels
    assert alone.index(max(alone)) == 1
    assert batched.index(max(batched)) == 2


def test_iodepth_batch_complete_is_how_many_are_reaped_at_once() -> None:
    options = ("rw=randread", "ioengine=libaio", "iodepth=16")
    alone = only(simulate(*options)).complete_levels
    batched = only(simulate(*options, "iodepth_batch_complete_min=8")).complete_levels
    assert alone.index(max(alone)) == 1
    assert batched.index(max(batched)) == 2


def test_iodepth_low_is_drained_down_to() -> None:
    options = ("rw=randread", "ioengine=libaio", "iodepth=16")
    kept = only(simulate(*options)).depth_levels
    drained = only(simulate(*options, "iodepth_low=2")).depth_levels
    assert kept[4] > 0.95 * sum(kept)
    assert drained[4] < 0.2 * sum(drained)


def test_buffered_io_reads_ahead_and_direct_io_does_not() -> None:
    direct = simulate("rw=read")
    buffered = simulate("rw=read", "direct=0")
    assert only(direct).read.bytes == only(buffered).read.bytes == 4 * MIB
    assert set(sizes(direct)) == {4096}
    # fio announces sequential reading, upon which the kernel doubles its 128 KiB window.
    assert max(sizes(buffered)) == 256 * 1024


def test_cached_data_are_read_once_unless_invalidated() -> None:
    kept = simulate("rw=read", "direct=0", "loops=2", "invalidate=0")
    dropped = simulate("rw=read", "direct=0", "loops=2", "invalidate=1")
    assert kept.disk.read_sectors * SECTOR == 4 * MIB
    assert dropped.disk.read_sectors * SECTOR == 8 * MIB


# Time.


def test_runtime_ends_a_job_and_time_based_goes_on_until_then() -> None:
    cut = simulate("rw=read", "size=1g", "runtime=100ms")
    assert cut.duration_ns == pytest.approx(100e6, rel=0.02)
    assert only(simulate("rw=read", "runtime=10")).read.bytes == 4 * MIB
    repeated = simulate("rw=read", "runtime=500ms", "time_based")
    assert repeated.duration_ns == pytest.approx(500e6, rel=0.02)
    assert only(repeated).read.bytes > 8 * MIB


def test_io_in_ramp_time_is_not_counted() -> None:
    # In a small file more reads find their neighbours read ahead the longer the job runs.
    job = ("rw=randread", "size=64m", "time_based", "runtime=200ms")
    plain, ramped = simulate(*job), simulate(*job, "ramp_time=300ms")
    assert ramped.duration_ns == pytest.approx(500e6, rel=0.02)
    assert only(ramped).read.runtime_ns == pytest.approx(200e6, rel=0.02)
    assert only(ramped).read.ios == pytest.approx(only(plain).read.ios, rel=0.05)


def test_startdelay_starts_later() -> None:
    job = only(simulate("rw=read", "startdelay=250ms"))
    assert job.start_ns == 250_000_000
    assert job.end_ns > job.start_ns


def test_stonewall_and_wait_for_start_jobs_one_after_the_other() -> None:
    text = """
[global]
direct=1
rw=read
size=1m
[a]
[b]
[c]
stonewall
[d]
wait_for=c
"""
    a, b, c, d = blklab.simulate(text, disk=SSD).jobs
    assert a.start_ns == b.start_ns == 0
    assert c.start_ns == max(a.end_ns, b.end_ns)
    assert d.start_ns == c.end_ns
    assert (a.group, b.group, c.group, d.group) == (0, 0, 1, 1)


def test_thinktime_adds_its_pause_to_each_io_and_thinktime_blocks_spares_some() -> None:
    base = simulate("rw=read").duration_ns
    each = simulate("rw=read", "thinktime=1000").duration_ns
    some = simulate("rw=read", "thinktime=1000", "thinktime_blocks=64").duration_ns
    assert each - base == pytest.approx(1023 * 1e6, rel=0.02)
    assert some - base == pytest.approx(15 * 1e6, rel=0.1)


def test_thinktime_spin_spends_that_much_of_the_pause_on_the_cpu() -> None:
    job = only(simulate("rw=read", "thinktime=1000", "thinktime_spin=400"))
    assert job.user_ns == pytest.approx(1023 * 400e3, rel=0.02)


def test_thinktime_blocks_type_selects_the_counted_event() -> None:
    queued = ("rw=randread", "ioengine=libaio", "iodepth=8")
    pauses = ("thinktime=1000", "thinktime_blocks=16")
    issue = simulate(*queued, *pauses, "thinktime_blocks_type=issue")
    complete = simulate(*queued, *pauses, "thinktime_blocks_type=complete")
    assert issue.duration_ns != complete.duration_ns
    for result in (issue, complete):
        assert result.duration_ns > 1024 / 24 * 1e6


def test_thinktime_iotime_pauses_after_that_much_io() -> None:
    base = simulate("rw=read", "size=32m").duration_ns
    paused = simulate("rw=read", "size=32m", "thinktime=50ms", "thinktime_iotime=100ms")
    assert paused.duration_ns - base == pytest.approx(base // 100_000_000 * 50e6, abs=60e6)


# Rates.


def iops(result: Result) -> float:
    part = only(result).read
    return part.ios * 1e9 / part.runtime_ns


def test_rate_iops_holds_the_job_back_to_it() -> None:
    free = iops(simulate("rw=randread", "time_based", "runtime=1"))
    half = int(free / 2)
    assert iops(
        simulate("rw=randread", "time_based", "runtime=1", f"rate_iops={half}")
    ) == pytest.approx(half, rel=0.01)


def test_rate_holds_the_bandwidth_down_and_directions_have_their_own() -> None:
    job = only(simulate("rw=randrw", "time_based", "runtime=2", "rate=4m,1m", "rwmixread=80"))
    assert job.read.bytes / 2 == pytest.approx(4 * MIB, rel=0.05)
    assert job.write.bytes / 2 == pytest.approx(1 * MIB, rel=0.05)


def test_poisson_arrivals_keep_the_rate_and_vary_in_their_gaps() -> None:
    def gaps(process: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        rate = ("rate_iops=500", f"rate_process={process}")
        result = simulate("rw=randread", "time_based", "runtime=4", *rate)
        assert iops(result) == pytest.approx(500, rel=0.06)
        return np.diff(result.overview.queued_ns).astype(float)

    even, poisson = gaps("linear"), gaps("poisson")
    assert even.std() / even.mean() < 0.05
    assert poisson.std() / poisson.mean() == pytest.approx(1.0, abs=0.1)


# Durability.


@pytest.mark.parametrize("option", ["fsync", "fdatasync"])
def test_a_sync_follows_every_nth_write(option: str) -> None:
    result = simulate("rw=write", f"{option}=32")
    assert only(result).sync_lat.count == 1024 // 32
    assert result.disk.flush_ios > 0


def test_sync_makes_every_write_wait_for_the_medium() -> None:
    plain, durable = (simulate("rw=randwrite", more, disk=HDD) for more in ("sync=none", "sync=1"))
    assert only(durable).write.clat.mean_ns > 2 * only(plain).write.clat.mean_ns


def test_end_fsync_makes_a_buffered_writer_wait_for_the_disk() -> None:
    cached = simulate("rw=write", "direct=0")
    durable = simulate("rw=write", "direct=0", "end_fsync=1")
    assert cached.disk.write_sectors == 0
    assert durable.disk.write_sectors * SECTOR == 4 * MIB
    assert only(durable).end_ns > 2 * only(cached).end_ns


# Priorities.

_TWO = """
[global]
direct=1
ioengine=libaio
iodepth=32
rw=randread
bs=4k
size=64m
io_size=4m
[plain]
[urgent]
{}
"""


@pytest.mark.parametrize("option", ["prioclass=1", "prioclass=1\nprio=4"])
def test_prioclass_makes_mq_deadline_serve_a_job_first(option: str) -> None:
    plain, urgent = blklab.simulate(
        _TWO.format(option), disk=HDD, scheduler="mq-deadline:async_depth=64"
    ).jobs
    assert urgent.read.clat.mean_ns < 0.8 * plain.read.clat.mean_ns


def test_an_idle_job_comes_last() -> None:
    plain, idle = blklab.simulate(
        _TWO.format("prioclass=3"), disk=HDD, scheduler="mq-deadline"
    ).jobs
    assert plain.end_ns < idle.end_ns


def test_without_a_scheduler_priority_changes_nothing() -> None:
    texts = (_TWO.format(""), _TWO.format("prioclass=1"))
    ends = [[j.end_ns for j in blklab.simulate(text, disk=SSD).jobs] for text in texts]
    assert ends[0] == ends[1]


def test_cmdprio_percentage_gives_that_share_a_lower_latency() -> None:
    # A disk that takes one command leaves the whole order to the scheduler.
    disk = f"{HDD}:queue_depth=1"
    options = ("rw=randread", "ioengine=libaio", "iodepth=64", "size=64m", "io_size=8m")
    raised = simulate(*options, "cmdprio_percentage=20", disk=disk, scheduler="mq-deadline")
    plain = simulate(*options, disk=disk, scheduler="mq-deadline")
    (low, high), (plain_low, plain_high) = (
        only(result).read.clat_hist.percentiles([10, 90]).tolist() for result in (raised, plain)
    )
    assert low < 0.5 * plain_low
    assert high > 1.2 * plain_high


# Reporting and the file itself.


def test_group_reporting_name_and_percentile_list_reach_the_result() -> None:
    result = simulate(
        "rw=read", "numjobs=2", "group_reporting", "name=other", "percentile_list=50:99.5"
    )
    assert [job.name for job in result.jobs] == ["other", "other"]
    assert all(job.group_reporting for job in result.jobs)
    assert result.jobs[0].percentiles == (50.0, 99.5)


def test_threads_and_processes_give_the_same_result() -> None:
    assert simulate("rw=randread", "thread").duration_ns == simulate("rw=randread").duration_ns


SLOW_CPUS = {"submit_ns": 50_000}


def cpu_bound(*options: str) -> float:
    """I/Os per second of four processes on a fast disk, with slow CPUs."""
    job = ["[job]", "direct=1", "size=1m", "rw=randread", "ioengine=libaio", "iodepth=16"]
    text = "\n".join(
        [*job, "numjobs=4", "runtime=100ms", "time_based", "norandommap", *options, ""]
    )
    result = blklab.simulate(text, disk=NVME, scheduler="none", host=SLOW_CPUS)
    return sum(one.read.ios for one in result.jobs) / 0.1


@pytest.mark.parametrize("one_cpu", ["cpus_allowed=2", "cpumask=4", "cpus_allowed=2,2-2"])
def test_processes_that_are_allowed_one_cpu_share_it(one_cpu: str) -> None:
    assert cpu_bound(one_cpu) < 0.5 * cpu_bound()
    assert cpu_bound("cpus_allowed=0-3") == cpu_bound()


def test_cpus_allowed_policy_split_gives_clones_one_cpu_each() -> None:
    text = "[a]\nsize=4k\ndirect=1\n[b]\nsize=4k\ndirect=1\n{}\ncpus_allowed=0,1\n"
    both = [
        blklab.simulate(text.format(policy), disk=NVME, scheduler="none", host=SLOW_CPUS)
        for policy in ("cpus_allowed_policy=shared", "cpus_allowed_policy=split")
    ]
    # Number 1 of all is on CPU 1; clone 0 of its own job is on CPU 0, behind the other.
    shared_ns, split_ns = (result.duration_ns for result in both)
    assert shared_ns < split_ns


def test_lockmem_leaves_the_page_cache_less() -> None:
    def read_again(*options: str) -> Result:
        text = ["[a]", "rw=read", "bs=1m", "size=600m", "loops=2", "invalidate=0", *options, ""]
        return blklab.simulate(
            "\n".join(text), disk=SSD, scheduler="none", host={"memory_kb": 1 << 20}
        )

    assert read_again().disk.read_sectors * SECTOR == 600 * MIB
    assert read_again("lockmem=700m").disk.read_sectors * SECTOR > 1000 * MIB


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("cpus_allowed=4", "CPU 4 of cpus_allowed: the host has 0 to 3; --host cpus=N"),
        ("cpumask=16", "CPU 4 of cpus_allowed: the host has 0 to 3; --host cpus=N"),
        ("lockmem=9g", "all processes pin 9216 MiB of 8192, at least 16 have to be left"),
        ("lockmem=5g\nnumjobs=2", "all processes pin 10240 MiB of 8192"),
        ("cpus_allowed=1-", "expected CPUs such as 0-3,5, up to 1023"),
        ("numa_cpu_nodes=0", "the modelled host has one node"),
        ("nice=-5", "CPUs serve processes in order of arrival"),
    ],
)
def test_options_beyond_the_modelled_host_are_refused(option: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        simulate(*option.split("\n"))
    text = str(refused.value)
    assert said in text and re.match(r"[^:]*:\d+: ", text)


def test_includes_variables_and_units_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "common.fio").write_text("direct=1\nbs=0x1000\nrw=${DIRECTION}\n")
    job = tmp_path / "job.fio"
    job.write_text(
        "[global]\ninclude common.fio\n[a]\nsize=(2*512k)\n[b]\nsize=1000KiB\nbs=1000\ndirect=0\n"
    )
    monkeypatch.setenv("DIRECTION", "write")
    a, b = blklab.simulate(job, disk=SSD, ignore_unsupported=False).jobs
    assert (a.write.bytes, b.write.bytes) == (MIB, 10**6)


def test_a_typing_error_is_refused_by_line_with_the_right_word() -> None:
    with pytest.raises(InputError, match=r"job:6: .*iodpeth.*iodepth"):
        simulate("iodpeth=4")
