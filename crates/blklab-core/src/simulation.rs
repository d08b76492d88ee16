//! A simulation: one job file on one disk under one scheduler, and its result.

use std::sync::atomic::Ordering;

use blklab_base::recorded::{self, Header, Io, Level, Names, SIMULATOR, Tables};
use thiserror::Error;

use crate::block::KERNEL;
use crate::decisions::Decisions;
use crate::device::{DeviceId, Layout};
use crate::disk::{AnyDisk, Disk};
use crate::engine::{
    Attached, DeviceMeasured, Engine, Followed, Journal, Machine, Measured, RunError, Watch, World,
};
use crate::formats::fio::options::PERCENTILES;
use crate::host::Host;
use crate::recorder::SeriesRecorder;
use crate::request::ProcessId;
use crate::result::{DiskCounters, DiskTrace, JobResult, RunResult};
use crate::scheduler::CgroupId;
use crate::scheduler::spec::SchedulerSpec;
use crate::source::beside::Beside;
use crate::source::fio::{Fio, Jobs};
use crate::source::replay::{Replay, ReplayError, ReplayIo, ReplayPlan, Replayed, THE_RECORDING};
use crate::tunable::Settings;
use crate::units::{Bytes, Nanos};
use crate::workload::cgroups::Cgroups;
use crate::workload::journal::JournalPlan;
use crate::workload::plan::Plan;

/// The parts of a simulation.
pub struct Setup<'a> {
    /// The processes and files.
    pub plan: &'a Plan,
    /// The disk, built from its model.
    pub disk: AnyDisk,
    /// The scheduler, its tunables and the queue's.
    pub scheduler: &'a SchedulerSpec,
    /// The host.
    pub host: Host,
    /// Memory and writeback; see [`crate::pagecache::TUNABLES`].
    pub memory: &'a Settings,
    /// The seed of all random choices.
    pub seed: u64,
}

impl Setup<'_> {
    /// The run, not started.
    fn engine(self, watch: &Watch) -> Engine<Fio> {
        let Setup { plan, disk, scheduler, host, memory, seed } = self;
        watch.end_ns.store(plan.ends_by().map_or(0, |end| end.0), Ordering::Relaxed);
        let capacity = disk.limits().capacity;
        let machine = Machine {
            disks: vec![Attached { disk, scheduler }],
            host,
            memory,
            locked: Fio::locked(plan),
            takes_places: Fio::takes_places(plan),
            tasks: Fio::tasks(plan),
            processes: Fio::count(plan),
        };
        let layout = Layout::in_a_row(&plan.files, DeviceId(0), capacity);
        let mut world = machine.build(if host.partitions { layout.as_partitions() } else { layout });
        add_journal(plan, &host, &mut world);
        let fio = Fio::new(plan, seed, &world);
        Engine::new(world, fio)
    }
}

/// Gives the file system of the plan's files its journal, if it has one.
fn add_journal(plan: &Plan, host: &Host, world: &mut World) {
    if let Some(kind) = host.journal.filter(|_| !host.partitions) {
        let limits = world.devices[DeviceId(0)].disk.limits();
        let (capacity, physical) = (limits.capacity, Bytes(limits.physical_block_bytes.into()));
        let in_the_middle = || JournalPlan::in_the_middle(kind, capacity, physical);
        let place = plan.journal.clone().unwrap_or_else(in_the_middle);
        world.set_journal(Journal::new(DeviceId(0), place, plan.files.len(), host.lazytime));
    }
}

/// Runs the simulation.
///
/// # Errors
/// See [`RunError`].
pub fn run(setup: Setup<'_>, watch: &Watch) -> Result<RunResult, RunError> {
    setup.engine(watch).run(watch).map(result)
}

