//! Whole runs compared with theory.

mod common;

use blklab_core::host::Host;
use blklab_core::result::RunResult;
use blklab_core::units::Nanos;
use common::Experiment;

fn run(job: &str, disk: &str, scheduler: &str) -> RunResult {
    Experiment::new(job, disk, scheduler).free_host().run()
}

fn read_mb_s(result: &RunResult) -> f64 {
    result.jobs.iter().map(|job| job.read.bytes as f64 / job.read.runtime_ns as f64 * 1e3).sum()
}

fn read_iops(result: &RunResult) -> f64 {
    result.jobs.iter().map(|job| job.read.ios as f64 / job.read.runtime_ns as f64 * 1e9).sum()
}

#[test]
fn a_rate_limit_is_kept() {
    let job = "[a]\nrw=randread\ndirect=1\nfilename=/dev/disk\nrate_iops=40\nruntime=20\ntime_based\n";
    let iops = read_iops(&run(job, "wd10ezrx", "none"));
    assert!((39.0..=40.5).contains(&iops), "{iops} IOPS under a limit of 40");
}

#[test]
fn think_time_adds_to_each_round() {
    let job = |think| {
        format!("[a]\nrw=randread\ndirect=1\nfilename=/dev/disk\nthinktime={think}\nruntime=20\ntime_based\n")
    };
    let busy = run(&job(0), "950pro-256gb", "none");
    let idle = run(&job(1000), "950pro-256gb", "none");
    let round_us = |result: &RunResult| 1e6 / read_iops(result);
    let added = round_us(&idle) - round_us(&busy);
    assert!((added - 1000.0).abs() < 5.0, "1000 us of thinking added {added} us");
}

#[test]
fn depth_gains_what_ordering_in_the_drive_gives() {
    let job = |depth| {
        format!(
            "[a]\nrw=randread\ndirect=1\nioengine=libaio\niodepth={depth}\nfilename=/dev/disk\nruntime=20\ntime_based\n"
        )
    };
    let iops = |depth, disk| read_iops(&run(&job(depth), disk, "none"));
    let (one, four, all) = (iops(1, "wd10ezrx"), iops(4, "wd10ezrx"), iops(32, "wd10ezrx"));
    assert!(one < four && four < all, "{one} {four} {all}");
    let unordered = iops(32, "wd10ezrx:ncq=off");
    assert!(all > 1.3 * unordered, "NCQ gives {all} IOPS, without it {unordered}");
}

#[test]
fn a_sorting_scheduler_helps_a_disk_that_does_not_sort() {
    let job = "[a]\nrw=randread\ndirect=1\nioengine=libaio\niodepth=64\nfilename=/dev/disk\nruntime=30\ntime_based\n";
    let none = read_iops(&run(job, "wd10ezrx:ncq=off", "none"));
    let sorted = read_iops(&run(job, "wd10ezrx:ncq=off", "mq-deadline"));
    assert!(sorted > 1.1 * none, "mq-deadline {sorted} IOPS, none {none}");
}

#[test]
fn a_buffered_sequential_read_is_as_fast_as_a_direct_one_with_read_ahead() {
    let job = |direct| format!("[a]\nrw=read\nbs=1m\nsize=512m\ndirect={direct}\n");
    let direct = read_mb_s(&run(&job(1), "wd10ezrx", "mq-deadline"));
    let buffered = read_mb_s(&run(&job(0), "wd10ezrx", "mq-deadline"));
    assert!((buffered / direct - 1.0).abs() < 0.1, "buffered {buffered} MB/s, direct {direct} MB/s");
}

#[test]
fn a_second_read_comes_from_memory() {
    let job = "[a]\nrw=read\nbs=1m\nsize=256m\nloops=2\ninvalidate=0\n";
    let result = run(job, "wd10ezrx", "none");
    assert_eq!(result.jobs[0].read.bytes, 512 << 20);
    assert_eq!(result.disk.read_sectors, (256 << 20) / 512);
}

#[test]
fn invalidate_reads_again_from_the_disk() {
    let job = "[a]\nrw=read\nbs=1m\nsize=256m\nloops=2\n";
    assert_eq!(run(job, "wd10ezrx", "none").disk.read_sectors, (512 << 20) / 512);
}

#[test]
fn buffered_writes_return_before_the_disk_has_them_and_fsync_does_not() {
    let job = |end_fsync| format!("[a]\nrw=write\nbs=1m\nsize=256m\nend_fsync={end_fsync}\n");
    let lazy = run(&job(0), "wd10ezrx", "none");
    let durable = run(&job(1), "wd10ezrx", "none");
    assert!(lazy.duration_ns * 5 < durable.duration_ns);
    assert_eq!(durable.disk.write_sectors, (256 << 20) / 512);
    assert_eq!(durable.disk.flush_ios, 1);
}

