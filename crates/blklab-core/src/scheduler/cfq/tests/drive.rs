//! A disk with one head, and processes that send it requests, in virtual time.

use super::super::Cfq;
use crate::request::{Bio, IoPrio, Op, PrioClass, ProcessId};
use crate::scheduler::journal::{Decision, Note};
use crate::scheduler::testing::{Rig, bio};
use crate::scheduler::{AnyScheduler, Cgroup, CgroupId, QueueLimits, Task, Tasks};
use crate::ticks::Ticks;
use crate::units::{Nanos, Sector};

/// The time of a request at the head's position.
pub(super) const NEAR: Nanos = Nanos::from_millis(1);
/// The time of a request elsewhere.
pub(super) const FAR: Nanos = Nanos::from_millis(8);

pub(super) fn limits(rotational: bool) -> QueueLimits {
    QueueLimits {
        rotational,
        queue_depth: 32,
        hw_queues: 1,
        nr_requests: 128,
        max_sectors: 256,
        wbt_target: Nanos::ZERO,
        wbt_depth: 32,
        cpus: 1,
        ticks: Ticks::per_second(1000),
        merges_priorities: true,
        kernel: crate::kernel::Kernel::LATEST,
    }
}

/// The behaviour of a process.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub class: PrioClass,
    pub level: u8,
    pub cgroup: u16,
    pub op: Op,
    /// Its writes are synchronous.
    pub sync: bool,
    /// The sector of its next request.
    pub next: u64,
    /// The distance from each request to the next.
    pub stride: u64,
    /// Its requests in flight at once.
    pub depth: u32,
    /// Its think time.
    pub think: Nanos,
    /// Its remaining requests.
    pub left: u64,
}

impl Process {
    /// A sequential reader, one request at a time, in its own area of the disk.
    pub fn reader(place: u64) -> Process {
        Process {
            class: PrioClass::BestEffort,
            level: 4,
            cgroup: 0,
            op: Op::Read,
            sync: true,
            next: place * 100_000_000,
            stride: 16,
            depth: 1,
            think: Nanos::ZERO,
            left: u64::MAX,
        }
    }

    /// The same with random requests.
    pub fn random_reader(place: u64) -> Process {
        Process { stride: 100_000, ..Process::reader(place) }
    }

    /// The rank of the class; 0 goes first.
    fn rank(&self) -> u8 {
        match self.class {
            PrioClass::RealTime => 0,
            PrioClass::None | PrioClass::BestEffort => 1,
            PrioClass::Idle => IDLE_RANK,
        }
    }

    /// A writer of asynchronous writes, 64 requests ahead.
    pub fn writer(place: u64) -> Process {
        Process { op: Op::Write, sync: false, depth: 64, ..Process::reader(place) }
    }
}

/// The lowest rank.
const IDLE_RANK: u8 = 2;

/// A served request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    pub process: usize,
    pub asked: Nanos,
    pub began: Nanos,
    pub ended: Nanos,
}

/// Consecutive requests of one process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub process: usize,
    pub requests: u64,
    /// When its first request completed.
    pub first_ended: Nanos,
    /// When its last request completed.
    pub ended: Nanos,
}

impl Turn {
    /// The length of the turn by CFQ's measure: from the completion of its first request.
    pub fn slice_ms(&self) -> f64 {
        self.ended.saturating_sub(self.first_ended).0 as f64 / 1e6
    }
}

/// The disk and its processes.
pub(super) struct Drive {
    pub rig: Rig,
    pub processes: Vec<Process>,
    /// Requests that the disk takes at once; it serves them in order. The driver peeks at one more
    /// before it knows whether the disk takes it (`blk_peek_request`).
    pub depth: usize,
    pub served: Vec<Served>,
    /// The times of each process's next requests, one entry for each that it may send.
    wakes: Vec<Vec<Nanos>>,
    head: u64,
    /// When the oldest request in flight was started, and when it completes.
    busy: Option<(Nanos, Nanos)>,
    /// Requests that were dispatched while one of a higher class waited, or that belong to the idle
    /// class and were dispatched while the disk idled for another class.
    pub overtaken: u64,
    /// How long the disk has been idle while requests waited: now, and at most.
    kept_idle: Nanos,
    pub kept_idle_max: Nanos,
}

impl Drive {
    pub fn new(tunables: &[(&str, i64)], processes: Vec<Process>) -> Drive {
        Drive::with(tunables, processes, &[], limits(true))
    }

    /// With cgroups, given as (number of the parent, weight); the root is number 0.
    pub fn with(
        tunables: &[(&str, i64)],
        processes: Vec<Process>,
        below_root: &[(u16, u16)],
        limits: QueueLimits,
    ) -> Drive {
        let task = |process: &Process| Task {
            prio: IoPrio { class: process.class, level: process.level },
            cgroup: CgroupId(process.cgroup),
            mover: None,
        };
        let root = Cgroup { parent: None, weight: Cgroup::DEFAULT_WEIGHT };
        let below =
            below_root.iter().map(|&(parent, weight)| Cgroup { parent: Some(CgroupId(parent)), weight });
        let groups = std::iter::once(root).chain(below).collect();
        let tasks = Tasks::new(processes.iter().map(task).collect(), groups);
        let mut rig = Rig::with_tasks("cfq", tunables, limits, tasks);
        rig.scheduler.journal().expect("cfq has one").keep(Nanos::ZERO, usize::MAX);
        let wakes = processes.iter().map(|process| vec![Nanos::ZERO; process.depth as usize]).collect();
        Drive {
            rig,
            processes,
            depth: 1,
            served: Vec::new(),
            wakes,
            head: 0,
            busy: None,
            overtaken: 0,
            kept_idle: Nanos::ZERO,
            kept_idle_max: Nanos::ZERO,
        }
    }

