//! What Linux 4.12.4 was seen to do, in user mode on a disk of `scsi_debug` on which every command
//! takes the same time: jobs of our own of the same kind, on the same host.

mod common;

use blklab_core::host::Host;
use blklab_core::kernel::Kernel;
use blklab_core::recorder::Window;
use blklab_core::result::{JobResult, RunResult};
use blklab_core::ticks::Ticks;
use blklab_core::units::Nanos;
use common::Experiment;

const DISK: &str = "constant:service_us=5000,queue_depth=1,max_hw_sectors_kib=512";

/// Direct I/O of these jobs for 10 s, after options for all of them; a job is its options, with
/// blanks between.
fn run(common: &str, jobs: &[&str], scheduler: &str, disk: &str) -> RunResult {
    let mut text = format!("[global]\nfilename=sda\ndirect=1\nruntime=10\ntime_based\n{common}\n");
    for (number, job) in jobs.iter().enumerate() {
        text += &format!("[{number}]\noffset={}g\nsize=9g\n{}\n", 10 * number, job.replace(' ', "\n"));
    }
    let mut experiment = Experiment::new(&text, disk, scheduler);
    experiment.host = Host {
        cpus: 1,
        ticks: Ticks::per_second(100),
        clock: Nanos(256),
        drain_at_once: true,
        probe_on_close: true,
        partitions: true,
        kernel: Kernel::of(4_012),
        ..Host::FREE
    };
    experiment.run_and_keep(Window { from: Nanos::ZERO, until: Nanos::NEVER, requests: 2_000 })
}

fn iops(job: &JobResult) -> f64 {
    job.read.ios as f64 / job.read.runtime_ns as f64 * 1e9
}

fn all_iops(result: &RunResult) -> Vec<f64> {
    result.jobs.iter().map(iops).collect()
}

fn is_near(found: f64, expected: f64) -> bool {
    (found / expected - 1.0).abs() < 0.02
}

#[test]
fn a_process_of_fio_reads_the_clock_for_1280_ns_between_two_reads() {
    let result = run("rw=read\nbs=64k", &[""], "noop", DISK);
    let ends = &result.detail.completed_ns;
    assert!(ends.windows(2).all(|pair| pair[1] - pair[0] == 5_001_280), "{:?}", &ends[..5]);
    assert_eq!(result.jobs[0].read.clat.max_ns, 5_000_256);
}

#[test]
fn three_sequential_readers_have_the_disk_for_100_ms_in_turn_and_wait_215_ms_at_most() {
    let result = run("rw=read\nbs=64k", &[""; 3], "cfq", DISK);
    for job in &result.jobs {
        let longest_ms = job.read.clat.max_ns as f64 / 1e6;
        assert!(is_near(longest_ms, 215.05) && is_near(iops(job), 66.6), "{longest_ms} ms, {}", iops(job));
    }
    // noop takes the requests in turn.
    assert!(run("rw=read\nbs=64k", &[""; 3], "noop", DISK).jobs[0].read.clat.max_ns < 25_000_000);
}

#[test]
fn levels_0_4_and_7_share_by_slices_of_180_100_and_40_ms_if_they_read_in_order_and_not_if_at_random() {
    let levels = ["prioclass=2 prio=0", "prioclass=2 prio=4", "prioclass=2 prio=7", "prioclass=3"];
    let found = all_iops(&run("rw=read\nbs=64k", &levels, "cfq", DISK));
    for (found, expected) in found.iter().zip([114.0, 66.0, 19.0]) {
        assert!((found / expected - 1.0).abs() < 0.04, "{found} IOPS, {expected} expected");
    }
    let random = run("rw=randread\nbs=4k", &levels, "cfq", DISK);
    for job in &random.jobs[..3] {
        assert!((65.0..70.0).contains(&iops(job)), "{}", iops(job));
    }
    let idle = random.jobs[3].read.ios;
    assert!((1..=4).contains(&idle), "{idle} reads of the idle class in 10 s");
}

#[test]
fn a_real_time_reader_takes_95_percent_and_leaves_the_others_some() {
    let jobs = ["rw=randread bs=4k prioclass=1 prio=4", "rw=read bs=64k", "rw=randread bs=4k"];
    let [real_time, others @ ..] = &all_iops(&run("", &jobs, "cfq", DISK))[..] else { panic!("three jobs") };
    assert!(is_near(*real_time, 190.0), "{real_time}");
    assert!(others.iter().all(|other| (4.0..5.5).contains(other)), "{others:?}");
}