/// Runs the simulation with a replay beside its processes: the jobs of the result are followed by one for
/// each recorded process; their names are in `names`.
///
/// # Errors
/// See [`ReplayFailed`].
pub fn run_beside(
    setup: Setup<'_>,
    replayed: &ReplayPlan,
    names: &Names,
    followed: Followed,
    watch: &Watch,
) -> Result<RunResult, ReplayFailed> {
    let Setup { plan, disk, scheduler, host, memory, seed } = setup;
    let first = Fio::count(plan);
    let members = replayed.members();
    let mut cgroups = plan.cgroups.clone();
    let ids = cgroups.join(&replayed.cgroups, THE_RECORDING).map_err(ReplayFailed::Weights)?;
    let tasks = Fio::tasks(plan).and(&replayed.tasks(), cgroups.groups(), &ids);
    let capacity = disk.limits().capacity;
    let machine = Machine {
        disks: vec![Attached { disk, scheduler }],
        host,
        memory,
        locked: Fio::locked(plan),
        takes_places: true,
        tasks: tasks.clone(),
        processes: first + replayed.processes.len(),
    };
    let layout = Layout::in_a_row(&plan.files, DeviceId(0), capacity);
    let mut world = machine.build(if host.partitions { layout.as_partitions() } else { layout });
    add_journal(plan, &host, &mut world);
    let fio = Fio::new(plan, seed, &world);
    let placed = |io: &ReplayIo| ReplayIo { cgroup: ids[usize::from(io.cgroup.0)], ..*io };
    let ios = replayed.ios.iter().map(placed).collect();
    let replay = Replay::new(ios, first as u32, &tasks, &world)?;
    let mut engine = Engine::new(world, Beside::new(fio, replay, first as u32));
    engine.follow(followed);
    let Measured { duration, source: (mut jobs, mut again), devices } = engine.run(watch)?;
    let mut results = std::mem::take(&mut jobs.results);
    let before = results.len() as i64;
    name_jobs(&mut again, replayed, names);
    results.append(&mut again.jobs);
    let owner = |process: ProcessId| match (process.0 as usize).checked_sub(first) {
        Some(id) if !process.is_kernels() => before + i64::from(members.process(id as u32).0),
        _ => jobs.owner(process),
    };
    let attribute = |trace: &mut DiskTrace| {
        for process in trace.process.iter_mut().filter(|process| **process >= 0) {
            *process = owner(ProcessId(*process as u32));
        }
    };
    Ok(assembled(duration, results, devices, owner, attribute))
}

fn name_jobs(replayed: &mut Replayed, plan: &ReplayPlan, names: &Names) {
    for (job, name) in replayed.jobs.iter_mut().zip(plan.job_names(names)) {
        job.name = name;
        job.percentiles = PERCENTILES.to_vec();
    }
}

/// Runs the simulation and follows it so: a window is kept in `detail` and `decisions` of the result.
///
/// # Errors
/// See [`RunError`].
pub fn run_followed(setup: Setup<'_>, followed: Followed, watch: &Watch) -> Result<RunResult, RunError> {
    let mut engine = setup.engine(watch);
    engine.follow(followed);
    engine.run(watch).map(result)
}

/// A run and the recording of its I/O.
pub struct Recorded {
    /// The run.
    pub result: RunResult,
    /// All bios, by time; a process is named after its job, and its number is 1 for the first.
    pub ios: Vec<Io>,
    /// Their names.
    pub tables: Tables,
    /// What a recording says of itself.
    pub header: Header,
}

/// Runs the simulation and records its I/O as it comes to the block layer.
///
/// # Errors
/// See [`RunError`].
pub fn run_and_record(setup: Setup<'_>, watch: &Watch) -> Result<Recorded, RunError> {
    let header = header(&setup.disk, setup.scheduler);
    let plan = setup.plan;
    let mut engine = setup.engine(watch);
    engine.record();
    let mut measured = engine.run(watch)?;
    let mut ios = std::mem::take(&mut measured.devices[0].recorded);
    let jobs = &measured.source;
    let owner = |process: u32| usize::try_from(jobs.owner(ProcessId(process))).ok();
    let name = |process: u32| owner(process).map_or("", |owner| &jobs.results[owner].name);
    let mut tables = named(&mut ios, name);
    // A job file without cgroups says nothing of them.
    if plan.cgroups.has_any() {
        tables.cgroups = numbered(&plan.cgroups);
        for io in ios.iter_mut().filter(|io| io.pid != KERNEL) {
            let process = owner(io.pid - 1).and_then(|owner| plan.processes.get(owner));
            io.cgroup = process.map_or(0, |process| number_of(process.cgroup));
        }
    }
    Ok(Recorded { result: result(measured), ios, tables, header })
}

/// The number of a cgroup in a recording; as in the kernel, the root's is 1.
fn number_of(cgroup: CgroupId) -> u64 {
    u64::from(cgroup.0) + 1
}

