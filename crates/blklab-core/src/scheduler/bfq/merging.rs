//! Merging of queues: of processes that read one file side by side (cooperators, such as the
//! workers of a virtual machine), or of processes that start together and do the same work (stable
//! merge). Served apart, each queue would move the head away from the other. A merged queue that
//! turns out to seek is split again (`tasks.rs`).

use super::Bfq;
use super::parts::QueueId;
use super::parts::tasks::{Saved, TaskIndex};
use crate::request::RequestId;
use crate::scheduler::journal::Decision;
use crate::scheduler::shared::positions::is_close;
use crate::units::Sector;

/// Queues created within this time of each other may get a stable merge.
const STABLE_MS: u64 = 600;
/// Where idling may help, the stable merge is decided only this long after a queue was created or
/// split.
const LATE_STABLE_MS: u64 = 600;

impl Bfq {
    /// The queue that `q` should be merged into, now that its process does I/O at `sector`
    /// (`bfq_setup_cooperator`).
    #[inline(always)]
    pub(super) fn cooperator(&mut self, q: QueueId, sector: Sector, task: TaskIndex) -> Option<QueueId> {
        if self.sharing.target(q).is_some() {
            return Some(self.sharing.end_of_chain(q));
        }
        match self.queueing.is_flash_with_queueing() {
            true => None,
            false => self.cooperator_near(q, sector, task),
        }
    }

    fn cooperator_near(&mut self, q: QueueId, sector: Sector, task: TaskIndex) -> Option<QueueId> {
        if let Some(stable) = self.due_stable_merge(q, task) {
            return self.set_up_stable_merge(q, stable, task);
        }
        if self.is_too_late_to_merge(q) || self.total_busy() == 1 {
            return None;
        }
        if let Some(current) = self.in_service.filter(|&current| current != q)
            && is_close(sector, self.in_service_end)
            && self.group(q) == self.group(current)
            && self.may_cooperate(q, current)
            && let Some(into) = self.set_up_merge(q, current)
        {
            return Some(into);
        }
        let close = self.near_queue(q, sector).filter(|&other| other != q)?;
        if self.may_cooperate(q, close) { self.set_up_merge(q, close) } else { None }
    }

    /// `bfq_may_be_close_cooperator`.
    fn may_cooperate(&self, q: QueueId, other: QueueId) -> bool {
        let (a, b) = (&self.queues[q.index()], &self.queues[other.index()]);
        !self.is_too_late_to_merge(other)
            && !a.is_idle_class()
            && a.kind.class == b.kind.class
            && !a.seeks.seeky()
            && !b.seeks.seeky()
            && a.kind.sync
            && b.kind.sync
    }

    /// Plans a merge of `q` into `other`, or into the end of its chain (`bfq_setup_merge`).
    fn set_up_merge(&mut self, q: QueueId, other: QueueId) -> Option<QueueId> {
        let wf2q = &self.wf2q;
        let into = self.sharing.plan_merge(q, other, |into| wf2q.group(q) == wf2q.group(into))?;
        self.settled = None;
        Some(into)
    }

    fn due_stable_merge(&self, q: QueueId, task: TaskIndex) -> Option<QueueId> {
        let stable = self.tasks.stable_merge(task)?;
        let queue = &self.queues[q.index()];
        let late = self.tuning.ticks_of_ms(LATE_STABLE_MS);
        (queue.kind.sync && queue.age.is_settled(late, &self.clock)).then_some(stable)
    }

    fn set_up_stable_merge(&mut self, q: QueueId, stable: QueueId, task: TaskIndex) -> Option<QueueId> {
        self.settled = None;
        self.tasks.take_stable_merge(task);
        let is_either_unused = self.sharing.has_no_process(q) || self.sharing.has_no_process(stable);
        let into = match self.idling_boosts_throughput(q) || is_either_unused {
            true => None,
            false => self.set_up_merge(q, stable),
        };
        if let Some(into) = into {
            self.merged_for_good(task, into);
        }
        self.put_stable_ref(stable);
        into
    }

    fn merged_for_good(&mut self, task: TaskIndex, into: QueueId) {
        self.tasks.merged_stably(task);
        if let Some(owner) = self.sharing.owner(into) {
            self.tasks.merged_stably(owner);
        }
    }

    pub(super) fn put_stable_ref(&mut self, q: QueueId) {
        self.sharing.stable_merge_done(q);
        self.free_if_unused(q);
    }

