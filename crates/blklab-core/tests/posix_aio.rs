//! POSIX AIO as in glibc: one request per file at a time, twenty files at a time.

mod common;

use blklab_core::result::RunResult;
use common::Experiment;

/// Random reads of 4 KiB at depth 64 from `files` files of 8 MiB.
fn job(engine: &str, files: u32, more: &str) -> String {
    format!(
        "[a]\nrw=randread\nioengine={engine}\niodepth=64\nfilesize=8m\nsize={}m\nnrfiles={files}\nio_size=4m\n{more}\n",
        8 * files
    )
}

fn run(job: &str) -> RunResult {
    Experiment::new(job, "su800-128gb:queue_depth=32", "none").free_host().run()
}

fn iops(result: &RunResult) -> f64 {
    result.jobs.iter().map(|job| job.read.ios as f64 / job.read.runtime_ns as f64 * 1e9).sum()
}

#[test]
fn requests_for_one_file_are_served_one_after_another() {
    let aio = run(&job("posixaio", 1, "direct=1"));
    assert_eq!(aio.disk.depth_max, 1);
    let [deep] = aio.jobs.as_slice() else { panic!("one job") };
    assert!(deep.depth_levels[6] > deep.read.ios * 9 / 10, "63 wait: {:?}", deep.depth_levels);
    let gain = iops(&aio) / iops(&run(&job("psync", 1, "direct=1")));
    assert!((0.95..1.2).contains(&gain), "{gain} times as fast as psync");
}

#[test]
fn so_many_files_are_served_at_a_time_but_never_more_than_twenty() {
    for (files, at_a_time) in [(2, 2), (8, 8), (20, 20), (30, 20)] {
        let result = run(&job("posixaio", files, "direct=1"));
        assert_eq!(result.disk.depth_max, at_a_time, "{files} files");
        assert_eq!(result.jobs[0].read.bytes, 4 << 20);
    }
}

#[test]
fn two_processes_have_threads_of_their_own() {
    let result = run(&job("posixaio", 1, "direct=1\nnumjobs=2"));
    assert_eq!(result.disk.depth_max, 2);
    assert_eq!(result.jobs.len(), 2);
    let of = |process| result.detail.process.iter().filter(|by| **by == process).count();
    assert!(of(0) > 500 && of(1) > 500, "{} and {}", of(0), of(1));
    assert_eq!(of(0) + of(1), result.detail.process.len(), "threads count as their process");
}

#[test]
fn buffered_io_does_not_keep_the_process_from_asking_for_more() {
    let depth = |engine, files| run(&job(engine, files, "")).disk.depth_max;
    assert_eq!(depth("libaio", 4), 1, "the kernel's own blocks");
    assert_eq!(depth("posixaio", 1), 1);
    assert_eq!(depth("posixaio", 4), 4);
}

#[test]
fn a_file_read_in_order_is_read_ahead_whichever_thread_is_at_it() {
    let job = "[a]\nrw=read\nioengine=posixaio\niodepth=8\nfilesize=4m\nsize=120m\nnrfiles=30\n";
    let result = run(job);
    assert_eq!(result.disk.read_sectors * 512, 120 << 20, "every byte once");
    let mean = result.disk.read_sectors / result.disk.read_ios;
    assert!(mean > 128, "windows of {mean} sectors");
}

#[test]
fn fsync_waits_for_the_writes_before_it() {
    let job = "[a]\nrw=write\nioengine=posixaio\niodepth=16\nsize=1m\nnrfiles=4\nfsync=8\ndirect=1\n";
    let result = run(job);
    let [write] = result.jobs.as_slice() else { panic!("one job") };
    assert_eq!(write.write.ios, 256);
    assert_eq!(write.sync_lat.count, 32);
    assert_eq!(result.disk.flush_ios, 32);
}

#[test]
fn a_cache_hit_of_a_thread_is_reaped_at_once() {
    let job = "[global]\nfilename=data\nsize=4m\ninvalidate=0\n[warm]\nrw=read\n\
               [hot]\nstonewall\nrw=randread\nioengine=posixaio\niodepth=16\n";
    let result = Experiment::new(job, "su800-128gb", "none").run();
    let [_, hot] = result.jobs.as_slice() else { panic!("two jobs") };
    assert_eq!(result.disk.read_sectors * 512, 4 << 20, "read once, by the first job");
    assert!(
        hot.depth_levels[4] > hot.read.ios * 9 / 10,
        "one done, one more asked for: {:?}",
        hot.depth_levels
    );
    // One thread serves sixteen in turn, each in about 1.1 us.
    let clat_us = hot.read.clat.mean_ns / 1e3;
    assert!((15.0..20.0).contains(&clat_us), "{clat_us} us");
}
