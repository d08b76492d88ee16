//! Processes and their queues: the queue of each request, splits, exits of processes.

use super::Bfq;
use super::parts::QueueId;
use super::parts::burst::Newcomer;
use super::parts::tasks::TaskIndex;
use super::queue::{BfqQueue, Kind};
use crate::request::{IoPrio, PrioClass, ProcessId, RequestId};
use crate::scheduler::journal::{Decision, EndReason};
use crate::scheduler::shared::wf2q::{Class, weight_of_level};
use crate::scheduler::{CgroupId, Queue};

const LEVELS: u8 = 8;
const CLASSES: [Class; 3] = [Class::RealTime, Class::BestEffort, Class::Idle];
/// Asynchronous queues of a group: eight levels of two classes, and one for the idle class.
pub(super) const ASYNC_QUEUES: usize = 2 * LEVELS as usize + 1;

/// The class as an index, and the level: no class is best effort; the idle class has one level.
fn class_and_level(prio: IoPrio) -> (u8, u8) {
    match prio.class {
        PrioClass::RealTime => (0, prio.level.min(LEVELS - 1)),
        PrioClass::None => (1, IoPrio::DEFAULT.level),
        PrioClass::BestEffort => (1, prio.level.min(LEVELS - 1)),
        PrioClass::Idle => (2, LEVELS - 1),
    }
}

/// The process that the queue was created for.
fn process_of(queue: &BfqQueue) -> ProcessId {
    queue.kind.made_for.process()
}

impl Bfq {
    /// The process of a queue, for the journal.
    pub(super) fn process_of(&self, q: QueueId) -> ProcessId {
        process_of(&self.queues[q.index()])
    }

    /// The process, which is now in the cgroup of its I/O (`bfq_bic_update_cgroup`).
    #[inline(always)]
    pub(super) fn know(&mut self, queue: &Queue<'_>, process: ProcessId) -> TaskIndex {
        let now = queue.tasks.get(process);
        let task = TaskIndex::of(now.mover.unwrap_or(process));
        self.tasks.know(task, |process| {
            let known = queue.tasks.get(process);
            (known.prio, known.cgroup)
        });
        if self.tasks.cgroup(task) != now.cgroup {
            self.change_cgroup(task, now.cgroup);
        }
        task
    }

    /// Assigns a request to its queue, if it is new (`bfq_init_rq`).
    #[inline]
    pub(super) fn assign(&mut self, queue: &Queue<'_>, id: RequestId) {
        if !self.requests.is_assigned(id) {
            self.assign_new(queue, id);
        }
    }

    fn assign_new(&mut self, queue: &Queue<'_>, id: RequestId) {
        let request = &queue.requests[id];
        self.clock.stands_still = request.clock_stands;
        let task = self.know(queue, request.process);
        let q = self.queue_for(task, request.sync);
        self.wf2q.request_allocated(q);
        self.tasks.request(task);
        self.requests.assign(id, request, task, q);
        self.sharing.request_of(q, task);
        self.consider_burst(q);
    }