/// The paths of these cgroups by their numbers.
fn numbered(cgroups: &Cgroups) -> recorded::Cgroups {
    let mut paths = recorded::Cgroups::default();
    for (number, cgroup) in (1..).zip(cgroups.all()) {
        paths.set(number, &format!("/{}", cgroup.path));
    }
    paths
}

/// The header of a recording of a run on that disk.
fn header(disk: &AnyDisk, scheduler: &SchedulerSpec) -> Header {
    Header {
        scheduler: Some(scheduler.label()),
        source: SIMULATOR.to_owned(),
        level: Level::Bio,
        resolution: Nanos(1),
        capacity: Some(disk.limits().capacity),
        ..Header::default()
    }
}

/// Gives the I/Os their names: of the device, and of each process, numbered from 0.
fn named<'a>(ios: &mut [Io], name: impl Fn(u32) -> &'a str) -> Tables {
    let mut tables = Tables::default();
    let device = tables.devices.id("8:0");
    let flusher = tables.processes.id("kworker");
    for io in ios {
        io.device = device;
        io.process = if io.pid == KERNEL { flusher } else { tables.processes.id(name(io.pid - 1)) };
    }
    tables
}

/// The parts of a replay.
pub struct ReplaySetup<'a> {
    /// The I/Os and processes.
    pub plan: &'a ReplayPlan,
    /// The names of the processes.
    pub names: &'a Names,
    /// The disk, built from its model.
    pub disk: AnyDisk,
    /// The scheduler, its tunables and the queue's.
    pub scheduler: &'a SchedulerSpec,
    /// The host.
    pub host: Host,
    /// Memory and writeback; a replay does not use them.
    pub memory: &'a Settings,
}

impl ReplaySetup<'_> {
    fn engine(self, watch: &Watch) -> Result<Engine<Replay>, ReplayError> {
        let ReplaySetup { plan, disk, scheduler, host, memory, .. } = self;
        let end = plan.ios.iter().map(|io| io.start.not_before).max().unwrap_or_default();
        watch.end_ns.store(end.0, Ordering::Relaxed);
        let tasks = plan.tasks();
        let machine = Machine {
            disks: vec![Attached { disk, scheduler }],
            host,
            memory,
            locked: Bytes(0),
            takes_places: true,
            tasks: tasks.clone(),
            processes: plan.processes.len(),
        };
        let world = machine.build(Layout::default());
        let replay = Replay::new(plan.ios.clone(), 0, &tasks, &world)?;
        Ok(Engine::new(world, replay))
    }
}

/// Replays a recording: a job for each of its processes.
///
/// # Errors
/// See [`ReplayFailed`].
pub fn replay(setup: ReplaySetup<'_>, followed: Followed, watch: &Watch) -> Result<RunResult, ReplayFailed> {
    let (plan, names) = (setup.plan, setup.names);
    let mut engine = setup.engine(watch)?;
    engine.follow(followed);
    let measured = engine.run(watch)?;
    Ok(result_of_replay(measured, plan, names))
}

/// Replays a recording, and records that.
///
/// # Errors
/// See [`ReplayFailed`].
pub fn replay_and_record(setup: ReplaySetup<'_>, watch: &Watch) -> Result<Recorded, ReplayFailed> {
    let (plan, names, header) = (setup.plan, setup.names, header(&setup.disk, setup.scheduler));
    let mut engine = setup.engine(watch)?;
    engine.record();
    let mut measured = engine.run(watch)?;
    let mut ios = std::mem::take(&mut measured.devices[0].recorded);
    let members: Vec<_> = plan.members().iter().collect();
    let of = |member: u32| &plan.processes[members[member as usize].0.0 as usize];
    let mut tables = named(&mut ios, |member| names.name(of(member).name));
    let has_cgroups = plan.cgroups.has_any();
    if has_cgroups {
        tables.cgroups = numbered(&plan.cgroups);
    }
    for io in ios.iter_mut().filter(|io| io.pid != KERNEL) {
        let member = io.pid - 1;
        io.pid = of(member).pid;
        io.cgroup = if has_cgroups { number_of(members[member as usize].1) } else { 0 };
    }
    Ok(Recorded { result: result_of_replay(measured, plan, names), ios, tables, header })
}

