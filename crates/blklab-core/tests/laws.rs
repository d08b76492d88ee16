//! Properties of every run, for any workload, disk and scheduler.

mod common;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use blklab_core::engine::{HORIZON, RunError};
use blklab_core::recorder::Window;
use blklab_core::result::{DiskCounters, DiskTrace, RunResult};
use blklab_core::units::Nanos;
use common::Experiment;
use proptest::prelude::*;

const SCHEDULERS: &[&str] = &[
    "none",
    "noop",
    "deadline",
    "mq-deadline",
    "mq-deadline:fifo_batch=1,front_merges=0",
    "kyber",
    "cfq",
    "cfq:slice_idle=0,low_latency=0,quantum=32",
    "bfq",
    "bfq:slice_idle=0,low_latency=0",
    "bfq:strict_guarantees=1,nr_requests=8",
    "bfq-2008",
    "bfq-2008:quantum=32,slice_idle=0",
    "cfq-2008",
    "cfq-2008:quantum=32,slice_idle=0",
    "none:nr_requests=4",
    "mq-deadline:nr_requests=8,max_sectors_kb=64",
];

const DISKS: &[&str] = &["wd10ezrx", "st3320620as:ncq=off", "su800-128gb", "950pro-256gb", "optane-900p"];

/// A job file of one to three direct jobs that end by size.
fn direct_jobs() -> impl Strategy<Value = String> {
    let job = (
        prop::sample::select(vec!["read", "write", "randread", "randwrite", "rw", "randrw"]),
        prop::sample::select(vec!["4k", "8k", "64k", "4k-32k", "256k", "2m"]),
        prop::sample::select(vec!["psync", "libaio", "posixaio"]),
        1..40_u32,
        1..4_u32,
        prop::sample::select(vec![
            "",
            "fsync=8",
            "prio=2\nprioclass=1",
            "prioclass=3",
            "rate_iops=500",
            "thinktime=200",
        ]),
    );
    prop::collection::vec(job, 1..4).prop_map(|jobs| {
        let mut text = String::from("[global]\ndirect=1\nfilename=data\nsize=64m\nio_size=4m\n");
        for (index, (rw, bs, engine, depth, clones, extra)) in jobs.iter().enumerate() {
            let size = if bs.contains('-') { "bsrange" } else { "bs" };
            text += &format!(
                "[job{index}]\nrw={rw}\n{size}={bs}\nioengine={engine}\niodepth={depth}\nnumjobs={clones}\n{extra}\n"
            );
        }
        text
    })
}

/// A job file of one to three jobs that write through the page cache, some with pauses of each kind, and end
/// when all is on the disk. Each pass drops its file's pages.
fn buffered_jobs() -> impl Strategy<Value = String> {
    let job = (
        prop::sample::select(vec!["write", "randwrite", "rw", "randrw"]),
        prop::sample::select(vec!["16k", "64k", "1m"]),
        1..20_u32,
        prop::sample::select(vec![
            "",
            "fsync=16",
            "fdatasync=5",
            "rate_iops=300",
            "thinktime=3000",
            "direct=1\nioengine=libaio\niodepth=4",
        ]),
    );
    prop::collection::vec(job, 1..4).prop_map(|jobs| {
        let mut text = String::from("[global]\nend_fsync=1\nruntime=400ms\ntime_based\n");
        for (index, (rw, bs, mib, extra)) in jobs.iter().enumerate() {
            text += &format!("[job{index}]\nrw={rw}\nbs={bs}\nsize={mib}m\n{extra}\n");
        }
        text
    })
}

/// The longest time for which a request waits and the disk has none.
fn idle_beside_a_request(trace: &DiskTrace) -> i64 {
    let changes = |times: &[i64], waiting: i64, in_flight: i64| {
        times.iter().map(move |&at| (at, waiting, in_flight)).collect::<Vec<_>>()
    };
    let mut all = changes(&trace.queued_ns, 1, 0);
    all.extend(changes(&trace.issued_ns, -1, 1));
    all.extend(changes(&trace.completed_ns, 0, -1));
    all.sort_by_key(|&(at, ..)| at);
    let (mut waiting, mut in_flight, mut longest) = (0, 0, 0);
    for pair in all.windows(2) {
        waiting += pair[0].1;
        in_flight += pair[0].2;
        if waiting > 0 && in_flight == 0 {
            longest = longest.max(pair[1].0 - pair[0].0);
        }
    }
    longest
}

fn all_ticks(disk: &DiskCounters) -> u64 {
    disk.read_ticks_ns + disk.write_ticks_ns + disk.flush_ticks_ns + disk.discard_ticks_ns
}

fn job_bytes(result: &RunResult) -> (u64, u64) {
    result.jobs.iter().fold((0, 0), |(read, write), job| (read + job.read.bytes, write + job.write.bytes))
}

