//! Several devices in one machine: a file is on the devices of the layout, each device has its own
//! flusher and read-ahead, and jobs on different devices do not disturb each other.

mod common;

use blklab_core::device::{DeviceId, Extent, Layout, PlacedFile, Volume};
use blklab_core::engine::{Attached, Engine, Machine, Measured, Watch};
use blklab_core::formats::fio::jobfile::{self, Bare};
use blklab_core::host::Host;
use blklab_core::pagecache::MemoryConfig;
use blklab_core::result::{DiskCounters, RunResult};
use blklab_core::scheduler::spec::SchedulerSpec;
use blklab_core::simulation;
use blklab_core::source::fio::{Fio, Jobs};
use blklab_core::units::{Bytes, Sector};
use blklab_core::workload::plan;
use proptest::prelude::*;

/// A machine with these disks, each with its scheduler.
struct Rig<'a> {
    disks: &'a [(&'a str, &'a str)],
    memory_kb: u32,
}

impl Rig<'_> {
    /// Runs `job` with its files where `place` puts them, by number and size.
    fn run(&self, job: &str, volumes: &[Volume], place: impl Fn(u16, Bytes) -> PlacedFile) -> Measured<Jobs> {
        let mut bare = Bare { memory_mib: 8192, cpus: 4 };
        let file = jobfile::parse(job, "test.fio", &mut bare, Default::default()).expect("a good job");
        let plan = plan::plan(&file, Bytes(1 << 36), 1).expect("it fits");
        let schedulers: Vec<_> = self
            .disks
            .iter()
            .map(|(_, name)| SchedulerSpec::parse(name).expect("a good scheduler"))
            .collect();
        let attached = self.disks.iter().zip(&schedulers);
        let attached =
            attached.map(|((name, _), scheduler)| Attached { disk: common::disk(name).build(1), scheduler });
        let mut memory = MemoryConfig::settings();
        memory.set("memory_kb", &self.memory_kb.to_string()).expect("a good size");
        let machine = Machine {
            disks: attached.collect(),
            // Each process and thread has its own CPU.
            host: Host { cpus: 64, kernel_cpus: 64, ..Host::new(&Host::settings()) },
            memory: &memory,
            takes_places: true,
            locked: Fio::locked(&plan),
            tasks: Fio::tasks(&plan),
            processes: Fio::count(&plan),
        };
        let files = (0..).zip(&plan.files).map(|(number, file)| place(number, file.size));
        let world = machine.build(Layout::new(files.collect()).with_volumes(volumes.to_vec()));
        let fio = Fio::new(&plan, 1, &world);
        Engine::new(world, fio).run(&Watch::default()).expect("it runs to its end")
    }

    /// With the n-th file on the n-th disk.
    fn run_apart(&self, job: &str) -> Measured<Jobs> {
        self.run(job, &[], |number, size| PlacedFile::new(DeviceId(number), start_of(number), size))
    }
}

fn start_of(number: u16) -> Sector {
    Sector(2048 * u64::from(number + 1))
}

/// Runs `job`, with its n-th file on the n-th of these disks, each with its scheduler.
fn run(job: &str, disks: &[(&str, &str)]) -> Measured<Jobs> {
    Rig { disks, memory_kb: 8 << 20 }.run_apart(job)
}

fn sectors(counters: &DiskCounters) -> u64 {
    counters.read_sectors + counters.write_sectors
}

/// A file of `size` on a volume that puts `unit` sectors on each of `devices` in turn.
fn striped(size: Bytes, unit: u64, devices: u16) -> PlacedFile {
    let rows = size.sectors().div_ceil(unit * u64::from(devices));
    let extents = (0..rows).flat_map(|row| {
        (0..devices).map(move |device| Extent {
            device: DeviceId(device),
            start: Sector(row * unit),
            sectors: unit,
        })
    });
    PlacedFile::on_volume(0, extents, size)
}

/// The read-ahead of the kernel's volumes without stripes.
const VOLUME: Volume = Volume { read_ahead: Bytes::from_kib(128) };

const DISKS: &[&str] = &["wd10ezrx", "su800-128gb", "950pro-256gb", "optane-900p"];
const SCHEDULERS: &[&str] = &["none", "deadline", "mq-deadline", "kyber", "cfq", "bfq"];