#[test]
fn a_writer_faster_than_the_disk_is_slowed_to_its_speed() {
    let job = "[a]\nrw=write\nbs=1m\nsize=6g\n";
    let mut experiment = Experiment::new(job, "wd10ezrx", "mq-deadline");
    experiment.memory.insert("memory_kb", 1 << 20);
    let result = experiment.run();
    let mb_s = result.jobs[0].write.bytes as f64 / result.jobs[0].write.runtime_ns as f64 * 1e3;
    assert!((80.0..220.0).contains(&mb_s), "{mb_s} MB/s with 1 GiB of memory");
}

#[test]
fn a_stonewall_keeps_jobs_apart_and_wait_for_orders_them() {
    let job = "[a]\nrw=read\nsize=8m\n[b]\nstonewall\nrw=read\nsize=8m\n[c]\nwait_for=b\nrw=read\nsize=8m\n[d]\nrw=read\nsize=8m\nstartdelay=5\n";
    let result = run(job, "wd10ezrx", "none");
    let [a, b, c, d] = &result.jobs[..] else { panic!("four jobs") };
    assert!(b.start_ns >= a.end_ns);
    assert!(c.start_ns >= b.end_ns);
    assert_eq!(d.start_ns, 5_000_000_000);
}

#[test]
fn ramp_time_is_not_counted() {
    let job = "[a]\nrw=randread\ndirect=1\nfilename=/dev/disk\nramp_time=5\nruntime=10\ntime_based\n";
    let result = run(job, "wd10ezrx", "none");
    let measured = result.jobs[0].read.runtime_ns;
    assert!((9_900_000_000..10_200_000_000).contains(&measured), "{measured} ns");
    assert!(result.duration_ns >= 15_000_000_000);
}

/// The first job's reads divided by the second's, on a shared disk that takes one request.
fn ratio(jobs: &str, scheduler: &str, free_host: bool) -> f64 {
    let job = format!(
        "[global]\nrw=randread\ndirect=1\nfilename=/dev/disk\nruntime=20\ntime_based\nioengine=libaio\niodepth=32\n{jobs}"
    );
    let experiment = Experiment::new(&job, "wd10ezrx:ncq=off", scheduler);
    let result = if free_host { experiment.free_host().run() } else { experiment.run() };
    result.jobs[0].read.ios as f64 / result.jobs[1].read.ios as f64
}

#[test]
fn the_scheduler_sees_io_priorities() {
    let of = |scheduler| ratio("[high]\nprioclass=1\n[low]\nprioclass=3\n", scheduler, false);
    assert!(of("mq-deadline") > 5.0, "real time over idle: {}", of("mq-deadline"));
    assert!((0.8..1.25).contains(&of("none")), "none knows no priorities: {}", of("none"));
}

#[test]
fn a_process_that_waits_for_a_tag_gets_it_only_if_others_take_time_to_submit_again() {
    // The first job has all 32 tags when the second starts. The owner of a completed request is
    // woken before the process that waits for its tag, as in a guest without CPU costs.
    let of = |free_host| ratio("[first]\n[second]\n", "none", free_host);
    assert!((0.8..1.25).contains(&of(false)), "{}", of(false));
    assert!(of(true) > 100.0, "{}", of(true));
}

#[test]
fn direct_and_buffered_io_to_one_file_see_the_same_data() {
    // The buffered writer leaves 16 MiB dirty in memory. The direct reader must find the data on
    // the disk, and the direct writer must not leave old pages in the cache.
    let job = "[global]\nfilename=data\nsize=16m\nbs=64k\n[buffered]\nrw=write\n[reader]\nstonewall\nrw=read\ndirect=1\n[writer]\nstonewall\nrw=write\ndirect=1\n[again]\nstonewall\nrw=read\ninvalidate=0\n";
    let result = run(job, "wd10ezrx", "none");
    let sectors = (16 << 20) / 512;
    assert_eq!(result.disk.write_sectors, 2 * sectors, "the dirty pages and the direct writes");
    assert_eq!(result.disk.read_sectors, 2 * sectors, "the direct reads, and the pages read again");
}

#[test]
fn dropping_the_caches_before_a_job_makes_it_read_from_the_disk() {
    let job = |prerun| {
        format!(
            "[global]\nfilename=data\nsize=64m\nbs=1m\nrw=read\ninvalidate=0\n[first]\n[second]\nstonewall\n{prerun}\n"
        )
    };
    let sectors = |prerun| run(&job(prerun), "wd10ezrx", "none").disk.read_sectors / 2048;
    assert_eq!(sectors(""), 64, "the second job finds everything in memory");
    assert_eq!(sectors("exec_prerun=echo 3 > /proc/sys/vm/drop_caches"), 128);
}

