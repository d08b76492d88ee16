//! Simulated I/Os per second of wall time, single core: 4 KiB random reads at depth 32,
//! the whole engine, with the host's CPU costs on (as users run it) and off.

#[path = "../tests/common/mod.rs"]
mod common;

use common::Experiment;
use divan::Bencher;
use divan::counter::ItemsCount;

fn main() {
    divan::main();
}

const IOS: u64 = 500_000;

const CASES: &[(&str, &str)] = &[
    ("none", "950pro-256gb"),
    ("none", "optane-900p"),
    ("mq-deadline", "su800-128gb"),
    ("kyber", "su800-128gb"),
    ("mq-deadline", "wd10ezrx"),
    ("none", "wd10ezrx"),
];

/// Several processes, each with 32 requests in flight.
const SHARED: &[(&str, &str)] = &[
    ("bfq", "wd10ezrx"),
    ("cfq", "wd10ezrx"),
    ("bfq", "su800-128gb"),
    ("mq-deadline", "wd10ezrx"),
    ("mq-deadline", "su800-128gb"),
];
const PROCESSES: u64 = 8;

fn names(cases: &[(&str, &str)]) -> Vec<String> {
    cases.iter().map(|(scheduler, disk)| format!("{scheduler} on {disk}")).collect()
}

fn run(bencher: Bencher<'_, '_>, case: &str, free: bool, processes: u64) {
    let (scheduler, disk) = case.split_once(" on ").expect("made above");
    let each = IOS / processes;
    let job = format!(
        "[a]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=32\nfilename=/dev/disk\nnumber_ios={each}\nnorandommap\nnumjobs={processes}\n"
    );
    let experiment = Experiment::new(&job, disk, scheduler);
    let experiment = if free { experiment.free_host() } else { experiment };
    bencher.counter(ItemsCount::new(IOS)).bench_local(|| {
        let result = experiment.run();
        assert_eq!(result.jobs.iter().map(|job| job.read.ios).sum::<u64>(), IOS);
        result
    });
}

#[divan::bench(args = names(CASES), sample_count = 7, sample_size = 1)]
fn with_host_costs(bencher: Bencher<'_, '_>, case: &str) {
    run(bencher, case, false, 1);
}

#[divan::bench(args = names(CASES), sample_count = 7, sample_size = 1)]
fn with_a_free_host(bencher: Bencher<'_, '_>, case: &str) {
    run(bencher, case, true, 1);
}

#[divan::bench(args = names(SHARED), sample_count = 7, sample_size = 1)]
fn shared_by_eight_processes(bencher: Bencher<'_, '_>, case: &str) {
    run(bencher, case, false, PROCESSES);
}