/// The maximum of commands in flight, from the trace.
fn in_flight_max(trace: &DiskTrace) -> i64 {
    let begins = trace.issued_ns.iter().map(|&at| (at, 1));
    let ends = trace.completed_ns.iter().map(|&at| (at, -1));
    let mut changes: Vec<_> = begins.chain(ends).collect();
    changes.sort_unstable();
    changes
        .iter()
        .scan(0, |depth, (_, change)| {
            *depth += change;
            Some(*depth)
        })
        .max()
        .unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_byte_is_moved_once_and_times_add_up(
        job in direct_jobs(),
        disk in prop::sample::select(DISKS),
        scheduler in prop::sample::select(SCHEDULERS),
        seed: u64,
        free: bool,
    ) {
        let experiment = Experiment { seed, ..Experiment::new(&job, disk, scheduler) };
        let experiment = if free { experiment.free_host() } else { experiment };
        let result = experiment.run();
        let counters = &result.disk;
        let (read, write) = job_bytes(&result);

        // No request is lost or served twice; merges and splits keep every byte.
        prop_assert_eq!(read, counters.read_sectors * 512);
        prop_assert_eq!(write, counters.write_sectors * 512);

        // Little's law: the integral of the number in the queue is the sum of the queue times.
        prop_assert_eq!(counters.in_queue_ns, all_ticks(counters) + counters.joined_ns);
        prop_assert_eq!(counters.in_flight_ns, counters.service_ns);

        // The utilisation law's bounds: the disk is busy at most while there is work, and there is
        // work at most for the length of the run.
        prop_assert!(counters.io_ticks_ns <= result.duration_ns);
        prop_assert!(counters.in_queue_ns >= counters.io_ticks_ns);

        // Each histogram has all of its direction's I/Os.
        for job in &result.jobs {
            for direction in [&job.read, &job.write] {
                let counted: i64 = direction.clat_hist.count.iter().sum();
                prop_assert_eq!(counted as u64, direction.ios);
                prop_assert!(direction.clat.max_ns <= result.duration_ns);
            }
        }

        // The disk never has more commands than it takes.
        let limits = common::disk(disk).limits().clone();
        let depth = i64::from(limits.queue_depth) * i64::from(limits.hw_queues.min(4));
        prop_assert!(in_flight_max(&result.detail) <= depth);
    }

    // 200 ms is what cfq and bfq-2008 keep the disk idle for before they serve the idle class.
    #[test]
    fn no_request_waits_for_long_beside_an_idle_disk(
        job in buffered_jobs(),
        disk in prop::sample::select(DISKS),
        scheduler in prop::sample::select(SCHEDULERS),
        throttled: bool,
        dirty_kib in prop::sample::select(vec![512_i64, 4096, 1 << 20]),
    ) {
        let scheduler = match throttled || scheduler.contains(':') {
            true => scheduler.to_owned(),
            false => format!("{scheduler}:wbt_lat_usec=0"),
        };
        let mut experiment = Experiment::new(&job, disk, &scheduler);
        experiment.memory.insert("dirty_bytes", dirty_kib << 10);
        let whole = Window { from: Nanos::ZERO, until: HORIZON, requests: 100_000 };
        let result = experiment.run_and_keep(whole);
        prop_assert_eq!(result.detail_left_out, 0);
        let idle = idle_beside_a_request(&result.detail);
        prop_assert!(idle <= 200_000_000, "{} ms", idle / 1_000_000);
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes(
        job in direct_jobs(),
        disk in prop::sample::select(DISKS),
        scheduler in prop::sample::select(SCHEDULERS),
        seed: u64,
    ) {
        let run = || format!("{:?}", Experiment { seed, ..Experiment::new(&job, disk, scheduler) }.run());
        prop_assert!(run() == run());
    }
}

#[test]
fn another_seed_gives_another_run() {
    let job = "[a]\nrw=randread\ndirect=1\nsize=1g\nio_size=1m\n";
    let run = |seed| Experiment { seed, ..Experiment::new(job, "wd10ezrx", "none") }.run();
    assert_ne!(run(1).detail.sector, run(2).detail.sector);
}

/// One process works past the horizon while an I/O of another is in flight until after it.
#[test]
fn a_run_ends_when_work_and_the_next_event_end_beyond_the_horizon() {
    const START_S: u64 = 100 * 365 * 86_400;
    // Three reads of 5 ms each, with two pauses between them; then 1 ms is left.
    let pause_us = (HORIZON.0 / 1000 - START_S * 1_000_000 - 16_000) / 2;
    let later_us = pause_us + 1000;
    let job = format!(
        "[global]\nrw=randread\nsize=1m\ndirect=1\nstartdelay={START_S}\n\
         [works]\nthinktime={pause_us}\nthinktime_spin=1s\n\
         [reads]\nthinktime={later_us}\n"
    );
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(Experiment::new(&job, "constant", "none").outcome().map(drop)));
    let outcome = receiver.recv_timeout(Duration::from_secs(60)).expect("the run comes to an end");
    assert_eq!(outcome, Err(RunError::Endless));
}

#[test]
fn a_writer_that_never_sleeps_leaves_the_cpu_to_the_worker_after_it_has_dropped_its_pages() {
    let job = "[a]\nrw=write\nbs=64k\nsize=20m\nruntime=1\ntime_based\nend_fsync=1\n";
    for scheduler in ["mq-deadline:wbt_lat_usec=0", "kyber:wbt_lat_usec=0", "bfq"] {
        let whole = Window { from: Nanos::ZERO, until: HORIZON, requests: 100_000 };
        let result = Experiment::new(job, "wd10ezrx", scheduler).run_and_keep(whole);
        assert!(idle_beside_a_request(&result.detail) < 20_000_000, "{scheduler}");
    }
}
