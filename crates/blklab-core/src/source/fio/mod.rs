//! fio's processes as a source of I/O: closed loop, from a job file.
//!
//! [`Process`] is one process of fio. This file connects them: when each starts
//! (`stonewall`, `wait_for`, `startdelay`), which ends end others (`exitall`), and the threads of
//! POSIX AIO, which are processes for the engine and for schedulers.

pub mod issuer;
mod pool;
mod process;
pub mod tally;
pub mod units;

use std::iter;

use crate::engine::{Hold, Ran, Source, World};
use crate::owner::Actor;
use crate::pagecache::FileId;
use crate::request::ProcessId;
use crate::result::{DiskTrace, JobResult};
use crate::scheduler::{Task, Tasks};
use crate::units::{Bytes, Nanos};
use crate::workload::plan::{Plan, ProcessSpec};
use crate::workload::spec::Durability;
use process::Process;

/// The processes of a plan.
pub struct Fio {
    /// The processes of the plan, then their threads of POSIX AIO.
    processes: Vec<Process>,
    /// Per process of the plan.
    started: Vec<bool>,
    /// Processes of the plan that have not started, in order.
    waiting: Vec<usize>,
    living: usize,
    /// Per process, including threads: its process of the plan.
    owners: Vec<u32>,
}

/// The measurements of fio's processes.
pub struct Jobs {
    /// One per process of the plan.
    pub results: Vec<JobResult>,
    owners: Vec<u32>,
}

impl Jobs {
    /// The process of the plan for `process`, which may be a thread; -1 for the kernel.
    pub fn owner(&self, process: ProcessId) -> i64 {
        self.owners.get(process.0 as usize).map_or(-1, |&owner| owner.into())
    }

    /// Attributes the I/O of threads in `trace` to their processes.
    pub fn attribute(&self, trace: &mut DiskTrace) {
        for process in trace.process.iter_mut().filter(|process| **process >= 0) {
            *process = self.owners[*process as usize].into();
        }
    }
}

impl Fio {
    /// The processes for the schedulers; the threads of POSIX AIO come last.
    pub fn tasks(plan: &Plan) -> Tasks {
        let task =
            |spec: &ProcessSpec| Task { prio: spec.job.priorities.base, cgroup: spec.cgroup, mover: None };
        let threads = plan.processes.iter().flat_map(|spec| iter::repeat_n(task(spec), pool::threads(spec)));
        Tasks::new(plan.processes.iter().map(task).chain(threads).collect(), plan.cgroups.groups())
    }

    /// The number of processes, including threads.
    pub fn count(plan: &Plan) -> usize {
        plan.processes.len() + plan.processes.iter().map(pool::threads).sum::<usize>()
    }

    /// Memory that all processes lock together (`lockmem`).
    pub fn locked(plan: &Plan) -> Bytes {
        Bytes(plan.processes.iter().fold(0, |sum: u64, one| sum.saturating_add(one.job.lock_memory.0)))
    }

    /// Some of its I/O takes a place in the throttle of writeback: writes through the page cache, flushes and
    /// discards.
    pub fn takes_places(plan: &Plan) -> bool {
        plan.processes.iter().any(|ProcessSpec { job, .. }| {
            !job.queueing.direct || job.durability != Durability::default() || job.access.rw.trims()
        })
    }

    /// The processes of `plan` in `world`; its layout has the plan's files.
    pub fn new(plan: &Plan, seed: u64, world: &World) -> Fio {
        let living = plan.processes.len();
        let mut processes: Vec<_> =
            plan.processes.iter().map(|spec| Process::new(spec, seed, world)).collect();
        let mut owners: Vec<_> = (0..living as u32).collect();
        for (owner, spec) in (0..).zip(&plan.processes) {
            let first = processes.len() as u32;
            let ids: Vec<_> = (first..).map(ProcessId).take(pool::threads(spec)).collect();
            if ids.is_empty() {
                continue;
            }
            let pool = processes[owner as usize].use_threads(ids.clone());
            for id in ids {
                processes.push(Process::aio_thread(spec, id, seed, world, pool.clone()));
                owners.push(owner);
            }
        }
        share_files(plan, world, &mut processes, &owners);
        share_pages(plan, &mut processes);
        Fio { processes, started: vec![false; living], waiting: (0..living).collect(), living, owners }
    }

    /// Starts the processes with fulfilled conditions.
    fn start_processes(&mut self, world: &mut World) {
        let Fio { processes, started, waiting, .. } = self;
        waiting.retain(|&index| {
            let start = &processes[index].spec().start;
            if !start.is_met(|id| processes[id as usize].has_ended()) {
                return true;
            }
            let at = start.not_before.max(world.now());
            started[index] = true;
            let process = &mut processes[index];
            process.start(at);
            world.wake(Actor::Process(process.id()), at);
            false
        });
    }

    /// A process has ended: others may start, or must end.
    fn ended(&mut self, id: ProcessId, world: &mut World) {
        self.processes[id.0 as usize].exit(world);
        self.living -= 1;
        let others = if self.processes[id.0 as usize].spec().ends_others() { self.started.len() } else { 0 };
        for other in 0..others {
            let [spec, others] = [id.0 as usize, other].map(|index| self.processes[index].spec());
            if spec.ends(others, self.started[other]) {
                self.processes[other].tell_to_end();
            }
        }
        self.start_processes(world);
    }
}

