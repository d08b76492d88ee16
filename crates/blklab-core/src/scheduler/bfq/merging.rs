//! Merging of queues: of processes that read one file side by side (cooperators, such as the
//! workers of a virtual machine), or of processes that start together and do the same work (stable
//! merge). Served apart, each queue would move the head away from the other. A merged queue that
//! turns out to seek is split again (`tasks.rs`).

use super::Bfq;
use super::parts::QueueId;
use super::parts::seek::is_close;
use super::queue::TaskIndex;
use super::tasks::Saved;
use crate::request::RequestId;
use crate::scheduler::journal::Decision;
use crate::units::Sector;

/// Queues created within this time of each other may get a stable merge.
const STABLE_MS: u64 = 600;
/// Where idling may help, the stable merge is decided only this long after a queue was created or
/// split.
const LATE_STABLE_MS: u64 = 600;

/// A queue that has done I/O for this long no longer looks for cooperators: `HZ / 10` ticks.
const TOO_LATE_PER_SECOND: i64 = 10;

impl Bfq {
    /// The queue that `q` should be merged into, now that its process does I/O at `sector`
    /// (`bfq_setup_cooperator`).
    pub(super) fn cooperator(&mut self, q: QueueId, sector: Sector, task: TaskIndex) -> Option<QueueId> {
        if self.queues[q.index()].merge_into.is_some() {
            return Some(self.end_of_chain(q));
        }
        if self.queueing.is_flash_with_queueing() {
            return None;
        }
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

    fn end_of_chain(&self, mut q: QueueId) -> QueueId {
        while let Some(next) = self.queues[q.index()].merge_into {
            q = next;
        }
        q
    }

    /// `bfq_may_be_close_cooperator`.
    fn may_cooperate(&self, q: QueueId, other: QueueId) -> bool {
        let (a, b) = (&self.queues[q.index()], &self.queues[other.index()]);
        !self.is_too_late_to_merge(other)
            && !a.is_idle_class()
            && a.class == b.class
            && !a.seeks.seeky()
            && !b.seeks.seeky()
            && a.sync
            && b.sync
    }

    /// Plans a merge of `q` into `other`, or into the end of its chain (`bfq_setup_merge`).
    fn set_up_merge(&mut self, q: QueueId, other: QueueId) -> Option<QueueId> {
        if self.queues[other.index()].process_refs == 0 {
            return None;
        }
        let mut into = other;
        while let Some(next) = self.queues[into.index()].merge_into {
            if next == q {
                return None;
            }
            into = next;
        }
        let refs = self.queues[q.index()].process_refs;
        let alive = refs > 0 && self.queues[into.index()].process_refs > 0;
        if !alive || self.group(q) != self.group(into) {
            return None;
        }
        self.settled = None;
        self.queues[q.index()].merge_into = Some(into);
        // The processes that will join hold the new queue from now on.
        self.queues[into.index()].process_refs += refs;
        Some(into)
    }

    fn due_stable_merge(&self, q: QueueId, task: TaskIndex) -> Option<QueueId> {
        let stable = self.tasks[task.index()].stable_merge?;
        let queue = &self.queues[q.index()];
        let late = self.tuning.ticks_of_ms(LATE_STABLE_MS);
        let due = queue.sync
            && !queue.just_created
            && self.clock.is_past(queue.split_time + late)
            && self.clock.is_past(queue.creation_time + late);
        due.then_some(stable)
    }

    fn set_up_stable_merge(&mut self, q: QueueId, stable: QueueId, task: TaskIndex) -> Option<QueueId> {
        self.settled = None;
        self.tasks[task.index()].stable_merge = None;
        let refs = self.queues[q.index()].process_refs.min(self.queues[stable.index()].process_refs);
        let into =
            if self.idling_boosts_throughput(q) || refs == 0 { None } else { self.set_up_merge(q, stable) };
        if let Some(into) = into {
            self.merged_for_good(task, into);
        }
        self.put_stable_ref(stable);
        into
    }

    fn merged_for_good(&mut self, task: TaskIndex, into: QueueId) {
        self.tasks[task.index()].stably_merged = true;
        if let Some(owner) = self.queues[into.index()].owner {
            self.tasks[owner.index()].stably_merged = true;
        }
    }

    pub(super) fn put_stable_ref(&mut self, q: QueueId) {
        self.queues[q.index()].stable_refs -= 1;
        self.free_if_unused(q);
    }

    /// A process's new queue, created shortly after another one, gets a stable merge with it: at
    /// once on flash that queues commands, else perhaps later (`bfq_do_or_sched_stable_merge`).
    pub(super) fn consider_stable_merge(&mut self, q: QueueId, task: TaskIndex) -> QueueId {
        let group = self.group(q) as usize;
        let made = self.queues[q.index()].creation_time;
        let Some(last) = self.last_created[group].filter(|&last| {
            let other = &self.queues[last.index()];
            let queue = &self.queues[q.index()];
            other.creation_time + self.tuning.ticks_of_ms(STABLE_MS) >= made
                && other.ioprio == queue.ioprio
                && other.class == queue.class
        }) else {
            self.last_created[group] = Some(q);
            return q;
        };
        if self.queues[last.index()].creation_time + self.burst.interval() < made {
            return q;
        }
        if !self.queueing.is_flash_with_queueing() {
            self.queues[last.index()].stable_refs += 1;
            self.tasks[task.index()].stable_merge = Some(last);
            return q;
        }
        let Some(into) = self.set_up_merge(q, last) else { return q };
        self.merged_for_good(task, into);
        self.queues[q.index()].owner = Some(task);
        self.merge_queues(task, q)
    }

    /// A request has come to a queue with a planned merge: the request and its process move to the
    /// other queue.
    pub(super) fn follow_merge(&mut self, id: RequestId, q: QueueId) -> QueueId {
        let (sector, task) = (self.slots[id].sector, self.slots[id].task);
        let Some(into) = self.cooperator(q, sector, task) else { return q };
        self.wf2q.request_allocated(into);
        self.wf2q.request_freed(q);
        if self.tasks[task.index()].queues[1] == Some(q) {
            self.merge_up_to(task, q, into);
        }
        self.queues[q.index()].just_created = false;
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
        let into = self.queues[q.index()].merge_into.expect("a merge was set up");
        self.settled = None;
        self.save_state(q);
        self.save_state(into);
        let with = self.process_of(into);
        self.note(q, Decision::QueuesMerged { with });
        let mut intensity = self.queues[q.index()].learnt.intensity;
        intensity.pass_on_to(&mut self.queues[into.index()].learnt.intensity);
        self.queues[q.index()].learnt.intensity = intensity;
        self.wakers.merged(q, into);
        self.hand_over_raising(q, into);
        self.set_task_queue(task, true, Some(into));
        let shared = &mut self.queues[into.index()];
        shared.coop = true;
        shared.owner = None;
        self.queues[q.index()].owner = None;
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
        let Some(owner) = queue.owner else { return };
        let mut raising = queue.raising;
        if queue.just_created && !self.burst.marks(q) && self.tuning.low_latency {
            // Without the immediate merge, the queue would have been raised.
            let before = self.tasks[owner.index()].saved.raising;
            raising = before.as_new_interactive(self.spans.interactive(&self.peak_rate), &self.clock);
        }
        self.tasks[owner.index()].saved = Saved {
            learnt: queue.learnt,
            burst: self.burst.membership(q),
            weight: self.wf2q.orig_weight(q),
            raising,
        };
    }

    /// The queue has been served for longer than cooperators need to be found.
    pub(super) fn is_too_late_to_merge(&self, q: QueueId) -> bool {
        let queue = &self.queues[q.index()];
        let limit = self.tuning.ticks.hz() as i64 / TOO_LATE_PER_SECOND;
        queue.service_from_backlogged > 0 && self.clock.is_past(queue.first_io_time + limit)
    }

    /// The queue's next request changes (`bfq_pos_tree_add_move`).
    pub(super) fn move_in_positions(&mut self, q: QueueId) {
        let queue = &self.queues[q.index()];
        let keeps_out = self.is_too_late_to_merge(q) || queue.is_idle_class();
        let next = queue.next.filter(|_| !keeps_out).map(|next| self.slots[next].sector);
        self.positions.set(q, self.group(q), next);
    }

    /// A queue of the same group whose next request is near `sector`.
    fn near_queue(&self, q: QueueId, sector: Sector) -> Option<QueueId> {
        let next_of = |other: QueueId| self.queues[other.index()].next.map(|next| self.slots[next].sector);
        self.positions.find_close(self.group(q), sector, next_of)
    }
}
