//! Processes and their queues: the queue of each request, splits, exits of processes.

use super::Bfq;
use super::parts::QueueId;
use super::parts::burst::{Membership, Newcomer};
use super::parts::raising::Raising;
use super::queue::{BfqQueue, Learnt, TaskIndex};
use super::slots::Stage;
use crate::request::{IoPrio, PrioClass, ProcessId, RequestId};
use crate::scheduler::journal::{Decision, EndReason};
use crate::scheduler::shared::wf2q::{Class, weight_of_level};
use crate::scheduler::{CgroupId, Queue};

/// The level of a process without a priority, as with nice 0.
const DEFAULT_LEVEL: u8 = 4;
const LEVELS: u8 = 8;
const CLASSES: [Class; 3] = [Class::RealTime, Class::BestEffort, Class::Idle];
/// Asynchronous queues of a group: eight levels of two classes, and one for the idle class.
pub(super) const ASYNC_QUEUES: usize = 2 * LEVELS as usize + 1;

/// What a process's queue had learned before the merge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    pub learnt: Learnt,
    pub burst: Membership,
    pub weight: u32,
    pub raising: Raising,
}

/// A process as BFQ knows it (`bfq_io_cq`).
#[derive(Debug)]
pub(super) struct Task {
    /// Async, sync.
    pub queues: [Option<QueueId>; 2],
    /// Requests that have not completed.
    pub requests: u32,
    pub prio: IoPrio,
    pub cgroup: CgroupId,
    pub saved: Saved,
    /// The queue of the planned stable merge.
    pub stable_merge: Option<QueueId>,
    /// A stable merge was done.
    pub stably_merged: bool,
}

impl Task {
    fn new(prio: IoPrio, cgroup: CgroupId) -> Task {
        let nothing = BfqQueue::vacant();
        let saved = Saved {
            learnt: nothing.learnt,
            burst: Membership::default(),
            weight: 0,
            raising: nothing.raising,
        };
        let (queues, requests) = ([None; 2], 0);
        Task { queues, requests, prio, cgroup, saved, stable_merge: None, stably_merged: false }
    }
}

/// The class as an index, and the level: no class is best effort; the idle class has one level.
fn class_and_level(prio: IoPrio) -> (u8, u8) {
    match prio.class {
        PrioClass::RealTime => (0, prio.level.min(LEVELS - 1)),
        PrioClass::None => (1, DEFAULT_LEVEL),
        PrioClass::BestEffort => (1, prio.level.min(LEVELS - 1)),
        PrioClass::Idle => (2, LEVELS - 1),
    }
}

/// The kernel's own thread comes first.
pub(super) fn task_index(process: ProcessId) -> TaskIndex {
    TaskIndex(process.0.wrapping_add(1))
}

/// The process that the queue was created for.
fn process_of(queue: &BfqQueue) -> ProcessId {
    ProcessId(queue.made_for.0.wrapping_sub(1))
}

impl Bfq {
    /// The process of a queue, for the journal.
    pub(super) fn process_of(&self, q: QueueId) -> ProcessId {
        process_of(&self.queues[q.index()])
    }

    fn know(&mut self, queue: &Queue<'_>, process: ProcessId) -> TaskIndex {
        let task = task_index(process);
        while self.tasks.len() <= task.index() {
            let known = queue.tasks.get(ProcessId((self.tasks.len() as u32).wrapping_sub(1)));
            self.tasks.push(Task::new(known.prio, known.cgroup));
        }
        task
    }

    /// Assigns a new request to its queue (`bfq_init_rq`).
    pub(super) fn assign(&mut self, queue: &Queue<'_>, id: RequestId) {
        if self.slots.stage(id) != Stage::Gone {
            return;
        }
        let request = &queue.requests[id];
        self.clock.stands_still = request.clock_stands;
        let task = self.know(queue, request.process);
        let q = self.queue_for(task, request.sync);
        self.wf2q.request_allocated(q);
        self.tasks[task.index()].requests += 1;
        self.slots.assign(id, request, task, q);
        let own = &mut self.queues[q.index()];
        if own.merge_into.is_none() && own.process_refs == 1 {
            own.owner = Some(task);
        }
        self.consider_burst(q);
    }

