//! Replays against the truth: a job is recorded under one scheduler on one disk and replayed under
//! others on others, where the same job itself is run as well.

mod common;

use blklab_base::recorded::{Io, Op};
use blklab_core::engine::Watch;
use blklab_core::host::Host;
use blklab_core::pagecache::MemoryConfig;
use blklab_core::scheduler::spec::SchedulerSpec;
use blklab_core::simulation::{self, Recorded, ReplaySetup};
use blklab_core::source::replay::{Fit, Pace, Settings, Way, plan};
use common::Experiment;
use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const WAYS: [Way; 3] = [Way::Open, Way::Closed, Way::Inferred];

fn replay(recorded: &Recorded, way: Way, disk: &str, scheduler: &str) -> Vec<Io> {
    let model = common::disk(disk);
    let capacity = model.limits().capacity;
    let settings = Settings {
        way,
        fit: Fit::Refuse,
        recorded: None,
        capacity,
        pace: Pace::default(),
        grouping: Default::default(),
    };
    let plan = plan(&recorded.ios, &recorded.tables, &settings).expect("it fits");
    let setup = ReplaySetup {
        plan: &plan,
        names: &recorded.tables.processes,
        disk: model.build(1),
        scheduler: &SchedulerSpec::parse(scheduler).expect("a good scheduler"),
        host: Host::FREE,
        memory: &MemoryConfig::settings(),
    };
    simulation::replay_and_record(setup, &Watch::default()).expect("it runs to its end").ios
}

/// Throughput and a latency of bios: what a recording shows of a run.
#[derive(Clone, Copy, Debug)]
struct Figures {
    rate: f64,
    p99: f64,
}

impl Figures {
    fn of(ios: &[Io]) -> Figures {
        let end = ios.iter().filter_map(|io| io.completed).max().expect("some");
        let bytes: u64 = ios.iter().map(|io| u64::from(io.sectors) * 512).sum();
        let waited = ios.iter().filter(|io| io.op != Op::Flush);
        let mut latencies: Vec<_> = waited.map(|io| (io.completed.expect("it has") - io.queued).0).collect();
        latencies.sort_unstable();
        let p99 = latencies[(latencies.len() * 99).div_ceil(100) - 1];
        Figures { rate: bytes as f64 / end.0 as f64, p99: p99 as f64 }
    }

    /// In per cent: rate, p99.
    fn off(self, truth: Figures) -> [f64; 2] {
        [self.rate / truth.rate, self.p99 / truth.p99].map(|ratio| (ratio - 1.0) * 100.0)
    }
}

const JOBS: &[(&str, &str)] = &[
    ("one reader", "[a]\nrw=randread\nbs=4k\nnumber_ios=400\n"),
    ("sixteen in flight", "[a]\nioengine=libaio\niodepth=16\nrw=randread\nbs=4k\nnumber_ios=2000\n"),
    ("thinks", "[a]\nrw=randread\nbs=4k\nnumber_ios=300\nthinktime=3000\n"),
    ("rate", "[a]\nrw=randread\nbs=4k\nnumber_ios=300\nrate_iops=40\n"),
    ("poisson", "[a]\nrw=randread\nbs=4k\nnumber_ios=300\nrate_iops=40\nrate_process=poisson\n"),
    (
        "three",
        "[a]\nrw=read\nbs=128k\nsize=64m\n[b]\nrw=randread\nbs=4k\nnumber_ios=300\n[c]\nrw=write\nbs=64k\nsize=32m\n",
    ),
    ("readers", "[a]\nrw=read\nbs=64k\nsize=64m\nnumjobs=4\n"),
    ("mixed", "[a]\nrw=randrw\nbs=4k\nioengine=libaio\niodepth=8\nnumber_ios=600\nnumjobs=3\n"),
    (
        "rate beside a scan",
        "[a]\nrw=read\nbs=128k\nsize=256m\n[b]\nrw=randread\nbs=4k\nnumber_ios=100\nrate_iops=30\n",
    ),
    (
        "buffered copy",
        "[global]\ndirect=0\n[a]\nrw=read\nbs=128k\nsize=128m\n[b]\nrw=write\nbs=128k\nsize=128m\nend_fsync=1\n",
    ),
    ("syncs", "[global]\ndirect=0\n[a]\nrw=write\nbs=4k\nfdatasync=1\nnumber_ios=200\n"),
    (
        "syncs beside a scan",
        "[global]\ndirect=0\n[a]\nrw=write\nbs=4k\nfdatasync=1\nnumber_ios=100\n[b]\nrw=read\nbs=128k\nsize=128m\n",
    ),
];

