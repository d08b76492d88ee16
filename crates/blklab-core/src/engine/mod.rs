//! The event loop: one run of one job file on one disk under one scheduler.
//!
//! Discrete events in integer nanoseconds, one thread, deterministic. The disk model,
//! the scheduler's timer, the flusher and the processes' timers each say when they are
//! due; the earliest goes next. A process that is alone with its CPU work goes on without
//! an event.

mod aio;
mod flusher;
mod process;
mod sync;
pub mod tally;
mod waiters;
mod world;

use std::iter;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use thiserror::Error;

use crate::block::{Block, queue_limits};
use crate::decisions::Decisions;
use crate::disk::{AnyDisk, Disk};
use crate::host::{Cpus, Host};
use crate::pagecache::{MemoryConfig, PAGE_BYTES, PageCache};
use crate::recorder::Window;
use crate::request::ProcessId;
use crate::result::RunResult;
use crate::scheduler::spec::SchedulerSpec;
use crate::scheduler::{AnyScheduler, Task, Tasks};
use crate::tunable::Settings;
use crate::units::{Bytes, Nanos, Sector};
use crate::workload::machine::MEMORY_LEFT;
use crate::workload::plan::{FileKind, FilePlan, Plan, ProcessSpec};
use crate::workload::spec::ExitWhat;
use flusher::Flusher;
use process::Process;
use world::{Owner, PlacedFile, World};

/// Steps between two looks at whether the run is to be ended.
const STEPS_PER_LOOK: u32 = 1 << 12;

/// What a run is made of, beside the processes.
pub struct Setup<'a> {
    /// What runs.
    pub plan: &'a Plan,
    /// The disk, as built from its model.
    pub disk: AnyDisk,
    /// The scheduler, its tunables and the queue's.
    pub scheduler: &'a SchedulerSpec,
    /// The host.
    pub host: Host,
    /// Memory and write-back; see [`crate::pagecache::TUNABLES`].
    pub memory: &'a Settings,
    /// Decides everything random.
    pub seed: u64,
}

/// Lets another thread watch a run and end it.
#[derive(Debug, Default)]
pub struct Watch {
    /// Set to end the run.
    pub cancel: AtomicBool,
    /// Virtual time reached, ns.
    pub now_ns: AtomicU64,
    /// Virtual time by which the run will have ended, ns; 0 if nobody knows.
    pub end_ns: AtomicU64,
}

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// [`Watch::cancel`] was set.
    #[error("cancelled")]
    Cancelled,
    /// Processes wait for what will never happen: a mistake of blklab's own.
    #[error("the simulation stands still at {0}: please report this with the job file and the seed")]
    Stuck(Nanos),
    /// The next thing would happen behind the end of time.
    #[error("the next I/O would be more than 292 years of virtual time away; give the jobs a runtime")]
    Endless,
}

/// Run it.
///
/// # Errors
/// See [`RunError`].
pub fn run(setup: Setup<'_>, watch: &Watch) -> Result<RunResult, RunError> {
    let mut engine = Engine::new(setup, watch);
    engine.run_processes(watch)?;
    Ok(engine.finish())
}

/// Run it, and keep every request and decision of `window`: `detail` and `decisions` of the
/// result.
///
/// # Errors
/// See [`RunError`].
pub fn run_and_keep(setup: Setup<'_>, window: Window, watch: &Watch) -> Result<RunResult, RunError> {
    let mut engine = Engine::new(setup, watch);
    engine.world.block.keep(window);
    engine.world.disk.keep_begins();
    engine.run_processes(watch)?;
    Ok(engine.finish())
}

struct Engine {
    world: World,
    /// Those of the plan, then their threads of POSIX AIO.
    processes: Vec<Process>,
    flusher: Flusher,
    /// Per process of the plan.
    started: Vec<bool>,
    living: usize,
    /// Since the last look at the watch.
    steps: u32,
}