    /// A process's new queue, created shortly after another one, gets a stable merge with it: at
    /// once on flash that queues commands, else perhaps later (`bfq_do_or_sched_stable_merge`).
    pub(super) fn consider_stable_merge(&mut self, q: QueueId, task: TaskIndex) -> QueueId {
        let group = self.group(q) as usize;
        let made = self.queues[q.index()].age.created();
        let Some(last) = self.last_created[group].filter(|&last| {
            let other = &self.queues[last.index()];
            let (own, others) = (self.queues[q.index()].kind, other.kind);
            other.age.created() + self.tuning.ticks_of_ms(STABLE_MS) >= made
                && others.level == own.level
                && others.class == own.class
        }) else {
            self.last_created[group] = Some(q);
            return q;
        };
        if self.queues[last.index()].age.created() + self.burst.interval() < made {
            return q;
        }
        if !self.queueing.is_flash_with_queueing() {
            self.sharing.stable_merge_planned(last);
            self.tasks.plan_stable_merge(task, last);
            return q;
        }
        let Some(into) = self.set_up_merge(q, last) else { return q };
        self.merged_for_good(task, into);
        self.sharing.set_owner(q, task);
        self.merge_queues(task, q)
    }

    /// A request has come to a queue with a planned merge: the request and its process move to the
    /// other queue.
    pub(super) fn follow_merge(&mut self, id: RequestId, q: QueueId) -> QueueId {
        let (sector, task) = (self.requests.sector(id), self.requests.task_of(id));
        let Some(into) = self.cooperator(q, sector, task) else { return q };
        self.wf2q.request_allocated(into);
        self.wf2q.request_freed(q);
        if self.tasks.queue(task, true) == Some(q) {
            self.merge_up_to(task, q, into);
        }
        self.queues[q.index()].age.not_new_any_more();
        self.free_if_unused(q);
        into
    }

    /// Merges along the chain from `q` to `into`.
    pub(super) fn merge_up_to(&mut self, task: TaskIndex, mut q: QueueId, into: QueueId) {
        while q != into {
            q = self.merge_queues(task, q);
        }
    }

    /// The process of `q` now issues into the queue of the planned merge (`bfq_merge_bfqqs`).
    fn merge_queues(&mut self, task: TaskIndex, q: QueueId) -> QueueId {
        let into = self.sharing.target(q).expect("a merge was set up");
        self.settled = None;
        self.save_state(q);
        self.save_state(into);
        let with = self.process_of(into);
        self.note(q, Decision::QueuesMerged { with });
        let mut learnt = self.queues[q.index()].learnt;
        learnt.pass_on_to(&mut self.queues[into.index()].learnt);
        self.queues[q.index()].learnt = learnt;
        self.wakers.merged(q, into);
        self.hand_over_raising(q, into);
        self.set_task_queue(task, true, Some(into));
        self.sharing.merged(q, into);
        self.replace_last_created(q, Some(into));
        self.release_process_ref(q);
        into
    }

    fn hand_over_raising(&mut self, q: QueueId, into: QueueId) {
        let from = self.queues[q.index()].raising;
        if !from.is_raised() {
            return;
        }
        let shared = &mut self.queues[into.index()];
        if !shared.is_raised() {
            shared.raising = shared.raising.taken_over(&from);
            self.apply_coefficient(into);
            self.wf2q.mark_changed(into);
        }
        self.queues[q.index()].raising.suspend();
        self.apply_coefficient(q);
        self.wf2q.mark_changed(q);
    }

    /// Saves what the owner of `q` gets back after a split (`bfq_bfqq_save_state`).
    fn save_state(&mut self, q: QueueId) {
        let queue = &self.queues[q.index()];
        let Some(owner) = self.sharing.owner(q) else { return };
        let mut raising = queue.raising;
        if queue.age.is_just_created() && !self.burst.marks(q) && self.tuning.low_latency {
            // Without the immediate merge, the queue would have been raised.
            let before = self.tasks.saved(owner).raising;
            raising = before.as_new_interactive(self.spans.interactive(&self.peak_rate), &self.clock);
        }
        let saved = Saved {
            learnt: queue.learnt,
            burst: self.burst.membership(q),
            weight: self.wf2q.orig_weight(q),
            raising,
        };
        self.tasks.save(owner, saved);
    }

    /// The queue has been served for longer than cooperators need to be found.
    pub(super) fn is_too_late_to_merge(&self, q: QueueId) -> bool {
        self.queues[q.index()].soft_rt.is_too_late_to_merge(&self.tuning, &self.clock)
    }

    /// The queue's next request changes (`bfq_pos_tree_add_move`).
    pub(super) fn move_in_positions(&mut self, q: QueueId) {
        let queue = &self.queues[q.index()];
        let keeps_out = self.is_too_late_to_merge(q) || queue.is_idle_class();
        let group = self.group(q);
        let Bfq { positions, queues, requests, .. } = self;
        positions.set(q, group as usize, !keeps_out, |other| {
            queues[other.index()].backlog.next().map(|next| requests.sector(next))
        });
    }

    /// A queue of the same group whose next request is near `sector`.
    fn near_queue(&self, q: QueueId, sector: Sector) -> Option<QueueId> {
        let next_of = |other: QueueId| {
            let next = self.queues[other.index()].backlog.next();
            next.map(|next| self.requests.sector(next))
        };
        self.positions.find_close(self.group(q) as usize, sector, next_of)
    }
}