/// Jobs without random numbers: those depend on a process's number, which differs here.
const JOBS: &[&str] = &[
    "rw=read\nbs=64k",
    "rw=read\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8",
    "rw=write\nbs=128k\ndirect=1\nfsync=16",
    "rw=write\nbs=16k\ndirect=1\nsync=dsync\nioengine=io_uring\niodepth=4",
    "rw=write\nbs=64k\nend_fsync=1",
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

    #[test]
    fn every_byte_of_a_spread_file_is_read_and_written_once_on_the_disk_that_has_it(
        disks in prop::array::uniform3(prop::sample::select(DISKS)),
        scheduler in prop::sample::select(SCHEDULERS),
        lengths in prop::collection::vec((0..3_u16, 1..700_u64), 1..40),
        rw in prop::sample::select(vec!["read", "write", "randread", "randwrite"]),
        bs in prop::sample::select(vec!["4k", "64k", "3m"]),
        how in prop::sample::select(vec![
            "", "direct=1", "direct=1\nioengine=libaio\niodepth=16", "direct=1\nioengine=posixaio\niodepth=4",
        ]),
    ) {
        let on = disks.map(|disk| (disk, scheduler));
        let size = Bytes(12 << 20);
        // Pieces of whole pages, over and over until they hold the file.
        let mut ends = [0; 3];
        let mut left = size.sectors();
        let mut extents = Vec::new();
        for &(device, pages) in lengths.iter().cycle() {
            let (sectors, end) = ((pages * 8).min(left), &mut ends[usize::from(device)]);
            extents.push(Extent { device: DeviceId(device), start: Sector(*end), sectors });
            *end += sectors;
            left -= sectors;
            if left == 0 {
                break;
            }
        }
        let sync = if rw.ends_with("write") { "end_fsync=1" } else { "" };
        let job = format!("[a]\nsize=12m\nrw={rw}\nbs={bs}\n{how}\n{sync}\n");
        let rig = Rig { disks: &on, memory_kb: 8 << 20 };
        let measured = rig.run(&job, &[VOLUME], |_, size| PlacedFile::on_volume(0, extents.clone(), size));
        let found: Vec<_> = measured.devices.iter().map(|device| sectors(&device.counters)).collect();
        prop_assert_eq!(&found[..], &ends[..]);
        let RunResult { disk, devices, jobs, .. } = simulation::result(measured);
        prop_assert_eq!(devices.iter().map(sectors).collect::<Vec<_>>(), found);
        prop_assert_eq!((sectors(&disk), jobs[0].read.bytes + jobs[0].write.bytes), (size.sectors(), size.0));
    }
}

/// Bytes that each device has written.
fn written(measured: &Measured<Jobs>) -> Vec<u64> {
    measured.devices.iter().map(|device| device.counters.write_sectors * 512).collect()
}

const SLOW_WRITER: &str = "[slow]\nrw=randwrite\nbs=4k\nsize=1g\nruntime=30\ntime_based\n";
const FAST_WRITER: &str = "[fast]\nrw=write\nbs=64k\nsize=1g\nruntime=30\ntime_based\n";

#[test]
fn a_slow_devices_backlog_leaves_a_fast_ones_flusher_alone() {
    let disks = [("wd10ezrx", "mq-deadline"), ("su800-128gb", "mq-deadline")];
    let rig = Rig { disks: &disks, memory_kb: 1 << 20 };
    let both = format!("{SLOW_WRITER}{FAST_WRITER}");
    let apart = written(&rig.run_apart(&both));
    // The same on a volume, whose only flusher waits for the slow disk's requests.
    let behind = |number, size: Bytes| {
        let extent = Extent { device: DeviceId(number), start: start_of(number), sectors: size.sectors() };
        PlacedFile::on_volume(0, [extent], size)
    };
    let shared = written(&rig.run(&both, &[VOLUME], behind));
    let alone = written(&rig.run_apart(&format!("[idle]\nsize=4k\nrw=read\n{FAST_WRITER}")));
    // It may be faster: its writer pauses more often, and writeback is throttled less then.
    assert!(apart[1] * 50 > alone[1] * 49, "{apart:?}, alone {alone:?}");
    assert!(shared[1] < alone[1] / 5, "{shared:?}, alone {alone:?}");
}

#[test]
fn each_device_and_each_volume_reads_ahead_as_far_as_its_own_setting() {
    let disks = [("pm983-960gb", "none:read_ahead_kb=32"), ("pm983-960gb", "none:read_ahead_kb=512")];
    let rig = Rig { disks: &disks, memory_kb: 8 << 20 };
    let read = |number: u8| format!("[{number}]\nrw=read\nbs=4k\nsize=64m\nfadvise_hint=0\n");
    let job = [0, 1].map(read).concat();
    let mean_kib = |measured: &Measured<Jobs>| {
        let mean = |counters: &DiskCounters| counters.read_sectors as f64 / counters.read_ios as f64 / 2.0;
        measured.devices.iter().map(|device| mean(&device.counters)).collect::<Vec<_>>()
    };
    let apart = mean_kib(&rig.run_apart(&job));
    let on_volume = rig.run(&read(0), &[Volume { read_ahead: Bytes::from_kib(256) }], |_, size| {
        PlacedFile::on_volume(
            0,
            [Extent { device: DeviceId(0), start: Sector(0), sectors: size.sectors() }],
            size,
        )
    });
    for (found, read_ahead) in apart.into_iter().chain([mean_kib(&on_volume)[0]]).zip([32.0, 512.0, 256.0]) {
        // The first windows of a file are smaller.
        assert!(found > 0.95 * read_ahead && found <= read_ahead, "{found} KiB of {read_ahead}");
    }
}

#[test]
fn stripes_add_the_speed_of_their_disks_and_a_concatenation_has_that_of_one() {
    let disks = [("wd10ezrx", "none"); 2];
    let rig = Rig { disks: &disks, memory_kb: 8 << 20 };
    let job = "[a]\nrw=read\nbs=1m\ndirect=1\nioengine=libaio\niodepth=4\nsize=256m\n";
    let alone = rig.run_apart(job);
    let stripes = rig.run(job, &[VOLUME], |_, size| striped(size, 128, 2));
    let halves = rig.run(job, &[VOLUME], |_, size| {
        let half =
            |device| Extent { device: DeviceId(device), start: Sector(0), sectors: size.sectors() / 2 };
        PlacedFile::on_volume(0, [half(0), half(1)], size)
    });
    let seconds = [&alone, &stripes, &halves].map(|measured| measured.duration.as_secs_f64());
    assert!((seconds[1] / seconds[0] - 0.5).abs() < 0.02, "{seconds:?}");
    assert!((seconds[2] / seconds[0] - 1.0).abs() < 0.02, "{seconds:?}");
}