const PLACES: &[(&str, &str)] = &[
    ("wd10ezrx", "none"),
    ("wd10ezrx", "mq-deadline"),
    ("wd10ezrx", "bfq"),
    ("wd10ezrx", "kyber"),
    ("su800-128gb", "none"),
    ("su800-128gb", "bfq"),
    ("sas-10k", "mq-deadline"),
];

/// A job of one to four processes.
fn drawn(number: u64) -> String {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(number);
    let mut draw = |below: u64| chance.next_u64() % below;
    let mut job = format!("[global]\nnorandommap\ndirect=1\nrandseed={number}\n");
    for process in 0..1 + draw(4) {
        let rw = ["read", "randread", "randread", "write", "randwrite", "randrw"][draw(6) as usize];
        let bs = [4, 16, 64, 128, 512][draw(5) as usize];
        let ios = 100 + draw(400);
        job +=
            &format!("[p{process}]\nrw={rw}\nbs={bs}k\nsize=2g\noffset={}g\nnumber_ios={ios}\n", process * 2);
        if draw(2) == 0 {
            job += &format!("ioengine=libaio\niodepth={}\n", 1 + draw(24));
        }
        match draw(4) {
            0 => job += &format!("thinktime={}\n", 100 + draw(20_000)),
            1 => job += &format!("rate_iops={}\n", 20 + draw(200)),
            _ => (),
        }
        if draw(4) == 0 {
            job += &format!("prioclass=2\nprio={}\n", draw(8));
        }
    }
    job
}

fn all_jobs() -> Vec<(String, String)> {
    let named = |(name, job): &(&str, &str)| {
        let job = format!("[global]\nnorandommap\ndirect=1\nsize=1g\n{job}");
        (name.to_string(), job.replace("direct=1\nsize=1g\n[global]\ndirect=0", "size=1g"))
    };
    JOBS.iter().map(named).chain((0..30).map(|number| (format!("drawn {number}"), drawn(number)))).collect()
}

/// The number of cells with a known truth, and of those that a way of replaying has right.
#[derive(Clone, Copy, Debug, Default)]
struct Right {
    cells: usize,
    rate: usize,
    p99: usize,
}

impl Right {
    /// Counts a cell that is off by these percentages, of which at most `limits` are right.
    fn count(&mut self, off: [f64; 2], limits: [f64; 2]) {
        self.cells += 1;
        self.rate += usize::from(off[0].abs() <= limits[0]);
        self.p99 += usize::from(off[1].abs() <= limits[1]);
    }
}

/// Every job is recorded in one of the places, and replayed there (within 1 %), and in all others
/// (rate within 5 %, p99 within 10 %). Prints each cell.
fn scored() -> [[Right; 2]; 3] {
    let mut right = [[Right::default(); 2]; 3];
    for (number, (name, job)) in all_jobs().into_iter().enumerate() {
        let from = PLACES[number % PLACES.len()];
        let recorded = Experiment::new(&job, from.0, from.1).free_host().record();
        for &(disk, scheduler) in PLACES {
            let truth = Experiment::new(&job, disk, scheduler).free_host().record();
            let truth = Figures::of(&truth.ios);
            let (rate, p99) = (truth.rate * 1e3, truth.p99 / 1e6);
            print!("{name:20} {from:?} on {disk:12} {scheduler:12} {rate:8.2} MB/s {p99:9.2} ms ");
            let elsewhere = (disk, scheduler) != from;
            let limits = if elsewhere { [5.0, 10.0] } else { [1.0, 1.0] };
            for (index, way) in WAYS.into_iter().enumerate() {
                let off = Figures::of(&replay(&recorded, way, disk, scheduler)).off(truth);
                print!(" {way:?} {:+7.1} {:+8.1}", off[0], off[1]);
                right[index][usize::from(elsewhere)].count(off, limits);
            }
            println!();
        }
    }
    right
}

#[test]
fn a_replay_is_the_recorded_run_and_says_best_what_another_would_be_where_waiting_is_inferred() {
    let [open, closed, inferred] = scored();
    println!("open {open:?}\nclosed {closed:?}\ninferred {inferred:?}");
    let [here, _] = closed;
    assert_eq!(here.rate, here.cells, "recorded and replayed in one place");
    // Under bfq a queue of job 0 has one turn more than in its recording, at a time-out in jiffies.
    assert!(here.p99 + 1 >= here.cells, "recorded and replayed in one place: {here:?}");
    let [_, elsewhere] = inferred;
    // A recording does not tell the writes of a sync, which Linux throttles, from direct ones.
    assert!(elsewhere.rate * 100 >= elsewhere.cells * 87, "{elsewhere:?}");
    assert!(elsewhere.p99 * 100 >= elsewhere.cells * 85, "{elsewhere:?}");
    for [_, other] in [open, closed] {
        assert!(elsewhere.rate > other.rate && elsewhere.p99 > other.p99, "{elsewhere:?}, {other:?}");
    }
}
