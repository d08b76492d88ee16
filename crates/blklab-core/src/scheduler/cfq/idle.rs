//! Idling for the process that was just served.

use super::Cfq;
use super::kinds::{Class, Kind, QueueId};
use super::parts::contexts::ContextId;
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
        if queue.window.is_open() && !(self.is_flash() && self.queueing.may_queue()) {
            return true;
        }
        queue.sync && self.trees.is_last_and_returns_within(q, self.tuned.slice_idle)
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
        let Some(context) = self.active_context else { return };
        if !self.contexts.is_alive(context) || queue.backlog.in_flight() > 0 {
            return;
        }
        let left = queue.slice.left(self.now) as u64;
        if self.contexts.think_time(context).is_longer(left) {
            return;
        }
        if for_group && (self.trees.busy(queue.group) > 1 || self.trees.thinks_longer(q, group_idle)) {
            return;
        }
        let span = if for_group { group_idle } else { self.tuned.slice_idle };
        let until = Nanos((self.now as u64).saturating_add(span));
        self.idling.begin(until);
        self.note(q, Decision::IdleStart { until });
    }

    /// The queue is the last busy one of its group: its slice is extended, so that the group does
    /// not lose its turn (`cfq_should_wait_busy`).
    pub(super) fn should_wait_busy(&self, q: QueueId) -> bool {
        let queue = &self.queues[q];
        let group = queue.group;
        if !queue.backlog.is_empty()
            || self.trees.busy(group) > 1
            || self.groups.thinks_longer(group, self.tuned.group_idle)
        {
            return false;
        }
        if queue.slice.is_used(self.now) {
            return true;
        }
        let left = queue.slice.left(self.now) as u64;
        let think = self.active_context.map(|context| self.contexts.think_time(context));
        think.is_some_and(|think| think.is_longer(left)) || left <= self.tick
    }

    /// The idle timer expires (`cfq_idle_slice_timer`). True if dispatching may give more requests.
    pub(super) fn idled_long_enough(&mut self) -> bool {
        self.idling.timer_expired();
        let Some(q) = self.active else { return self.counts.busy() > 0 };
        self.note_idle_end(q, IdleEnd::TimeOut);
        let queue = &mut self.queues[q];
        if queue.slice.must_dispatch() {
            return self.counts.busy() > 0;
        }
        let used = queue.slice.is_used(self.now);
        if !used {
            if self.counts.busy() == 0 {
                return false;
            }
            if !queue.backlog.is_empty() {
                return true;
            }
            queue.window.waited_in_vain();
        }
        let reason = if used { EndReason::TimeOut } else { EndReason::NoMoreRequests };
        self.expire(false, reason);
        self.counts.busy() > 0
    }

    /// The active queue gets a request again (a part of `cfq_rq_enqueued`). A small request may
    /// still grow by merges; if no other queue is busy, idling goes on.
    pub(super) fn idled_for(&mut self, q: QueueId, sectors: u32) {
        if !self.idling.waits() {
            return;
        }
        if sectors > super::PAGE_SECTORS || self.counts.busy() > 1 {
            self.stop_idling(q, IdleEnd::Request);
        } else {
            self.queues[q].slice.allow_one_more();
            self.note_idle_end(q, IdleEnd::Request);
        }
    }

    /// Decides from the process's history whether to idle for its queue (`cfq_update_idle_window`).
    pub(super) fn update_idle_window(&mut self, q: QueueId, context: ContextId) {
        let queue = &mut self.queues[q];
        if !queue.sync || queue.class == Class::Idle {
            return;
        }
        let idle = self.tuned.slice_idle;
        let is_last = queue.backlog.next().is_some_and(|next| self.requests.origin(next).is_last);
        let comes_back = if is_last || !self.contexts.is_alive(context) || idle == 0 {
            Some(false)
        } else {
            let think = self.contexts.think_time(context);
            think.is_known().then(|| !think.is_longer(idle))
        };
        queue.window.request(queue.backlog.len(), queue.seeks.is_seeky(), comes_back);
    }

    /// A seeky queue has been idled for more than once and has used less than half of its slice:
    /// the disk is faster than the process sends requests. The disk no longer idles for it.
    pub(super) fn doubt_idling(&mut self, q: QueueId) {
        let now = self.now;
        let queue = &mut self.queues[q];
        let is_idled_for = queue.seeks.is_seeky() && queue.kind() == Kind::Sync;
        if is_idled_for && queue.slice.is_in_first_half(now) {
            queue.window.close();
        }
    }
}