impl Engine {
    fn new(setup: Setup<'_>, watch: &Watch) -> Engine {
        watch.end_ns.store(setup.plan.ends_by().map_or(0, |end| end.0), Ordering::Relaxed);
        let Setup { plan, disk, scheduler, host, memory, seed } = setup;
        let limits = queue_limits(disk.limits(), scheduler.info, &host, &scheduler.queue);
        let tasks = tasks(plan);
        let elevator = AnyScheduler::new(scheduler.info.name, &scheduler.settings, &limits, &tasks)
            .expect("a specification names a scheduler of the registry");
        let max_io = Bytes(u64::from(limits.max_sectors) * crate::units::SECTOR_BYTES);
        let read_ahead = Bytes::from_kib(scheduler.queue.get("read_ahead_kb").unsigned_abs());
        let config = MemoryConfig::new(memory, read_ahead, max_io);
        let locked = plan.processes.iter().fold(0, |sum: u64, one| sum.saturating_add(one.job.lock_memory.0));
        let mut cache = PageCache::new(&MemoryConfig {
            memory: Bytes(config.memory.0.saturating_sub(locked).max(MEMORY_LEFT.0)),
            request_pages: host.partitions.then_some((max_io.0 / PAGE_BYTES) as u32),
            ticks: host.ticks,
            ..config
        });
        let files = place(plan, disk.limits().capacity, host.partitions);
        for file in &files {
            cache.add_file(file.size.0);
        }
        let lock = if host.is_free() { 0 } else { scheduler.info.lock_ns };
        let cpus = Cpus::new(&host, Nanos(lock));
        let block = Block::new(&disk, limits, elevator, tasks, &host);
        let living = plan.processes.len();
        let threads: usize = plan.processes.iter().map(aio::threads).sum();
        let mut world = World::new(block, disk, cache, host, cpus, files, living + threads);
        let mut processes: Vec<_> =
            plan.processes.iter().map(|spec| Process::new(spec, seed, &world)).collect();
        for (index, spec) in plan.processes.iter().enumerate() {
            let first = processes.len() as u32;
            let ids: Vec<_> = (first..).map(ProcessId).take(aio::threads(spec)).collect();
            processes.extend(ids.iter().map(|&id| Process::aio_thread(spec, id, seed, &world)));
            world.aio.push(processes[index].aio_pool(ids));
        }
        Engine {
            world,
            started: vec![false; living],
            processes,
            flusher: Flusher::default(),
            living,
            steps: 0,
        }
    }

    /// Until the last process has ended.
    fn run_processes(&mut self, watch: &Watch) -> Result<(), RunError> {
        let mut owners = Vec::new();
        self.start_processes();
        loop {
            while let Some(id) = self.world.ready.pop_front() {
                self.look(watch)?;
                if id == ProcessId::KERNEL {
                    self.flusher.run(&mut self.world);
                    self.world.leave_cpu();
                    continue;
                }
                self.run_process(id, &mut owners, watch)?;
            }
            if self.living == 0 {
                return Ok(());
            }
            if !self.world.happen(&mut owners) {
                let stuck = self.world.next_event() == Nanos::NEVER;
                return Err(if stuck { RunError::Stuck(self.world.now) } else { RunError::Endless });
            }
            self.tell(&mut owners);
            self.look(watch)?;
        }
    }

    /// Let a process run until it sleeps or has ended. While it works and nobody else is
    /// about to run, the disk goes on beneath it.
    #[inline]
    fn run_process(&mut self, id: ProcessId, owners: &mut Vec<u64>, watch: &Watch) -> Result<(), RunError> {
        self.world.begin(id);
        while let Some(at) = self.processes[id.0 as usize].run(&mut self.world) {
            while self.world.nobody_runs_before(at) && self.world.next_event() <= at {
                self.world.happen(owners);
                self.tell(owners);
            }
            let interrupted = at > self.world.now && !self.world.nobody_runs_before(at);
            if interrupted || at > world::HORIZON {
                self.world.wake(id, at);
                return Ok(());
            }
            self.world.now = at.max(self.world.now);
            self.look(watch)?;
        }
        let ended = self.processes[id.0 as usize].has_ended();
        if ended {
            for &task in self.world.aio[id.0 as usize].threads().iter().chain([&id]) {
                self.world.block.process_exited(self.world.now, task);
            }
        }
        self.world.leave_cpu();
        if ended {
            self.ended(id);
        }
        Ok(())
    }

