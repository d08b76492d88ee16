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
    run_followed(setup, Followed::default(), watch)
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

/// Runs the simulation; the requests and decisions of a window are `detail` and `decisions` of the result.
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
mod tests;