#[test]
fn fadvise_hint_changes_the_read_ahead() {
    let sectors = |hint| {
        let job = format!("[a]\nrw=randread\nbs=16k\nsize=1g\nio_size=2m\nfadvise_hint={hint}\n");
        run(&job, "wd10ezrx", "none").disk.read_sectors
    };
    assert_eq!(sectors("1"), (2 << 20) / 512, "random: what is asked for and nothing else");
    assert!(sectors("sequential") > sectors("1"), "{} sectors", sectors("sequential"));
}

#[test]
fn writes_to_a_partition_come_without_a_plug_and_merge_before_any_dispatch() {
    let merges = |scheduler, batch, partitions| {
        let job = format!(
            "[a]\nrw=write\nbs=64k\nsize=8m\ndirect=1\nioengine=libaio\niodepth=8\niodepth_batch={batch}\n"
        );
        let host = Host { partitions, ..Host::FREE };
        let experiment = Experiment::new(&job, "su800-128gb", scheduler);
        Experiment { host, ..experiment }.run().disk.write_merges
    };
    // In a file system each I/O has a plug of its own; its flush dispatches the request.
    assert_eq!(merges("mq-deadline", 1, false), 0);
    // Eight of 64 KiB become one of 512 KiB before the submitter sleeps.
    assert!(merges("mq-deadline", 1, true) > 0);
    assert_eq!(merges("none", 1, true), 0, "without an elevator the submitter dispatches");
    // More than two I/Os at once share a plug.
    assert!(merges("none", 8, true) > 0);
    assert_eq!(merges("none", 2, false), 0);
}

#[test]
fn a_reader_through_memory_is_not_locked_out_by_writeback() {
    // Writeback takes all requests, so readers often wait for one, and are woken together with the
    // flusher. They must not lose that race every time.
    let job = "[global]\nruntime=6\ntime_based\nsize=4g\nbs=1m\n[from]\nrw=read\n[to]\nrw=write\n";
    for host in [Host::new(&Host::settings()), Host::FREE] {
        for scheduler in ["none", "mq-deadline", "kyber"] {
            let experiment = Experiment::new(job, "wd10ezrx:ncq=off", scheduler);
            let run = Experiment { host, ..experiment }.run();
            let from = &run.jobs[0].read;
            // The disk moves about 700 MiB; a reader that always loses gets 12.
            assert!(from.bytes > 40 << 20, "{scheduler}: {} bytes", from.bytes);
            assert!(from.clat.max_ns < 2_000_000_000, "{scheduler}: {} ns", from.clat.max_ns);
        }
    }
}

#[test]
fn a_process_goes_on_one_interrupt_after_its_command_has_ended() {
    let job = "[a]\nrw=randread\ndirect=1\nfilename=/dev/disk\nnumjobs=3\nruntime=20\ntime_based\n";
    let host = Host { interrupt: Nanos(1_000), ..Host::FREE };
    for scheduler in ["none", "mq-deadline"] {
        let run = Experiment { host, ..Experiment::new(job, "constant", scheduler) }.run();
        // Of three that end at one time none waits for the interrupt of another.
        for job in &run.jobs {
            assert_eq!((job.read.clat.min_ns, job.read.clat.max_ns), (5_001_000, 5_001_000), "{scheduler}");
        }
        assert_eq!(run.disk.service_ns / run.disk.read_ios, 5_000_000, "the disk's own time");
    }
}

#[test]
fn a_process_whose_time_comes_during_an_interrupt_goes_on_after_those_that_it_wakes() {
    // The first one's command ends, the second one waits for its tag. Then the third one wants it, when it starts or
    // when it has worked.
    let job = "[global]\nrw=read\nbs=4k\nio_size=4k\ndirect=1\nfilename=/dev/disk\n\
               [1]\n[2]\nstartdelay=500us\n[3]\nstartdelay=1050us\n";
    for submit in [Nanos::ZERO, Nanos(60_000)] {
        let host = Host { interrupt: Nanos(100_000), submit, ..Host::FREE };
        let disk = "constant:service_us=1000,queue_depth=1,transport=nvme";
        let run = Experiment { host, ..Experiment::new(job, disk, "none") }.run();
        let ends = |job: usize, start: u64| start + run.jobs[job].read.lat.max_ns;
        assert!(ends(1, 500_000) < ends(2, 1_050_000), "it works for {submit:?}");
    }
}

#[test]
fn a_direct_writers_fdatasync_writes_what_others_have_in_the_page_cache_of_its_file() {
    let job = |syncs: u32| {
        format!(
            "[global]\nfilename=/dev/disk\nrw=write\n[cached]\nbs=64k\nio_size=1m\n\
             [direct]\ndirect=1\nbs=4k\noffset=1g\nio_size=4k\nfdatasync={syncs}\nstartdelay=100ms\n"
        )
    };
    let written = |syncs| Experiment::new(&job(syncs), "su800-128gb", "none").run().disk.write_sectors;
    assert_eq!([written(0), written(1)], [8, 2048 + 8]);
}