    /// Runs until that time.
    pub fn run(&mut self, until: Nanos) {
        loop {
            // The queue runs when a request completes, before its process continues.
            self.dispatch();
            self.submit_all();
            self.dispatch();
            let wakes = self.wakes.iter().flatten().copied().min().unwrap_or(Nanos::NEVER);
            let ends = self.busy.map_or(Nanos::NEVER, |(_, ends)| ends);
            let next = wakes.min(ends).min(self.rig.scheduler.next_timer());
            if next > until {
                return;
            }
            if self.rig.in_flight.is_empty() && !self.rig.waiting.is_empty() {
                self.kept_idle += next - self.rig.now;
                self.kept_idle_max = self.kept_idle_max.max(self.kept_idle);
            }
            self.rig.advance(next.saturating_sub(self.rig.now));
            if ends <= next {
                self.end();
            }
        }
    }

    fn submit_all(&mut self) {
        for index in 0..self.processes.len() {
            while let Some(at) = self.wakes[index].iter().position(|&wake| wake <= self.rig.now) {
                self.wakes[index].swap_remove(at);
                let process = &mut self.processes[index];
                if process.left > 0 {
                    process.left -= 1;
                    let bio = Drive::bio_of(index, process);
                    process.next += process.stride;
                    self.rig.submit(bio);
                }
            }
        }
    }

    fn bio_of(index: usize, process: &Process) -> Bio {
        let prio = IoPrio { class: process.class, level: process.level };
        let process_id = ProcessId(index as u32);
        Bio { sync: process.sync, process: process_id, prio, ..bio(process.op, process.next) }
    }

    /// The disk takes all dispatched requests and starts the oldest.
    fn dispatch(&mut self) {
        while self.rig.in_flight.len() <= self.depth && self.dispatch_one() {}
        let Some((id, _)) = self.rig.in_flight.first().filter(|_| self.busy.is_none()) else { return };
        let Sector(at) = self.rig.requests[*id].sector;
        let time = if at.abs_diff(self.head) <= 64 { NEAR } else { FAR };
        self.head = self.rig.requests[*id].end().0;
        self.busy = Some((self.rig.now, self.rig.now + time));
    }

    /// The disk idles for a process whose slice is not over.
    fn is_kept(&self) -> bool {
        let cfq = self.cfq();
        let now = self.rig.now.0 as i64;
        cfq.idling.is_on() && cfq.active.is_some_and(|q| !cfq.queues[q].slice.is_used(now))
    }

    fn dispatch_one(&mut self) -> bool {
        let rank = |process: ProcessId| self.processes[process.0 as usize].rank();
        let kept = self.is_kept();
        let Some(id) = self.rig.dispatch(0) else { return false };
        let taken = rank(self.rig.requests[id].process);
        let highest = self.rig.waiting.keys().map(|&id| rank(self.rig.requests[id].process)).min();
        let overtaken = highest.is_some_and(|highest| highest < taken) || taken == IDLE_RANK && kept;
        self.overtaken += u64::from(overtaken);
        self.kept_idle = Nanos::ZERO;
        true
    }

    fn end(&mut self) {
        let Some((began, ended)) = self.busy.take() else { return };
        let asked = self.rig.requests[self.rig.in_flight[0].0].inserted;
        for bio in self.rig.complete(0) {
            let process = bio.process.0 as usize;
            self.served.push(Served { process, asked, began, ended });
            self.wakes[process].push(ended + self.processes[process].think);
        }
    }

    /// The turns: consecutive requests of one process.
    pub fn turns(&self) -> Vec<Turn> {
        let mut turns: Vec<Turn> = Vec::new();
        for &Served { process, ended, .. } in &self.served {
            match turns.last_mut().filter(|turn| turn.process == process) {
                Some(turn) => {
                    turn.requests += 1;
                    turn.ended = ended;
                }
                None => turns.push(Turn { process, requests: 1, first_ended: ended, ended }),
            }
        }
        turns
    }

    /// The turns of a process, without its first and the last of all, which may be cut short.
    pub fn whole_turns(&self, process: usize) -> Vec<Turn> {
        let mut turns = self.turns();
        turns.pop();
        turns.into_iter().filter(|turn| turn.process == process).skip(1).collect()
    }

    fn cfq(&self) -> &Cfq {
        let AnyScheduler::Cfq(cfq) = &self.rig.scheduler else { unreachable!("made as one") };
        cfq
    }

    /// The number of CFQ's queues.
    pub fn queues(&self) -> usize {
        self.cfq().queues.len()
    }

    /// Whether the disk queues commands, by CFQ's measurement.
    pub fn hw_tag(&self) -> Option<bool> {
        self.cfq().queueing.found()
    }

    /// The number of served requests of a process.
    pub fn count(&self, process: usize) -> usize {
        self.served.iter().filter(|served| served.process == process).count()
    }

    /// The decisions since the last call.
    pub fn notes(&mut self) -> Vec<Note> {
        self.rig.scheduler.journal().expect("cfq has one").take().0
    }

    /// The number of decisions that match.
    pub fn noted(&mut self, wanted: impl Fn(&Decision) -> bool) -> usize {
        self.notes().iter().filter(|note| wanted(&note.decision)).count()
    }
}