    /// The first request of a new queue starts a burst or joins one.
    fn consider_burst(&mut self, q: QueueId) {
        let age = self.queues[q.index()].age;
        if !age.is_just_created() {
            return;
        }
        let newcomer = Newcomer {
            queue: q,
            group: self.group(q),
            split_time: age.split_time(),
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
        let Some(q) = self.tasks.queue(task, sync) else {
            return self.new_queue_of(task, sync, false);
        };
        if !self.sharing.is_to_split(q) || self.tasks.is_stably_merged(task) {
            return q;
        }
        let waker = self.waker_after_split(q);
        if self.burst.marks(q) {
            self.tasks.mark_burst(task);
        }
        self.note(q, Decision::QueueSplit);
        if self.sharing.keep_if_last(q) {
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
        let is_left_alone = match self.sharing.leads_to(q, waker) {
            // This process, which leaves, is one of the waker's.
            true => self.sharing.has_one_process(waker),
            false => self.sharing.has_no_process(waker),
        };
        (!is_left_alone).then_some(waker)
    }

    /// `__bfq_get_bfqq_handle_split` for a process without a queue.
    fn new_queue_of(&mut self, task: TaskIndex, sync: bool, split: bool) -> QueueId {
        let q = self.get_queue(task, sync, split);
        self.set_task_queue(task, sync, Some(q));
        if split && sync {
            self.burst.resume(q, self.tasks.saved(task).burst);
            self.queues[q.index()].age.split_off(self.clock.jiffies);
        }
        q
    }

    /// A process without a priority has that of the thread that inserts its first request, by the thread's nice
    /// value, and keeps it: kblockd's worker has -20 (`bfq_set_next_ioprio_data`). Its weight is not the usual
    /// one then, so it is never raised.
    fn class_and_level_of(&self, task: TaskIndex) -> (u8, u8) {
        let prio = self.tasks.prio(task);
        match self.inserts_as_worker && prio.class == PrioClass::None {
            true => (1, 0),
            false => class_and_level(prio),
        }
    }

    /// `bfq_get_queue`: a new queue, or the group's asynchronous one of that priority.
    fn get_queue(&mut self, task: TaskIndex, sync: bool, split: bool) -> QueueId {
        let cgroup = self.tasks.cgroup(task);
        let (class, level) = self.class_and_level_of(task);
        let kind = Kind { sync, class, level, made_for: task };
        if sync {
            let q = self.make_queue(kind, cgroup);
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
                // The group counts as its first process.
                let q = self.make_queue(kind, cgroup);
                self.async_queues[at] = Some(q);
                q
            }
        };
        self.sharing.process_comes(q);
        q
    }

    fn make_queue(&mut self, kind: Kind, cgroup: CgroupId) -> QueueId {
        let class = CLASSES[usize::from(kind.class)];
        let q = self.wf2q.add_leaf(cgroup, class, weight_of_level(kind.level));
        if q.index() >= self.queues.len() {
            self.queues.resize_with(q.index() + 1, BfqQueue::vacant);
        }
        self.burst.queue_made(q);
        self.wakers.queue_made(q);
        self.positions.queue_made(q);
        self.sharing.queue_made(q);
        let max_budget = 2 * self.budgets.most() / 3;
        self.queues[q.index()].begin(kind, max_budget, &self.clock);
        q
    }

    /// `bic_set_bfqq`.
    pub(super) fn set_task_queue(&mut self, task: TaskIndex, sync: bool, q: Option<QueueId>) {
        if let Some(old) = self.tasks.set_queue(task, sync, q) {
            self.sharing.disown(old, task);
        }
        if let Some(q) = q
            && self.tasks.stable_merge(task) == Some(q)
        {
            self.tasks.take_stable_merge(task);
            self.put_stable_ref(q);
        }
    }

    /// `bfq_bfqq_resume_state`.
    fn resume_state(&mut self, q: QueueId, task: TaskIndex) {
        let saved = *self.tasks.saved(task);
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
        if queue.turn.is_busy() && queue.is_empty() && self.in_service != Some(q) {
            self.remove_busy(q, false);
        }
        self.replace_last_created(q, None);
        self.sharing.process_leaves(q);
        self.free_if_unused(q);
    }

    /// It also drops the targets of planned merges (`bfq_put_cooperator`).
    pub(super) fn put_cooperators(&mut self, q: QueueId) {
        let mut at = self.sharing.target(q);
        while let Some(next) = at {
            at = self.sharing.target(next);
            self.sharing.process_leaves(next);
            self.free_if_unused(next);
        }
    }

    /// A process exits (`bfq_exit_icq`).
    pub(super) fn exit(&mut self, queue: &Queue<'_>, process: ProcessId) {
        let task = TaskIndex::of(queue.tasks.get(process).mover.unwrap_or(process));
        if !self.tasks.knows(task) {
            return;
        }
        if let Some(stable) = self.tasks.take_stable_merge(task) {
            self.put_stable_ref(stable);
        }
        for sync in [true, false] {
            if let Some(q) = self.tasks.queue(task, sync) {
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