    /// See now and then whether the run is to be ended.
    #[inline]
    fn look(&mut self, watch: &Watch) -> Result<(), RunError> {
        self.steps += 1;
        if self.steps == STEPS_PER_LOOK {
            self.steps = 0;
            watch.now_ns.store(self.world.now.0, Ordering::Relaxed);
            if watch.cancel.load(Ordering::Relaxed) {
                return Err(RunError::Cancelled);
            }
        }
        Ok(())
    }

    /// Bios have ended: those whom it concerns learn of it.
    #[inline]
    fn tell(&mut self, owners: &mut Vec<u64>) {
        for &owner in owners.iter() {
            match Owner::unpack(owner) {
                Owner::Direct(process, slot) => {
                    self.processes[process.0 as usize].bio_ended(slot, &mut self.world);
                }
                Owner::Pages(index) => self.world.page_bio_ended(index),
                Owner::Flush(process) => self.processes[process.0 as usize].flush_ended(&mut self.world),
            }
        }
        owners.clear();
        // A request's owner is woken before the request is free, and so may take it again
        // before one that waits for it runs.
        self.world.pass_on_request();
    }

    /// Start those processes whose conditions are met.
    fn start_processes(&mut self) {
        for index in 0..self.started.len() {
            let start = &self.processes[index].spec().start;
            let ended =
                |mut range: std::ops::Range<u32>| range.all(|id| self.processes[id as usize].has_ended());
            if self.started[index] || !ended(0..start.barrier) || !start.wait_for.clone().is_none_or(ended) {
                continue;
            }
            let at = start.not_before.max(self.world.now);
            self.started[index] = true;
            let process = &mut self.processes[index];
            process.start(at);
            self.world.wake(process.id(), at);
        }
    }

    fn ended(&mut self, id: ProcessId) {
        self.living -= 1;
        let job = &self.processes[id.0 as usize].spec().job;
        let (group, exit) = (job.group, job.timing.exit);
        for process in &mut self.processes[..self.started.len()] {
            let told = match exit {
                None => false,
                Some(ExitWhat::Group) => process.spec().job.group == group,
                Some(ExitWhat::Stonewall) => self.started[process.id().0 as usize],
                Some(ExitWhat::All) => true,
            };
            if told {
                process.tell_to_end();
            }
        }
        self.start_processes();
    }

    fn finish(mut self) -> RunResult {
        let (processes, threads) = self.processes.split_at_mut(self.started.len());
        let mut jobs: Vec<_> = processes.iter_mut().map(Process::result).collect();
        for thread in threads {
            let owner = thread.serves().map_or(0, |owner| owner.0 as usize);
            let (system, sleeps) = thread.usage();
            jobs[owner].system_ns += system.0;
            jobs[owner].context_switches += sleeps;
        }
        let owners = aio::owners(&self.world.aio);
        let owner = |process: ProcessId| owners.get(process.0 as usize).copied().unwrap_or(-1);
        let (notes, decisions_left_out) = self.world.block.decisions().unzip();
        let disk_busy = self.world.disk.busy();
        let (mut disk, series, trace) = self.world.block.finish(self.world.now);
        disk.disk_busy_ns = disk_busy.0;
        let (series, interval) = series.finish();
        let detail_left_out = trace.left_out();
        let (mut overview, overview_stride, mut detail) = trace.finish();
        aio::attribute(&mut overview, &owners);
        aio::attribute(&mut detail, &owners);
        RunResult {
            duration_ns: self.world.now.0,
            jobs,
            disk,
            series_interval_ns: interval.0,
            overview_stride,
            series,
            overview,
            detail,
            detail_left_out,
            decisions_left_out,
            decisions: Decisions::new(&notes.unwrap_or_default(), owner),
        }
    }
}