#[test]
fn a_disk_that_serves_32_at_once_is_kept_idle_for_sequential_readers() {
    let disk = "constant:service_us=5000,queue_depth=32";
    let each = |scheduler| all_iops(&run("rw=read\nbs=64k", &[""; 3], scheduler, disk));
    assert!(each("cfq").iter().all(|&one| is_near(one, 66.6)));
    assert!(each("noop").iter().all(|&one| is_near(one, 199.9)));
}

#[test]
fn random_processes_with_nothing_waiting_share_a_parallel_disk_without_idling() {
    // The scheduler was set up long before the run: the first pause of a service tree is a long one,
    // and so the first processes preempt each other.
    let disk = "constant:service_us=5000,queue_depth=32";
    let result = run("rw=randread\nbs=4k\nioengine=libaio\niodepth=8", &[""; 4], "cfq", disk);
    assert!(all_iops(&result).iter().all(|&one| is_near(one, 1_600.0)), "{:?}", all_iops(&result));
}

#[test]
fn direct_writers_keep_a_reader_waiting_for_their_batches_under_deadline() {
    let jobs = ["rw=randwrite bs=4k ioengine=libaio iodepth=8"; 2];
    let jobs = [jobs[0], jobs[1], "rw=randread bs=4k"];
    let reader = |scheduler| iops(&run("", &jobs, scheduler, DISK).jobs[2]);
    let found = reader("deadline");
    assert!((15.0..17.5).contains(&found), "{found} IOPS; 16.6 on Linux");
    let found = reader("deadline:fifo_batch=1");
    assert!(is_near(found, 66.7), "{found} IOPS; 66.7 on Linux");
}

#[test]
fn of_processes_that_wake_at_one_time_the_one_that_began_first_is_first() {
    // Those with long pauses begin first. An arrival goes before all that wait, if it is the first of its 5 ms.
    let jobs = [["thinktime=12000"; 4], ["thinktime=2000"; 4]].concat();
    let found = all_iops(&run("rw=read\nbs=64k", &jobs, "cfq:slice_idle=0", DISK));
    let (long, short) = found.split_at(4);
    assert!(long.iter().all(|&one| is_near(one, 39.9)), "{long:?}; 39.8 to 40.0 on Linux");
    assert!((short.iter().sum::<f64>() / 40.7 - 1.0).abs() < 0.05, "{short:?}; 40.7 in all on Linux");
}

#[test]
fn a_reader_that_wakes_takes_the_cpu_from_one_that_reads_the_clock_until_its_pause_ends() {
    // The reader's request is then queued first, and the other process's read waits for two requests.
    let jobs = ["rw=randread bs=4k", "rw=read bs=64k", "rw=randread bs=4k thinktime=30000"];
    let found = iops(&run("", &jobs, "noop", DISK).jobs[2]);
    assert!(is_near(found, 22.2), "{found} IOPS; 22.23 on Linux");
}

/// Requests and merges of 6,144 sequential I/Os of 4 KiB, 64 in flight, on a disk of 88 us.
fn merging(rw: &str, scheduler: &str, depth: u32) -> (u64, u64) {
    let disk = format!("constant:service_us=88,queue_depth={depth},max_hw_sectors_kib=512");
    let mut text = String::from("[global]\nfilename=sda\ndirect=1\nbs=4k\nsize=24m\n");
    text += &format!("ioengine=libaio\niodepth=64\nrw={rw}\n[0]\n");
    let mut experiment = Experiment::new(&text, &disk, scheduler);
    experiment.host = Host {
        cpus: 1,
        ticks: Ticks::per_second(100),
        clock: Nanos(256),
        partitions: true,
        kernel: Kernel::of(4_012),
        ..Host::FREE
    };
    let disk = experiment.run().disk;
    (disk.read_ios + disk.write_ios, disk.read_merges + disk.write_merges)
}

#[test]
fn the_multi_queue_schedulers_of_4_12_merge_nothing_on_a_full_disk_and_the_single_queue_ones_do() {
    for rw in ["read", "write"] {
        for depth in [31, 1] {
            for scheduler in ["none", "mq-deadline", "kyber", "bfq"] {
                assert_eq!(merging(rw, scheduler, depth), (6_144, 0), "{scheduler}, {rw}, {depth} at once");
            }
        }
        for scheduler in ["noop", "deadline", "cfq"] {
            assert_eq!(merging(rw, scheduler, 31), (4_098, 2_046), "{scheduler}, {rw}");
            assert_eq!(merging(rw, scheduler, 1), (288, 5_856), "{scheduler}, {rw}");
        }
    }
}
