//! CFQ's known effects, on the modelled disks: idling makes distant readers fast, priorities share
//! the disk's time, asynchronous writes yield to synchronous I/O.

mod common;
#[path = "common/side_by_side.rs"]
mod side_by_side;

use side_by_side::{DISK, THREE, mb_s, read_mb_s, readers, run};

/// Their total throughput if each had the disk for a third of the time.
fn alone_mb_s(disk: &str) -> f64 {
    THREE.iter().map(|place| read_mb_s(&run(&readers(&[*place]), disk, "noop"))).sum::<f64>() / 3.0
}

#[test]
fn three_distant_readers_get_almost_the_whole_disk_under_cfq_and_a_small_part_without_idling() {
    let whole = alone_mb_s(DISK);
    let part = |scheduler| read_mb_s(&run(&readers(&THREE), DISK, scheduler)) / whole;
    assert!(part("cfq") > 0.75, "{} of {whole} MB/s under cfq", part("cfq"));
    for scheduler in ["noop", "none", "deadline", "mq-deadline", "cfq:slice_idle=0"] {
        let part = part(scheduler);
        assert!(part < 0.1, "{part} of {whole} MB/s under {scheduler}");
    }
}

#[test]
fn the_longer_the_slice_the_nearer_to_the_whole_disk() {
    let whole = alone_mb_s(DISK);
    let part = |slice| {
        let scheduler = format!("cfq:low_latency=0,slice_sync={slice}");
        read_mb_s(&run(&readers(&THREE), DISK, &scheduler)) / whole
    };
    let parts = [20, 100, 500].map(part);
    assert!(parts.is_sorted() && parts[0] < 0.7 && parts[2] > 0.93, "{parts:?} of the disk");
}

#[test]
fn levels_share_the_disk_by_their_slices() {
    let pair = [(0, "prioclass=2 prio=0"), (1, "prioclass=2 prio=7")];
    let ratio = |scheduler| {
        let result = run(&readers(&pair), DISK, scheduler);
        mb_s(&result.jobs[0]) / mb_s(&result.jobs[1])
    };
    // Slices of 180 and 40 ms.
    let found = ratio("cfq");
    assert!((found / 4.5 - 1.0).abs() < 0.1, "{found} to one");
    let found = ratio("deadline");
    assert!((found - 1.0).abs() < 0.05, "{found} to one although deadline knows no levels");
}

#[test]
fn a_reader_of_the_idle_class_leaves_the_disk_to_others() {
    let both = |scheduler| {
        let result = run(&readers(&[(0, ""), (40, "prioclass=3")]), DISK, scheduler);
        (mb_s(&result.jobs[0]), mb_s(&result.jobs[1]))
    };
    let (reader, idle) = both("cfq");
    assert!(idle < reader / 50.0, "{reader} MB/s beside {idle}");
    let (disturbed, equal) = both("deadline");
    assert!(reader > 10.0 * disturbed, "{reader} MB/s, under deadline {disturbed} beside {equal}");
}

#[test]
fn an_occasional_reader_waits_less_for_writeback() {
    let job = "[global]\nfilename=/dev/disk\nruntime=30\ntime_based\n\
               [writer]\nrw=randwrite\nbs=4k\nsize=100g\noffset=50%\n\
               [reader]\nrw=randread\nbs=4k\ndirect=1\nsize=10g\nthinktime=20000\n";
    // Without a write cache: one that is full has the arm for half of the time, whatever is sent.
    let uncached = format!("{DISK}:write_cache=false");
    let reads = |scheduler| {
        let read = run(job, &uncached, scheduler).jobs[1].read.clone();
        (read.ios, read.clat.max_ns as f64 / 1e6)
    };
    let (ios, longest_ms) = reads("cfq");
    for other in ["deadline", "noop"] {
        let (others, other_ms) = reads(other);
        assert!(ios > 3 * others, "{ios} reads, under {other} {others}");
        assert!(longest_ms * 3.0 < other_ms, "waited {longest_ms} ms, under {other} {other_ms}");
    }
}

/// An fsync waits for the turns of the readers: about one round of `target_latency`.
#[test]
fn fsync_beside_three_readers_waits_for_a_round_and_leaves_them_the_disk() {
    let log = "[log]\nrw=write\nbs=4k\noffset=0\nsize=1g\ndirect=0\nfsync=1\n";
    let job = readers(&[(20, ""), (40, ""), (60, "")]) + log;
    let run = |scheduler| {
        let result = run(&job, DISK, scheduler);
        let log = &result.jobs[3];
        let reads: f64 = result.jobs[..3].iter().map(mb_s).sum();
        (reads, log.write.runtime_ns as f64 / 1e6 / log.write.ios as f64)
    };
    let (reads, each_ms) = run("cfq");
    assert!((250.0..500.0).contains(&each_ms), "{each_ms} ms for each write and its fsync");
    let (others, other_ms) = run("deadline");
    assert!(reads > 10.0 * others && each_ms > 5.0 * other_ms, "{reads}, {others} MB/s; {other_ms} ms");
}

#[test]
fn flash_that_takes_commands_in_a_queue_loses_nothing_under_cfq() {
    let job = "[global]\nrw=randread\nbs=4k\ndirect=1\nfilename=/dev/disk\nruntime=5\ntime_based\n\
               [readers]\nnumjobs=4\nioengine=libaio\niodepth=8\n";
    let rate = |scheduler| read_mb_s(&run(job, "su800-128gb", scheduler));
    let noop = rate("noop");
    for scheduler in ["cfq", "cfq:slice_idle=8"] {
        let part = rate(scheduler) / noop;
        assert!((part - 1.0).abs() < 0.03, "{part} of noop's {noop} MB/s under {scheduler}");
    }
}