/// How a process uses a file of a file system: it wants its lock alone, sometimes or always, or it shares it.
fn locks(spec: &ProcessSpec, world: &World) -> Option<Hold> {
    let files = world.host.files();
    let (direct, writes) = (spec.job.queueing.direct, spec.job.access.rw.writes());
    match (direct, writes) {
        (false, true) => Some(Hold::Alone),
        // Without a journal nothing has a real file system's locks but these.
        _ if !world.has_journal() => None,
        (true, true) if files.first_write_is_alone => Some(Hold::Alone),
        (true, _) => Some(Hold::Shared),
        (false, false) => files.buffered_reads_lock.then_some(Hold::Shared),
    }
}

/// Tells each process that uses a file of a file system together with others, of which some want its lock alone.
fn share_files(plan: &Plan, world: &World, processes: &mut [Process], owners: &[u32]) {
    let hold = |owner: u32| locks(&plan.processes[owner as usize], world);
    let files = |owner: u32| {
        let own = if hold(owner).is_some() { &plan.processes[owner as usize].regions[..] } else { &[] };
        own.iter().map(|region| FileId(region.file)).filter(|&file| !world.layout.file(file).is_device)
    };
    // A process of POSIX AIO does nothing itself, its threads do.
    let does_io = |owner: u32| pool::threads(&plan.processes[owner as usize]) == 0;
    // By file: how many use it, and whether one of them wants it alone.
    let mut users = vec![(0_u32, false); plan.files.len()];
    for (number, &owner) in owners.iter().enumerate() {
        if number as u32 != owner || does_io(owner) {
            for file in files(owner) {
                let (count, alone) = &mut users[file.index()];
                *count += 1;
                *alone |= hold(owner) == Some(Hold::Alone);
            }
        }
    }
    for (process, &owner) in processes.iter_mut().zip(owners) {
        if files(owner).any(|file| matches!(users[file.index()], (2.., true))) {
            process.share_files();
        }
    }
}

/// Some process writes a file through the page cache: tells all processes that use this file. The fsync of each of them
/// writes the dirty pages, also if its own I/O is direct.
fn share_pages(plan: &Plan, processes: &mut [Process]) {
    let dirties = |spec: &&ProcessSpec| !spec.job.queueing.direct && spec.job.access.rw.writes();
    let mut are_dirtied = vec![false; plan.files.len()];
    for region in plan.processes.iter().filter(dirties).flat_map(|spec| spec.regions.iter()) {
        are_dirtied[region.file as usize] = true;
    }
    for process in processes {
        if process.spec().regions.iter().any(|region| are_dirtied[region.file as usize]) {
            process.share_pages();
        }
    }
}

impl Source for Fio {
    type Measured = Jobs;

    fn begin(&mut self, world: &mut World) {
        self.start_processes(world);
    }

    #[inline(always)]
    fn run(&mut self, id: ProcessId, world: &mut World) -> Ran {
        let process = &mut self.processes[id.0 as usize];
        let ran = process.run(world);
        if ran == Ran::Asleep && process.has_ended() {
            self.ended(id, world);
        }
        ran
    }

    #[inline(always)]
    fn bio_ended(&mut self, process: ProcessId, io: u32, world: &mut World) {
        self.processes[process.0 as usize].bio_ended(io, world);
    }

    fn flush_ended(&mut self, process: ProcessId, world: &mut World) {
        self.processes[process.0 as usize].flush_ended(world);
    }

    fn has_ended(&self) -> bool {
        self.living == 0
    }

    fn stop(&mut self, now: Nanos) {
        let begun = self.processes.iter_mut().zip(&self.started).filter(|(_, started)| **started);
        begun.for_each(|(process, _)| process.stop(now));
    }

    fn finish(mut self) -> Jobs {
        let (processes, threads) = self.processes.split_at_mut(self.started.len());
        let mut results: Vec<_> = processes.iter_mut().map(Process::result).collect();
        for (thread, &owner) in threads.iter().zip(&self.owners[processes.len()..]) {
            let (system, sleeps) = thread.usage();
            results[owner as usize].system_ns += system.0;
            results[owner as usize].context_switches += sleeps;
        }
        Jobs { results, owners: self.owners }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::fio::jobfile::{self, Bare};
    use crate::request::PrioClass;
    use crate::workload::plan;

    #[test]
    fn schedulers_know_each_process_and_thread_by_its_cgroup_and_priority() {
        let job = "[global]\nsize=1m\n[a]\ncgroup=x\ncgroup_weight=300\nprio=2\n[b]\nnumjobs=2\n\
            [c]\ncgroup=x/y\nioengine=posixaio\nnrfiles=2\nprioclass=3\n";
        let mut machine = Bare { memory_mib: 8192, cpus: 4 };
        let file = jobfile::parse(job, "test.fio", &mut machine, Default::default()).expect("a good job");
        let tasks = Fio::tasks(&plan::plan(&file, Bytes(1 << 30), 1).expect("it fits"));
        let weights: Vec<_> = tasks.cgroups().iter().map(|group| group.weight).collect();
        assert_eq!(weights, [100, 300, 100]);
        let of = |process: u32| {
            let task = tasks.get(ProcessId(process));
            (task.cgroup.0, task.prio.class, task.prio.level)
        };
        assert_eq!(of(0), (1, PrioClass::BestEffort, 2));
        assert_eq!([of(1), of(2)], [(0, PrioClass::None, 0); 2]);
        // The process; its two threads come after all processes.
        assert_eq!([of(3), of(4), of(5)], [(2, PrioClass::Idle, 0); 3]);
    }
}
