//! Sequential readers side by side and their throughput: for the tests of fair schedulers.

use blklab_core::result::{JobResult, RunResult};

use crate::common::Experiment;

pub const DISK: &str = "wd10ezrx";

/// One run.
pub fn run(job: &str, disk: &str, scheduler: &str) -> RunResult {
    Experiment::new(job, disk, scheduler).run()
}

/// A job's read throughput.
pub fn mb_s(job: &JobResult) -> f64 {
    job.read.bytes as f64 / job.read.runtime_ns as f64 * 1e3
}

/// The read throughput of all jobs.
pub fn read_mb_s(result: &RunResult) -> f64 {
    result.jobs.iter().map(mb_s).sum()
}

/// Sequential readers at these places of the disk, in percent, each with its own options.
pub fn readers(places: &[(u32, &str)]) -> String {
    let global =
        "[global]\nrw=read\nbs=128k\ndirect=1\nfilename=/dev/disk\nsize=20g\nruntime=20\ntime_based\n";
    let job = |(index, (place, options)): (usize, &(u32, &str))| {
        format!("[reader{index}]\noffset={place}%\n{}\n", options.replace(' ', "\n"))
    };
    std::iter::once(global.to_owned()).chain(places.iter().enumerate().map(job)).collect()
}

pub const THREE: [(u32, &str); 3] = [(0, ""), (40, ""), (80, "")];