    /// The first request of a new queue starts a burst or joins one.
    fn consider_burst(&mut self, q: QueueId) {
        if !self.queues[q.index()].just_created {
            return;
        }
        let newcomer = Newcomer {
            queue: q,
            group: self.group(q),
            split_time: self.queues[q.index()].split_time,
            beside_busy: self.total_busy() > 0,
        };
        let Bfq { burst, clock, queues, journal, .. } = self;
        burst.arrives(newcomer, clock, |member| {
            if journal.is_kept() {
                journal.note(clock.run, process_of(&queues[member.index()]), Decision::LargeBurst);
            }
        });
    }

    /// The process's queue; a new one if the process has none, or if it shares one that is to be
    /// split (`bfq_get_bfqq_handle_split`).
    fn queue_for(&mut self, task: TaskIndex, sync: bool) -> QueueId {
        let Some(q) = self.tasks[task.index()].queues[usize::from(sync)] else {
            return self.new_queue_of(task, sync, false);
        };
        let queue = &self.queues[q.index()];
        if !queue.coop || !queue.split_coop || self.tasks[task.index()].stably_merged {
            return q;
        }
        let waker = self.waker_after_split(q);
        if self.burst.marks(q) {
            self.tasks[task.index()].saved.burst.mark();
        }
        self.note(q, Decision::QueueSplit);
        let queue = &mut self.queues[q.index()];
        if queue.process_refs == 1 && queue.merge_into.is_none() {
            // The other processes are gone: the queue belongs to this process alone.
            queue.coop = false;
            queue.split_coop = false;
            self.resume_state(q, task);
            return q;
        }
        self.set_task_queue(task, true, None);
        self.put_cooperators(q);
        self.release_process_ref(q);
        let q = self.new_queue_of(task, sync, true);
        self.resume_state(q, task);
        if let Some(waker) = waker {
            self.wakers.link(q, waker);
        }
        q
    }

    /// The waker that a process keeps when its queue is split off (`bfq_waker_bfqq`).
    fn waker_after_split(&self, q: QueueId) -> Option<QueueId> {
        let waker = self.wakers.waker_of(q)?;
        let mut at = self.queues[q.index()].merge_into;
        while let Some(next) = at {
            if next == waker {
                return (self.queues[waker.index()].process_refs != 1).then_some(waker);
            }
            at = self.queues[next.index()].merge_into;
        }
        (self.queues[waker.index()].process_refs != 0).then_some(waker)
    }

    /// `__bfq_get_bfqq_handle_split` for a process without a queue.
    fn new_queue_of(&mut self, task: TaskIndex, sync: bool, split: bool) -> QueueId {
        let q = self.get_queue(task, sync, split);
        self.set_task_queue(task, sync, Some(q));
        if split && sync {
            self.burst.resume(q, self.tasks[task.index()].saved.burst);
            self.queues[q.index()].split_time = self.clock.jiffies;
        }
        q
    }

    /// `bfq_get_queue`: a new queue, or the group's asynchronous one of that priority.
    fn get_queue(&mut self, task: TaskIndex, sync: bool, split: bool) -> QueueId {
        let Task { prio, cgroup, .. } = self.tasks[task.index()];
        let (class, level) = class_and_level(prio);
        if sync {
            let q = self.make_queue(task, true, class, level, cgroup);
            self.queues[q.index()].process_refs = 1;
            return if split { q } else { self.consider_stable_merge(q, task) };
        }
        let slot = match class {
            2 => ASYNC_QUEUES - 1,
            class => usize::from(class * LEVELS + level),
        };
        let at = usize::from(cgroup.0) * ASYNC_QUEUES + slot;
        let q = match self.async_queues[at] {
            Some(q) => q,
            None => {
                let q = self.make_queue(task, false, class, level, cgroup);
                // The group holds a reference too.
                self.queues[q.index()].process_refs = 1;
                self.async_queues[at] = Some(q);
                q
            }
        };
        self.queues[q.index()].process_refs += 1;
        q
    }

