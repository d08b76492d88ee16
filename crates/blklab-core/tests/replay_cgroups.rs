//! Replays with cgroups against the truth. A job has processes in cgroups. It is recorded under one
//! scheduler on one disk, and replayed on other disks under BFQ and CFQ. The truth is the same job, run there.

mod common;

use std::collections::BTreeMap;

use blklab_base::recorded::Io;
use blklab_core::engine::Watch;
use blklab_core::host::Host;
use blklab_core::pagecache::MemoryConfig;
use blklab_core::scheduler::spec::SchedulerSpec;
use blklab_core::simulation::{self, Recorded, ReplaySetup};
use blklab_core::source::replay::{Fit, Grouping, Pace, ReplayPlan, Settings, Way, plan};
use common::Experiment;

type Weights = &'static [(&'static str, u16)];

/// Processes in cgroups, and the weights of those.
const JOBS: &[(&str, &str, Weights)] = &[
    ("one against four, sequential", "rw=read\nbs=128k\n[a]\ncgroup=a\n[b]\ncgroup=b\nnumjobs=4\n", &[]),
    (
        "one against four, random",
        "rw=randread\nbs=4k\nnorandommap\nsize=1g\nnumber_ios=300\n[a]\ncgroup=a\n[b]\ncgroup=b\nnumjobs=4\n",
        &[],
    ),
    (
        "one to three",
        "rw=read\nbs=128k\n[a]\ncgroup=a\ncgroup_weight=100\n[b]\ncgroup=b\ncgroup_weight=300\n",
        &[("a", 100), ("b", 300)],
    ),
    (
        "a group within another",
        "rw=read\nbs=128k\n[m]\ncgroup=o\nsize=4m\n[i]\ncgroup=o/i\n[j]\ncgroup=o/j\ncgroup_weight=300\n[k]\ncgroup=k\n",
        &[("/o/j", 300)],
    ),
    (
        "a reader beside three copies",
        "[a]\ncgroup=a\nrw=randread\nbs=4k\nnorandommap\nsize=1g\nnumber_ios=300\n\
         [b]\ncgroup=b\nrw=write\nbs=256k\nnumjobs=3\n",
        &[],
    ),
    (
        "one that thinks beside two scans",
        "[a]\ncgroup=a\nrw=randread\nbs=4k\nnorandommap\nsize=1g\nnumber_ios=300\nthinktime=3000\n\
         [b]\ncgroup=b\nrw=read\nbs=128k\nnumjobs=2\n",
        &[],
    ),
    (
        "several in flight",
        "rw=randrw\nbs=4k\nnorandommap\nsize=1g\nnumber_ios=500\nioengine=libaio\niodepth=8\n[a]\ncgroup=a\n\
         [b]\ncgroup=b\nnumjobs=3\n",
        &[],
    ),
    (
        "a rate beside a scan",
        "[a]\ncgroup=a\nrw=randread\nbs=4k\nnorandommap\nsize=1g\nnumber_ios=100\nrate_iops=30\n\
         [b]\ncgroup=b\nrw=read\nbs=128k\nsize=256m\nnumjobs=3\n",
        &[],
    ),
];

const WAYS: [Way; 2] = [Way::Closed, Way::Inferred];
const FROM: &[(&str, &str)] = &[("wd10ezrx", "mq-deadline"), ("su800-128gb", "none")];
const TO: &[(&str, &str)] = &[("wd10ezrx", "bfq"), ("sas-10k", "bfq"), ("wd10ezrx", "cfq")];

fn planned(recorded: &Recorded, disk: &str, way: Way, grouping: Grouping) -> ReplayPlan {
    let capacity = common::disk(disk).limits().capacity;
    let settings =
        Settings { way, fit: Fit::Refuse, recorded: None, capacity, pace: Pace::default(), grouping };
    plan(&recorded.ios, &recorded.tables, &settings).expect("it fits")
}

fn replayed(recorded: &Recorded, (disk, scheduler): (&str, &str), way: Way, grouping: Grouping) -> Recorded {
    let plan = planned(recorded, disk, way, grouping);
    let setup = ReplaySetup {
        plan: &plan,
        names: &recorded.tables.processes,
        disk: common::disk(disk).build(1),
        scheduler: &SchedulerSpec::parse(scheduler).expect("a good scheduler"),
        host: Host::FREE,
        memory: &MemoryConfig::settings(),
    };
    simulation::replay_and_record(setup, &Watch::default()).expect("it runs to its end")
}

/// When each process's last I/O completed, by its number.
fn ends(ios: &[Io]) -> BTreeMap<u32, f64> {
    let mut ends = BTreeMap::new();
    for io in ios {
        let end = ends.entry(io.pid).or_insert(0.0_f64);
        *end = end.max(io.completed.expect("it has").0 as f64);
    }
    ends
}

/// The largest deviation of a process's end, as a ratio beyond 1.
fn off(found: &[Io], truth: &[Io]) -> f64 {
    let (found, truth) = (ends(found), ends(truth));
    assert!(found.keys().eq(truth.keys()), "the same processes");
    let ratios = found.values().zip(truth.values()).map(|(found, truth)| found / truth);
    ratios.map(|ratio| ratio.max(1.0 / ratio) - 1.0).fold(0.0, f64::max)
}

/// Cells of a way of replaying: those within 2 % with cgroups, and those off by a fifth or more without.
#[derive(Debug, Default)]
struct Found {
    cells: usize,
    near: usize,
    far_without: usize,
}

impl Found {
    fn count(&mut self, with: f64, without: f64) {
        self.cells += 1;
        self.near += usize::from(with < 0.02);
        self.far_without += usize::from(without >= 0.2);
    }
}

#[test]
fn a_replay_in_the_recorded_cgroups_is_near_the_run_elsewhere_and_one_without_is_not() {
    let mut found = WAYS.map(|_| Found::default());
    for (name, job, weights) in JOBS {
        let job = format!("[global]\ndirect=1\nsize=128m\n{job}");
        let grouping = || {
            let weight = |&(path, weight): &(&str, u16)| (path.to_owned(), weight);
            Grouping::Recorded(weights.iter().map(weight).collect())
        };
        for &from in FROM {
            let recorded = Experiment::new(&job, from.0, from.1).free_host().record();
            for &to in TO {
                let truth = Experiment::new(&job, to.0, to.1).free_host().record();
                for (way, found) in WAYS.into_iter().zip(&mut found) {
                    let with = off(&replayed(&recorded, to, way, grouping()).ios, &truth.ios);
                    let without = off(&replayed(&recorded, to, way, Grouping::Root).ios, &truth.ios);
                    println!(
                        "{name:33} {way:8?} {from:?} on {to:?}: {with:.3}, without cgroups {without:.3}"
                    );
                    found.count(with, without);
                }
            }
        }
    }
    let [closed, inferred] = found;
    println!("closed {closed:?}\ninferred {inferred:?}");
    assert_eq!(inferred.near, inferred.cells);
    // BFQ raises the weight of a process with a rate, which then needs no cgroup.
    assert!(inferred.far_without * 8 >= inferred.cells * 7, "{inferred:?}");
    // A process with a rate does not wait for its I/O, whatever its cgroup.
    assert_eq!(closed.near + FROM.len() * TO.len(), closed.cells);
}
