//! A run of the simulator: what is recorded of it, and what its bios are.

use proptest::prelude::*;

use super::*;
use crate::device::PlacedFile;
use crate::disk::catalogue;
use crate::formats::fio::jobfile::{self, Bare};
use crate::pagecache::MemoryConfig;
use crate::recorder::Window;
use crate::source::replay::{self, Fit, Pace, Way};
use crate::units::Sector;
use crate::workload::plan;

const MACHINE: Bare = Bare { memory_mib: 8192, cpus: 4 };

/// Runs `job` to its end and counts the written sectors that a power failure would lose.
fn volatile_sectors(job: &str, disk: &str, scheduler: &str) -> usize {
    let model = catalogue::model(disk).expect("a shipped disk");
    let file = jobfile::parse(job, "test.fio", &mut { MACHINE }, Default::default()).expect("a good job");
    let plan = plan::plan(&file, model.limits().capacity.to_bytes(), 1).expect("it fits");
    let setup = Setup {
        plan: &plan,
        disk: model.build(1),
        scheduler: &SchedulerSpec::parse(scheduler).expect("a good scheduler"),
        host: Host::new(&Host::settings()),
        memory: &MemoryConfig::settings(),
        seed: 1,
    };
    let mut engine = setup.engine(&Watch::default());
    engine.run_processes(&Watch::default()).expect("it runs to its end");
    let world = engine.world;
    let dirty = world.cache.counts();
    let written = world.layout.files().iter().flat_map(PlacedFile::extents).flat_map(|extent| extent.range());
    let disk = &world.devices[DeviceId(0)].disk;
    let lost = written.filter(|&sector| !disk.is_durable(Sector(sector), 1)).count();
    lost + 8 * (dirty.dirty + dirty.writeback) as usize
}

const DISKS: &[&str] = &["wd10ezrx", "su800-128gb", "950pro-256gb", "pm983-960gb", "sas-10k"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_write_that_was_synced_is_on_the_medium(
        disk in prop::sample::select(DISKS),
        scheduler in prop::sample::select(vec!["none", "mq-deadline", "kyber", "deadline"]),
        rw in prop::sample::select(vec!["write", "randwrite", "randrw"]),
        bs in prop::sample::select(vec!["4k", "64k", "1m"]),
        engine in prop::sample::select(vec![
            "psync", "libaio\niodepth=16", "posixaio\niodepth=16\nnrfiles=3",
        ]),
        how in prop::sample::select(vec![
            "end_fsync=1", "fsync_on_close=1", "fsync=1", "fdatasync=1", "sync=1", "sync=dsync",
            "direct=1\nend_fsync=1", "direct=1\nsync=1", "direct=1\nsync=dsync",
        ]),
    ) {
        let job = format!("[a]\nrw={rw}\nbs={bs}\nsize=8m\nioengine={engine}\n{how}\n");
        prop_assert_eq!(volatile_sectors(&job, disk, scheduler), 0);
    }
}

#[test]
fn a_write_that_was_not_synced_can_be_lost() {
    for job in ["[a]\nrw=write\nbs=64k\nsize=8m\n", "[a]\nrw=write\nbs=64k\nsize=8m\ndirect=1\n"] {
        assert!(volatile_sectors(job, "wd10ezrx", "none") > 0);
    }
}

#[test]
fn a_durable_write_syncs_its_own_bytes_and_no_others_of_its_file() {
    let lost = |durable: &str| {
        let job = format!(
            "[global]\nfilename=area\nrw=write\n[cached]\nbs=64k\nsize=1m\n\
             [durable]\nbs=4k\noffset=1m\nsize=8k\nstartdelay=100ms\n{durable}\n"
        );
        volatile_sectors(&job, "su800-128gb", "none")
    };
    // Through the page cache, direct, and for comparison a sync of the whole file.
    assert_eq!([lost("sync=dsync"), lost("direct=1\nsync=dsync"), lost("fsync=2")], [2048, 2048, 0]);
}

/// Direct reads by one process on a disk that serves one command at a time, each in 5 ms; CPU
/// work takes no time but where the host's settings say so.
fn direct_reads(options: &str, host: &[(&str, &str)]) -> RunResult {
    let disk = catalogue::model("constant").expect("a shipped disk");
    let disk =
        disk.with_override("service_us", "5000").and_then(|disk| disk.with_override("queue_depth", "1"));
    let model = disk.expect("good values");
    let job = format!("[a]\nfilename=/dev/disk\nrw=read\nbs=4k\ndirect=1\n{options}\n");
    let file = jobfile::parse(&job, "test.fio", &mut { MACHINE }, Default::default()).expect("a good job");
    let mut settings = Host::settings();
    for (name, value) in [("submit_ns", "0"), ("complete_ns", "0")].iter().chain(host) {
        settings.set(name, value).expect("a good value");
    }
    let setup = Setup {
        plan: &plan::plan(&file, model.limits().capacity.to_bytes(), 1).expect("it fits"),
        disk: model.build(1),
        scheduler: &SchedulerSpec::parse("noop").expect("a good scheduler"),
        host: Host::new(&settings),
        memory: &MemoryConfig::settings(),
        seed: 1,
    };
    let window = Window { from: Nanos::ZERO, until: Nanos::NEVER, requests: 100 };
    let followed = Followed { window: Some(window), until: None };
    run_followed(setup, followed, &Watch::default()).expect("it runs to its end")
}

