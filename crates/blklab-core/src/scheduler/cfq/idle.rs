//! Idling for the process that was just served.

use super::Cfq;
use super::state::{Class, Kind, QueueId};
use crate::scheduler::journal::{Decision, EndReason, IdleEnd};
use crate::units::Nanos;

impl Cfq {
    fn is_flash(&self) -> bool {
        !self.limits.rotational
    }

    /// Idling pays for a queue that comes back soon and close, and for the last queue of its
    /// service tree, because without it the whole workload type would lose its turn
    /// (`cfq_should_idle`).
    pub(super) fn should_idle(&self, q: QueueId) -> bool {
        let queue = &self.queues[q];
        if self.tuned.slice_idle == 0 || queue.class == Class::Idle {
            return false;
        }
        if queue.flags.idle_window && !(self.is_flash() && self.queueing.may_queue()) {
            return true;
        }
        let Some(tree) = queue.tree else { return false };
        let tree = &self.groups[queue.group].trees[tree];
        tree.count == 1 && queue.sync && !tree.think.is_longer(self.tuned.slice_idle)
    }

    /// The active queue is empty: idles for it, or for its group (`cfq_arm_slice_timer`).
    pub(super) fn begin_idling(&mut self, q: QueueId) {
        if self.is_flash() && self.queueing.may_queue() {
            return;
        }
        let group_idle = self.tuned.group_idle;
        let for_group = !self.should_idle(q);
        if for_group && group_idle == 0 {
            return;
        }
        let queue = &self.queues[q];
        let context = self.active_context.map(|context| &self.contexts[context]);
        let Some(context) = context.filter(|context| context.alive && queue.dispatched == 0) else {
            return;
        };
        let left = (queue.slice_end - self.now) as u64;
        if context.think.is_longer(left) {
            return;
        }
        if for_group {
            let group = &self.groups[queue.group];
            let think = queue.tree.map(|tree| group.trees[tree].think).unwrap_or_default();
            if group.queues > 1 || think.is_longer(group_idle) {
                return;
            }
        }
        self.queues[q].flags.wait_request = true;
        let span = if for_group { group_idle } else { self.tuned.slice_idle };
        let until = Nanos((self.now as u64).saturating_add(span));
        self.idle_timer = until;
        self.idle_noted = true;
        self.note(q, Decision::IdleStart { until });
    }

    /// The queue is the last busy one of its group: its slice is extended, so that the group does
    /// not lose its turn (`cfq_should_wait_busy`).
    pub(super) fn should_wait_busy(&self, q: QueueId) -> bool {
        let queue = &self.queues[q];
        let group = &self.groups[queue.group];
        if !queue.is_empty() || group.queues > 1 || group.think.is_longer(self.tuned.group_idle) {
            return false;
        }
        if queue.slice_used(self.now) {
            return true;
        }
        let left = (queue.slice_end - self.now) as u64;
        let think = self.active_context.map(|context| self.contexts[context].think);
        think.is_some_and(|think| think.is_longer(left)) || left <= self.tick
    }

    /// The idle timer expires (`cfq_idle_slice_timer`). True if dispatching may give more requests.
    pub(super) fn idled_long_enough(&mut self) -> bool {
        self.idle_timer = Nanos::NEVER;
        let Some(q) = self.active else { return self.counts.busy() > 0 };
        self.note_idle_end(q, IdleEnd::TimeOut);
        let queue = &mut self.queues[q];
        if queue.flags.must_dispatch {
            return self.counts.busy() > 0;
        }
        let used = queue.slice_used(self.now);
        if !used {
            if self.counts.busy() == 0 {
                return false;
            }
            if !queue.is_empty() {
                return true;
            }
            // The process does not come back in time: the queue is not deep any more.
            queue.flags.deep = false;
        }
        let reason = if used { EndReason::TimeOut } else { EndReason::NoMoreRequests };
        self.expire(false, reason);
        self.counts.busy() > 0
    }

    /// The active queue gets a request again (a part of `cfq_rq_enqueued`). A small request may
    /// still grow by merges; if no other queue is busy, idling goes on.
    pub(super) fn idled_for(&mut self, q: QueueId, sectors: u32) {
        if !self.queues[q].flags.wait_request {
            return;
        }
        if sectors > super::PAGE_SECTORS || self.counts.busy() > 1 {
            self.stop_idling(q, IdleEnd::Request);
        } else {
            self.queues[q].flags.must_dispatch = true;
            self.note_idle_end(q, IdleEnd::Request);
        }
    }

    /// Decides from the process's history whether to idle for its queue (`cfq_update_idle_window`).
    pub(super) fn update_idle_window(&mut self, q: QueueId, context: usize) {
        let queue = &mut self.queues[q];
        if !queue.sync || queue.class == Class::Idle {
            return;
        }
        queue.flags.deep |= queue.sorted.len() >= 4;
        let context = &self.contexts[context];
        let far = !queue.flags.deep && queue.is_seeky();
        let alone = queue.next.is_some_and(|next| self.slots[next.index()].no_idle);
        if alone || !context.alive || self.tuned.slice_idle == 0 || far {
            queue.flags.idle_window = false;
        } else if context.think.is_known() {
            queue.flags.idle_window = !context.think.is_longer(self.tuned.slice_idle);
        }
    }

    /// A seeky queue has been idled for more than once and has used less than half of its slice:
    /// the disk is faster than the process sends requests. The disk no longer idles for it.
    pub(super) fn doubt_idling(&mut self, q: QueueId) {
        let now = self.now;
        let queue = &mut self.queues[q];
        if !queue.is_seeky() || queue.kind() != Kind::Sync {
            return;
        }
        let early = || {
            let (left, gone) = (queue.slice_end - now, now - queue.slice_start.unwrap_or(0));
            left as u64 > gone as u64
        };
        if queue.flags.slice_new || early() {
            queue.flags.deep = false;
            queue.flags.idle_window = false;
        }
    }
}
