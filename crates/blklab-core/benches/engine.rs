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

fn names() -> impl Iterator<Item = String> {
    CASES.iter().map(|(scheduler, disk)| format!("{scheduler} on {disk}"))
}

fn run(bencher: Bencher<'_, '_>, case: &str, free: bool) {
    let (scheduler, disk) = case.split_once(" on ").expect("made above");
    let job = format!(
        "[a]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=32\nfilename=/dev/disk\nnumber_ios={IOS}\nnorandommap\n"
    );
    let experiment = Experiment::new(&job, disk, scheduler);
    let experiment = if free { experiment.free_host() } else { experiment };
    bencher.counter(ItemsCount::new(IOS)).bench_local(|| {
        let result = experiment.run();
        assert_eq!(result.jobs[0].read.ios, IOS);
        result
    });
}

#[divan::bench(args = names(), sample_count = 7, sample_size = 1)]
fn with_host_costs(bencher: Bencher<'_, '_>, case: &str) {
    run(bencher, case, false);
}

#[divan::bench(args = names(), sample_count = 7, sample_size = 1)]
fn with_a_free_host(bencher: Bencher<'_, '_>, case: &str) {
    run(bencher, case, true);
}