#[test]
fn fio_reads_the_clock_five_times_between_two_reads_and_once_within_one() {
    for clock in [0, 256] {
        let result = direct_reads("size=40k", &[("clock_ns", &clock.to_string())]);
        let ends = &result.detail.completed_ns;
        let apart: Vec<_> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(apart, vec![5_000_000 + 5 * clock; 9]);
        let clat = result.jobs[0].read.clat;
        assert_eq!((clat.min_ns, clat.max_ns), (5_000_000 + clock as u64, 5_000_000 + clock as u64));
    }
}

#[test]
fn a_process_that_ends_reaps_its_last_reads_together_if_the_host_says_so() {
    let latencies = |drain: &str| {
        let options = "size=8k\nioengine=libaio\niodepth=4";
        let clat = direct_reads(options, &[("drain_at_once", drain)]).jobs[0].read.clat;
        (clat.min_ns, clat.max_ns)
    };
    assert_eq!(latencies("0"), (5_000_000, 10_000_000));
    assert_eq!(latencies("1"), (10_000_000, 10_000_000));
}

#[test]
fn a_durable_direct_write_of_a_device_is_followed_by_a_flush_if_its_caller_waits() {
    // SATA has no FUA: a flush makes the write durable. In a file system that is the call's own; NVMe
    // needs none there, unless for the file's times.
    for (disk, options, partitions, flushes) in [
        ("su800-128gb", "sync=dsync", "1", 20),
        ("su800-128gb", "sync=dsync", "0", 10),
        ("su800-128gb", "sync=dsync\nioengine=libaio", "1", 10),
        ("950pro-256gb", "sync=dsync", "1", 10),
        ("950pro-256gb", "sync=dsync", "0", 0),
        ("950pro-256gb", "sync=sync", "0", 10),
    ] {
        let job = format!("[a]\nrw=write\nbs=4k\nsize=40k\ndirect=1\n{options}\n");
        let file =
            jobfile::parse(&job, "test.fio", &mut { MACHINE }, Default::default()).expect("a good job");
        let model = catalogue::model(disk).expect("a shipped disk");
        let mut settings = Host::settings();
        settings.set("partitions", partitions).expect("a good value");
        let setup = Setup {
            plan: &plan::plan(&file, model.limits().capacity.to_bytes(), 1).expect("it fits"),
            disk: model.build(1),
            scheduler: &SchedulerSpec::parse("none").expect("a good scheduler"),
            host: Host::new(&settings),
            memory: &MemoryConfig::settings(),
            seed: 1,
        };
        let result = run(setup, &Watch::default()).expect("it runs to its end");
        let found = (result.disk.write_ios, result.disk.flush_ios);
        assert_eq!(found, (10, flushes), "{disk}, {options}, partitions={partitions}");
    }
}

/// The sectors of each request of the kind `op` of a job with one file, which lies in these `extents`.
fn sizes(job: &str, disk: &str, scheduler: &str, extents: &[std::ops::Range<u64>], op: i64) -> Vec<i64> {
    let kept = placed(job, disk, scheduler, extents).overview;
    std::iter::zip(&kept.op, &kept.sectors)
        .filter(|&(&one, _)| one == op)
        .map(|(_, &sectors)| sectors)
        .collect()
}

/// The result of a job with one file, which lies in these `extents`; CPU work takes no time.
fn placed(job: &str, disk: &str, scheduler: &str, extents: &[std::ops::Range<u64>]) -> RunResult {
    let file = jobfile::parse(job, "test.fio", &mut { MACHINE }, Default::default()).expect("a good job");
    let model = catalogue::model(disk).expect("a shipped disk");
    let capacity = model.limits().capacity.to_bytes();
    let mut plan = plan::plan(&file, capacity, 1).expect("it fits");
    plan.place(&[extents.to_vec()], capacity).expect("as long as the file");
    let setup = Setup {
        plan: &plan,
        disk: model.build(1),
        scheduler: &SchedulerSpec::parse(scheduler).expect("a good scheduler"),
        host: Host::FREE,
        memory: &MemoryConfig::settings(),
        seed: 1,
    };
    run(setup, &Watch::default()).expect("it runs to its end")
}

#[test]
fn a_reader_goes_on_when_the_pages_of_an_extent_are_there() {
    // One window, and one plug: half of the file is at the begin of the disk, half at its end.
    let job = "[a]\nrw=read\nbs=1m\nsize=2m\n";
    let two = [4096..6144, 1_900_000_000..1_900_002_048];
    let result = placed(job, "wd10ezrx", "none:read_ahead_kb=8192", &two);
    let clat = &result.jobs[0].read.clat;
    let all_ns = result.duration_ns;
    assert_eq!(result.overview.op.len(), 2);
    // Both wait, the second for the way to the other end.
    assert!(clat.max_ns < all_ns * 9 / 10 && clat.min_ns > all_ns / 10, "{clat:?} of {all_ns} ns");
}

