//! BFQ's known effects, on the modelled disks: idling makes distant readers fast at the expense of
//! processes that sync often; a program that starts is fast beside heavy writers.

mod common;
#[path = "common/side_by_side.rs"]
mod side_by_side;

use side_by_side::{DISK, THREE, mb_s, read_mb_s, readers, run};

#[test]
fn three_distant_readers_get_almost_the_whole_disk_and_a_small_part_without_idling() {
    // Their total throughput if each had the disk for a third of the time.
    let whole =
        THREE.iter().map(|place| read_mb_s(&run(&readers(&[*place]), DISK, "none"))).sum::<f64>() / 3.0;
    let part = |scheduler| read_mb_s(&run(&readers(&THREE), DISK, scheduler)) / whole;
    let fair = part("bfq:low_latency=0");
    assert!(fair > 0.8, "{fair} of {whole} MB/s");
    // Readers that start together all count as interactive, and the disk does not idle among equal
    // raised queues.
    for scheduler in ["none", "mq-deadline", "bfq:low_latency=0,slice_idle=0", "bfq"] {
        let part = part(scheduler);
        assert!(part < 0.1, "{part} of {whole} MB/s under {scheduler}");
    }
}

#[test]
fn a_longer_turn_comes_nearer_to_the_whole_disk() {
    let part = |timeout| {
        let scheduler = format!("bfq:low_latency=0,timeout_sync={timeout}");
        read_mb_s(&run(&readers(&THREE), DISK, &scheduler))
    };
    let parts = [30, 125, 500].map(part);
    assert!(parts.is_sorted() && parts[2] > 1.4 * parts[0], "{parts:?} MB/s");
}

#[test]
fn sectors_are_shared_by_priority_level_and_time_is_not() {
    let pair = [(0, "prioclass=2 prio=1"), (60, "prioclass=2 prio=6")];
    let result = run(&readers(&pair), DISK, "bfq:low_latency=0");
    let [high, low] = [0, 1].map(|index| mb_s(&result.jobs[index]));
    // Weights of 70 and 20, although the second reads from slower tracks.
    assert!((high / low / 3.5 - 1.0).abs() < 0.1, "{high} to {low} MB/s");
}

/// The readers of the study's part about shares: weights of 20, 20 and 40, at both ends of the
/// disk.
#[test]
fn a_process_too_slow_for_its_budget_pays_for_time_and_ends_later_unless_budgets_are_small() {
    let job = "[global]\nrw=read\nbs=256k\ndirect=1\nfilename=/dev/disk\nprioclass=2\n\
               [outer]\noffset=0\nsize=64m\nprio=6\n\
               [inner]\noffset=290g\nsize=64m\nprio=6\n\
               [double]\noffset=10g\nsize=128m\nprio=4\n";
    let ends = |scheduler| {
        // The study's own statement about shares; a shorter stroke lets all of them end earlier.
        let result = run(job, "st3320620as:ncq=false,seek_full_stroke_ms=17", scheduler);
        let ends = [0, 1, 2].map(|index| result.jobs[index].end_ns as f64);
        let last = ends.into_iter().fold(0.0, f64::max);
        (ends.into_iter().fold(last, f64::min) / last, last == ends[1])
    };
    // In 125 ms the inner tracks give 4.75 MiB: less than two thirds of 8 MiB.
    let (first, inner_is_last) = ends("bfq:low_latency=0");
    assert!(first < 0.87 && inner_is_last, "{first}");
    let (first, _) = ends("bfq:low_latency=0,max_budget=8192");
    assert!(first > 0.95, "{first}");
}

#[test]
fn cgroups_share_sectors_by_weight_whatever_is_in_them() {
    let job = "[global]\nrw=read\nbs=128k\ndirect=1\nfilename=/dev/disk\nsize=10g\nruntime=20\ntime_based\n\
               [light]\ncgroup=light\ncgroup_weight=100\nnumjobs=3\noffset_increment=10%\n\
               [heavy]\noffset=60%\ncgroup=heavy\ncgroup_weight=300\n";
    let result = run(job, DISK, "bfq:low_latency=0");
    let light: f64 = result.jobs[..3].iter().map(mb_s).sum();
    let heavy = mb_s(&result.jobs[3]);
    assert!((heavy / light / 3.0 - 1.0).abs() < 0.15, "{heavy} to {light} MB/s");
}

#[test]
fn a_process_that_syncs_after_every_write_pays_for_the_idling_for_readers() {
    let job = "[global]\nfilename=/dev/disk\nruntime=20\ntime_based\n\
               [syncs]\nrw=randwrite\nbs=4k\nsize=10g\noffset=50%\nfsync=1\n\
               [readers]\nrw=read\nbs=128k\ndirect=1\nsize=20g\nnumjobs=2\noffset_increment=20%\n";
    let both = |scheduler| {
        let result = run(job, DISK, scheduler);
        (result.jobs[0].write.ios, result.jobs[1..].iter().map(mb_s).sum::<f64>())
    };
    let (writes, read) = both("bfq:low_latency=0");
    let (writes_there, read_there) = both("mq-deadline");
    assert!(writes * 2 < writes_there, "{writes} writes, {writes_there} under mq-deadline");
    assert!(read > 10.0 * read_there, "{read} MB/s, {read_there} under mq-deadline");
}

#[test]
fn on_flash_without_idling_and_raising_it_comes_close_to_mq_deadline() {
    let job = "[global]\nrw=randread\nbs=4k\ndirect=1\nfilename=/dev/disk\nruntime=2\ntime_based\n\
               [readers]\nnumjobs=4\nioengine=libaio\niodepth=8\noffset_increment=10%\n";
    for disk in ["su800-128gb", "950pro-256gb"] {
        let rate = |scheduler| read_mb_s(&run(job, disk, scheduler));
        let part = rate("bfq:low_latency=0,slice_idle=0") / rate("mq-deadline");
        assert!((part - 1.0).abs() < 0.03, "{part} on {disk}");
    }
}

#[test]
fn a_program_that_starts_beside_heavy_writers_reads_its_files_fast() {
    let job = "[global]\nfilename=/dev/disk\ndirect=1\n\
               [writers]\nrw=write\nbs=512k\nsize=20g\nnumjobs=4\noffset_increment=15%\nioengine=libaio\niodepth=8\n\
               runtime=20\ntime_based\n\
               [starts]\nrw=randread\nbs=16k\nsize=4g\noffset=90%\nio_size=8m\nstartdelay=10\n";
    // Without a write cache: one that is full has the arm for half of the time, whatever is sent.
    let uncached = format!("{DISK}:write_cache=false");
    let seconds = |scheduler| {
        let result = run(job, &uncached, scheduler);
        result.jobs[4].read.runtime_ns as f64 / 1e9
    };
    let raised = seconds("bfq");
    for other in ["bfq:low_latency=0", "none", "mq-deadline"] {
        let others = seconds(other);
        assert!(others > 2.5 * raised, "{raised} s, {others} s under {other}");
    }
}