/// The processes as schedulers see them, the threads of POSIX AIO behind all others.
fn tasks(plan: &Plan) -> Tasks {
    let task = |spec: &ProcessSpec| Task { prio: spec.job.priorities.base, cgroup: spec.cgroup };
    let threads = plan.processes.iter().flat_map(|spec| iter::repeat_n(task(spec), aio::threads(spec)));
    let cgroups = plan.cgroups.iter().map(|cgroup| cgroup.group.clone()).collect();
    Tasks::new(plan.processes.iter().map(task).chain(threads).collect(), cgroups)
}

/// The plan's files where they lie; `partitions`: as devices of their own.
fn place(plan: &Plan, capacity: Sector, partitions: bool) -> Vec<PlacedFile> {
    let starts = plan.starts(capacity);
    let placed = |(file, start): (&FilePlan, Sector)| PlacedFile {
        start,
        size: file.size,
        is_device: partitions || file.kind == FileKind::Device,
    };
    plan.files.iter().zip(starts).map(placed).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::disk::DiskModel;
    use crate::formats::fio::jobfile::{self, Bare};
    use crate::request::PrioClass;
    use crate::workload::plan;

    const MACHINE: Bare = Bare { memory_mib: 8192, cpus: 4 };

    /// Run `job` to its end and look how many of the sectors that it wrote would be lost
    /// with the power.
    fn volatile_sectors(job: &str, disk: &str, scheduler: &str) -> usize {
        let path = format!("{}/../../python/blklab/disks/{disk}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).expect("a shipped disk");
        let model = DiskModel::parse(&text, &path).expect("a good disk file");
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
        let mut engine = Engine::new(setup, &Watch::default());
        engine.run_processes(&Watch::default()).expect("it runs to its end");
        let dirty = engine.world.cache.counts();
        let sectors = |file: &PlacedFile| file.start.0..file.start.0 + file.size.sectors();
        let lost = engine.world.files.iter().flat_map(sectors);
        let lost = lost.filter(|&sector| !engine.world.disk.is_durable(Sector(sector), 1)).count();
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
    fn schedulers_know_each_process_and_thread_by_its_cgroup_and_priority() {
        let job = "[global]\nsize=1m\n[a]\ncgroup=x\ncgroup_weight=300\nprio=2\n[b]\nnumjobs=2\n\
            [c]\ncgroup=x/y\nioengine=posixaio\nnrfiles=2\nprioclass=3\n";
        let file = jobfile::parse(job, "test.fio", &mut { MACHINE }, Default::default()).expect("a good job");
        let tasks = tasks(&plan::plan(&file, Bytes(1 << 30), 1).expect("it fits"));
        let weights: Vec<_> = tasks.cgroups().iter().map(|group| group.weight).collect();
        assert_eq!(weights, [100, 300, 100]);
        let of = |process: u32| {
            let task = tasks.get(ProcessId(process));
            (task.cgroup.0, task.prio.class, task.prio.level)
        };
        assert_eq!(of(0), (1, PrioClass::BestEffort, 2));
        assert_eq!([of(1), of(2)], [(0, PrioClass::None, 0); 2]);
        // The process, and behind all processes its two threads.
        assert_eq!([of(3), of(4), of(5)], [(2, PrioClass::Idle, 0); 3]);
    }

    #[test]
    fn a_write_that_was_not_synced_can_be_lost() {
        for job in ["[a]\nrw=write\nbs=64k\nsize=8m\n", "[a]\nrw=write\nbs=64k\nsize=8m\ndirect=1\n"] {
            assert!(volatile_sectors(job, "wd10ezrx", "none") > 0);
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
        let path = format!("{}/../../python/blklab/disks/optane-900p.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).expect("a shipped disk");
        let model = DiskModel::parse(&text, &path).expect("a good disk file");
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