fn result_of_replay(mut measured: Measured<Replayed>, plan: &ReplayPlan, names: &Names) -> RunResult {
    name_jobs(&mut measured.source, plan, names);
    let Measured { duration, source, devices } = measured;
    let members = plan.members();
    let owner = |member: ProcessId| match member {
        ProcessId::KERNEL => -1,
        ProcessId(member) => members.process(member).0.into(),
    };
    let attribute = |trace: &mut DiskTrace| {
        for process in trace.process.iter_mut().filter(|process| **process >= 0) {
            *process = owner(ProcessId(*process as u32));
        }
    };
    assembled(duration, source.jobs, devices, owner, attribute)
}

/// Why a replay has no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReplayFailed {
    /// The I/Os do not fit the machine.
    #[error(transparent)]
    Refused(#[from] ReplayError),
    /// A cgroup has two weights.
    #[error("{0}")]
    Weights(String),
    /// The run has failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// The result of fio's processes on any number of devices.
pub fn result(measured: Measured<Jobs>) -> RunResult {
    let Measured { duration, mut source, devices } = measured;
    let results = std::mem::take(&mut source.results);
    let jobs = source;
    assembled(duration, results, devices, |process| jobs.owner(process), |trace| jobs.attribute(trace))
}

fn assembled(
    duration: Nanos,
    jobs: Vec<JobResult>,
    devices: Vec<DeviceMeasured>,
    owner: impl Fn(ProcessId) -> i64,
    attribute: impl Fn(&mut DiskTrace),
) -> RunResult {
    let counters: Vec<_> = devices.iter().map(|device| device.counters).collect();
    let mut all_series = Vec::new();
    let mut of_first = None;
    for DeviceMeasured { series, trace, decisions, .. } in devices {
        all_series.push(series);
        of_first.get_or_insert((trace, decisions));
    }
    let (series, interval) = SeriesRecorder::finish_all(&all_series);
    let (levels, percentiles) = SeriesRecorder::steadiness(&all_series);
    let (trace, decisions) = of_first.expect("a machine has a device");
    let (notes, decisions_left_out) = decisions.unzip();
    let detail_left_out = trace.left_out();
    let (mut overview, overview_stride, mut detail) = trace.finish();
    attribute(&mut overview);
    attribute(&mut detail);
    RunResult {
        duration_ns: duration.0,
        disk: DiskCounters::sum(&counters),
        devices: if counters.len() > 1 { counters } else { Vec::new() },
        series_interval_ns: interval.0,
        overview_stride,
        series,
        levels,
        percentiles,
        overview,
        detail,
        detail_left_out,
        decisions_left_out,
        decisions: Decisions::new(&notes.unwrap_or_default(), owner),
        jobs,
    }
}

#[cfg(test)]
mod tests {
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
        let written =
            world.layout.files().iter().flat_map(PlacedFile::extents).flat_map(|extent| extent.range());
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

    /// Direct reads by one process on a disk that serves one command at a time, each in 5 ms; CPU
    /// work takes no time but where the host's settings say so.
    fn direct_reads(options: &str, host: &[(&str, &str)]) -> RunResult {
        let disk = catalogue::model("constant").expect("a shipped disk");
        let disk =
            disk.with_override("service_us", "5000").and_then(|disk| disk.with_override("queue_depth", "1"));
        let model = disk.expect("good values");
        let job = format!("[a]\nfilename=/dev/disk\nrw=read\nbs=4k\ndirect=1\n{options}\n");
        let file =
            jobfile::parse(&job, "test.fio", &mut { MACHINE }, Default::default()).expect("a good job");
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

    #[test]
    fn writeback_of_a_file_is_one_bio_for_all_pages_that_follow_each_other_on_the_disk() {
        let job = "[a]\nrw=write\nbs=64k\nsize=9m\nend_fsync=1\n";
        let file = jobfile::parse(job, "test.fio", &mut { MACHINE }, Default::default()).expect("a good job");
        let model = catalogue::model("su800-128gb").expect("a shipped disk");
        let capacity = model.limits().capacity.to_bytes();
        let sizes = |scheduler: &str, extents: &[std::ops::Range<u64>]| {
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
            let result = run(setup, &Watch::default()).expect("it runs to its end");
            let write = |&row: &usize| result.overview.op[row] == 1;
            let rows = (0..result.overview.op.len()).filter(write);
            rows.map(|row| result.overview.sectors[row]).collect::<Vec<_>>()
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
}
