//! Keeping the disk idle for the process that was just served.

use super::Cfq;
use super::state::{Class, Kind, QueueId};
use crate::scheduler::journal::{Decision, EndReason, IdleEnd};
use crate::units::Nanos;

impl Cfq {
    fn is_flash(&self) -> bool {
        !self.limits.rotational
    }

    /// Worth idling for: one that comes back soon and near, or the last of its service tree,
    /// after which the whole kind of load would lose its turn (`cfq_should_idle`).
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

    /// The active queue has run empty: idle for it, or for its group (`cfq_arm_slice_timer`).
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

    /// Only one queue of its group is left and keeps it busy: rather prolong its slice than let
    /// the group lose its turn (`cfq_should_wait_busy`).
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

    /// The time to idle is over (`cfq_idle_slice_timer`). True if dispatching may give more.
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
            // Whoever does not come back in time is not so deep after all.
            queue.flags.deep = false;
        }
        let reason = if used { EndReason::TimeOut } else { EndReason::NoMoreRequests };
        self.expire(false, reason);
        self.counts.busy() > 0
    }

    /// The active queue asks for something again (a part of `cfq_rq_enqueued`). A small request
    /// may be about to grow; if nobody else waits, that is waited for.
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

    /// Whether the queue's process is worth idling for, from what it has done
    /// (`cfq_update_idle_window`).
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

    /// A seeky queue that has waited more than once and yet has used less than half of its
    /// slice: the disk is faster than it can ask. Nobody idles for it any more.
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