#[test]
fn a_read_ahead_window_is_one_bio() {
    let job = "[a]\nrw=read\nbs=64k\nsize=9m\n";
    let whole = std::slice::from_ref(&(4096..22_528));
    // With the bios of 256 pages of the single-queue kernels no request is larger than one of them: a second one does
    // not fit.
    for (scheduler, largest) in [("none", 2560), ("deadline", 2048)] {
        let sizes =
            sizes(job, "wd10ezrx", &format!("{scheduler}:max_sectors_kb=1280,read_ahead_kb=8192"), whole, 0);
        assert_eq!(sizes.iter().max(), Some(&largest), "{scheduler}: {sizes:?}");
        assert!(sizes.iter().filter(|&&sectors| sectors == largest).count() >= 4, "{scheduler}: {sizes:?}");
        assert_eq!(sizes.iter().sum::<i64>(), 22_528 - 4096);
    }
}

#[test]
fn writeback_of_a_file_is_one_bio_for_all_pages_that_follow_each_other_on_the_disk() {
    let sizes = |scheduler: &str, extents: &[std::ops::Range<u64>]| {
        let job = "[a]\nrw=write\nbs=64k\nsize=9m\nend_fsync=1\n";
        sizes(job, "su800-128gb", scheduler, extents, 1)
    };
    // Linux 7.3 splits at 4 MiB, before 6.17 at 1280 KiB; 9 MiB are 7.2 times as much.
    let whole = std::slice::from_ref(&(4096..22_528));
    assert_eq!(sizes("none", whole), [8192, 8192, 2048]);
    let smaller = "none:max_sectors_kb=1280";
    assert_eq!(sizes(smaller, whole), [2560, 2560, 2560, 2560, 2560, 2560, 2560, 512]);
    // A bio of 256 pages more would go into the rest before it.
    let two = [4096..8192, 10_240..24_576];
    assert_eq!(sizes(smaller, &two), [2560, 1536, 2560, 2560, 2560, 2560, 2560, 1536]);
}

#[test]
fn a_durable_write_is_recorded_until_its_flush_has_ended_and_takes_as_long_in_a_replay() {
    // Of a queued I/O the write itself is durable.
    let job = "[a]\nrw=randwrite\nbs=4k\nsize=8m\nnumber_ios=50\ndirect=1\nsync=dsync\nioengine=libaio\n";
    let file = jobfile::parse(job, "test.fio", &mut { MACHINE }, Default::default()).expect("a good job");
    for disk in ["wd10ezrx", "su800-128gb", "950pro-256gb"] {
        let model = catalogue::model(disk).expect("a shipped disk");
        let scheduler = SchedulerSpec::parse("mq-deadline").expect("a good scheduler");
        let capacity = model.limits().capacity;
        let setup = Setup {
            plan: &plan::plan(&file, capacity.to_bytes(), 1).expect("it fits"),
            disk: model.build(1),
            scheduler: &scheduler,
            host: Host::FREE,
            memory: &MemoryConfig::settings(),
            seed: 1,
        };
        let recorded = run_and_record(setup, &Watch::default()).expect("it runs to its end");
        for pair in recorded.ios.windows(2) {
            assert_eq!(pair[0].completed, Some(pair[1].queued), "{disk}: each waits for the one before");
        }
        for way in [Way::Closed, Way::Inferred] {
            let pace = Pace::default();
            let settings = replay::Settings {
                way,
                fit: Fit::Refuse,
                recorded: None,
                capacity,
                pace,
                grouping: Default::default(),
            };
            let setup = ReplaySetup {
                plan: &replay::plan(&recorded.ios, &recorded.tables, &settings).expect("it fits"),
                names: &recorded.tables.processes,
                disk: model.build(1),
                scheduler: &scheduler,
                host: Host::FREE,
                memory: &MemoryConfig::settings(),
            };
            let again =
                super::replay(setup, Followed::default(), &Watch::default()).expect("it runs to its end");
            let ratio = again.duration_ns as f64 / recorded.result.duration_ns as f64;
            assert!((ratio - 1.0).abs() < 0.01, "{disk}, {way:?}: {ratio}");
        }
    }
}

#[test]
fn a_cancelled_run_ends_without_a_result() {
    let watch = Watch::default();
    watch.cancel.store(true, Ordering::Relaxed);
    let file = jobfile::parse(
        "[a]\nrw=randread\ndirect=1\nfilename=/dev/disk\nruntime=1000\ntime_based\n",
        "test.fio",
        &mut { MACHINE },
        Default::default(),
    )
    .expect("a good job");
    let model = catalogue::model("optane-900p").expect("a shipped disk");
    let setup = Setup {
        plan: &plan::plan(&file, model.limits().capacity.to_bytes(), 1).expect("it fits"),
        disk: model.build(1),
        scheduler: &SchedulerSpec::parse("none").expect("a good scheduler"),
        host: Host::FREE,
        memory: &MemoryConfig::settings(),
        seed: 1,
    };
    assert_eq!(run(setup, &watch).map(|_| ()), Err(RunError::Cancelled));
}