    fn make_queue(&mut self, task: TaskIndex, sync: bool, class: u8, level: u8, cgroup: CgroupId) -> QueueId {
        let q = self.wf2q.add_leaf(cgroup, CLASSES[usize::from(class)], weight_of_level(level));
        if q.index() >= self.queues.len() {
            self.queues.resize_with(q.index() + 1, BfqQueue::vacant);
        }
        self.burst.queue_made(q);
        self.wakers.queue_made(q);
        self.positions.queue_made(q);
        let max_budget = 2 * self.budgets.most() / 3;
        let queue = &mut self.queues[q.index()];
        queue.begin(task, sync, &self.clock);
        queue.class = class;
        queue.ioprio = level;
        queue.max_budget = max_budget;
        // Also in the idle class: `bfq_init_bfqq` looks for it before the queue has a class.
        queue.learnt.has_short_ttime = sync;
        q
    }

    /// `bic_set_bfqq`.
    pub(super) fn set_task_queue(&mut self, task: TaskIndex, sync: bool, q: Option<QueueId>) {
        let old = std::mem::replace(&mut self.tasks[task.index()].queues[usize::from(sync)], q);
        if let Some(old) = old
            && self.queues[old.index()].owner == Some(task)
        {
            self.queues[old.index()].owner = None;
        }
        if let Some(q) = q
            && self.tasks[task.index()].stable_merge == Some(q)
        {
            self.tasks[task.index()].stable_merge = None;
            self.put_stable_ref(q);
        }
    }

    /// `bfq_bfqq_resume_state`.
    fn resume_state(&mut self, q: QueueId, task: TaskIndex) {
        let saved = self.tasks[task.index()].saved;
        let queue = &mut self.queues[q.index()];
        queue.learnt = saved.learnt;
        // Without low latency, weights are never raised.
        let low_latency = self.tuning.low_latency;
        queue.raising = if low_latency { saved.raising } else { queue.raising.resumed(&saved.raising) };
        self.apply_coefficient(q);
        self.wf2q.set_weight(q, saved.weight);
        self.check_resumed_raising(q);
    }

    /// Replaces the queue created last in its group.
    pub(super) fn replace_last_created(&mut self, q: QueueId, by: Option<QueueId>) {
        let group = self.group(q) as usize;
        if self.last_created[group] == Some(q) {
            self.last_created[group] = by;
        }
    }

    /// A process drops its queue (`bfq_release_process_ref`).
    pub(super) fn release_process_ref(&mut self, q: QueueId) {
        let queue = &self.queues[q.index()];
        if queue.busy && queue.is_empty() && self.in_service != Some(q) {
            self.remove_busy(q, false);
        }
        self.replace_last_created(q, None);
        self.queues[q.index()].process_refs -= 1;
        self.free_if_unused(q);
    }

    /// It also drops the targets of planned merges (`bfq_put_cooperator`).
    fn put_cooperators(&mut self, q: QueueId) {
        let mut at = self.queues[q.index()].merge_into;
        while let Some(next) = at {
            at = self.queues[next.index()].merge_into;
            self.queues[next.index()].process_refs -= 1;
            self.free_if_unused(next);
        }
    }

    /// A process exits (`bfq_exit_icq`).
    pub(super) fn exit(&mut self, process: ProcessId) {
        let task = task_index(process);
        if task.index() >= self.tasks.len() {
            return;
        }
        if let Some(stable) = self.tasks[task.index()].stable_merge.take() {
            self.put_stable_ref(stable);
        }
        for sync in [true, false] {
            if let Some(q) = self.tasks[task.index()].queues[usize::from(sync)] {
                self.set_task_queue(task, sync, None);
                self.exit_queue(q);
            }
        }
    }

    fn exit_queue(&mut self, q: QueueId) {
        if self.in_service == Some(q) {
            let service = self.service(q).max(0) as u32;
            self.note(q, Decision::SliceEnd { reason: EndReason::Released, service });
            self.leave_service(q, EndReason::TimeOut);
            self.counts.run_hw_queues();
        }
        self.put_cooperators(q);
        self.release_process_ref(q);
    }
}
