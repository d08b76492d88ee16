//! Several devices in one machine: a file is on the device of the layout, and jobs on different
//! devices do not disturb each other.

mod common;

use blklab_core::device::{DeviceId, Layout, PlacedFile};
use blklab_core::engine::{Attached, Engine, Machine, Measured, Watch};
use blklab_core::formats::fio::jobfile::{self, Bare};
use blklab_core::host::Host;
use blklab_core::pagecache::MemoryConfig;
use blklab_core::scheduler::spec::SchedulerSpec;
use blklab_core::source::fio::{Fio, Jobs};
use blklab_core::units::{Bytes, Sector};
use blklab_core::workload::plan;
use proptest::prelude::*;

/// Runs `job`, with its n-th file on the n-th of these disks, each with its scheduler.
fn run(job: &str, disks: &[(&str, &str)]) -> Measured<Jobs> {
    let mut bare = Bare { memory_mib: 8192, cpus: 4 };
    let file = jobfile::parse(job, "test.fio", &mut bare, Default::default()).expect("a good job");
    let plan = plan::plan(&file, Bytes(1 << 36), 1).expect("it fits");
    let schedulers: Vec<_> =
        disks.iter().map(|(_, name)| SchedulerSpec::parse(name).expect("a good scheduler")).collect();
    let attached = disks.iter().zip(&schedulers);
    let attached =
        attached.map(|((name, _), scheduler)| Attached { disk: common::disk(name).build(1), scheduler });
    let machine = Machine {
        disks: attached.collect(),
        // Each process and thread has its own CPU.
        host: Host { cpus: 64, ..Host::new(&Host::settings()) },
        memory: &MemoryConfig::settings(),
        locked: Fio::locked(&plan),
        tasks: Fio::tasks(&plan),
        processes: Fio::count(&plan),
    };
    let placed = |(number, file): (u16, &plan::FilePlan)| PlacedFile {
        device: DeviceId(number),
        start: Sector(2048 * u64::from(number + 1)),
        size: file.size,
        is_device: false,
    };
    let world = machine.build(Layout::new((0..).zip(&plan.files).map(placed).collect()));
    let fio = Fio::new(&plan, 1, &world);
    Engine::new(world, fio).run(&Watch::default()).expect("it runs to its end")
}

const DISKS: &[&str] = &["wd10ezrx", "su800-128gb", "950pro-256gb", "optane-900p"];
const SCHEDULERS: &[&str] = &["none", "deadline", "mq-deadline", "kyber", "cfq", "bfq"];

/// Jobs without random numbers: those depend on a process's number, which differs here.
const JOBS: &[&str] = &[
    "rw=read\nbs=64k",
    "rw=read\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8",
    "rw=write\nbs=128k\ndirect=1\nfsync=16",
    "rw=write\nbs=16k\ndirect=1\nsync=dsync\nioengine=io_uring\niodepth=4",
    "rw=read\nbs=32k\nioengine=posixaio\niodepth=4",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn jobs_on_two_devices_have_the_results_of_each_alone(
        disks in (prop::sample::select(DISKS), prop::sample::select(DISKS)),
        schedulers in (prop::sample::select(SCHEDULERS), prop::sample::select(SCHEDULERS)),
        jobs in (prop::sample::select(JOBS), prop::sample::select(JOBS)),
    ) {
        let on = [(disks.0, schedulers.0), (disks.1, schedulers.1)];
        let sections = [format!("[a]\nsize=4m\n{}\n", jobs.0), format!("[b]\nsize=4m\n{}\n", jobs.1)];
        let together = run(&sections.concat(), &on);
        // The file of the second job is at the same place of its disk in both runs.
        let first = run(&sections[0], &on[..1]);
        let second = run(&format!("[other]\nsize=4k\ndirect=1\n{}", sections[1]), &on);
        for (found, alone) in [(0, &first.source.results[0]), (1, second.source.results.last().expect("it ran"))] {
            prop_assert_eq!(format!("{:?}", together.source.results[found]), format!("{alone:?}"));
        }
        prop_assert_eq!(together.devices[0].counters, first.devices[0].counters);
    }
}
