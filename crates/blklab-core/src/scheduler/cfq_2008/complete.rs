//! Completion of a request, and the idling that may follow.

use super::Cfq2008;
use crate::request::RequestId;
use crate::scheduler::journal::{Decision, EndReason, IdleEnd};
use crate::scheduler::shared::linux_2_6_28::requests::Origin;
use crate::units::Nanos;

/// The longest idling for a process that seeks: its next request is elsewhere anyway
/// (`CFQ_MIN_TT`).
const SEEKY_IDLE: Nanos = Nanos::from_millis(2);

impl Cfq2008 {
    /// A request completes (`cfq_completed_request`).
    pub(super) fn ended(&mut self, id: RequestId) {
        let Origin { queue: q, task, sync, .. } = self.requests.origin(id);
        self.requests.free(id);
        self.queueing.completed(self.counts.in_driver(), self.counts.queued());
        self.counts.completed(sync);
        self.queues[q].backlog.completed();
        if sync {
            self.tasks.completed(task, self.tick);
        }
        if self.active != Some(q) {
            return;
        }
        if self.queues[q].slice.is_new() {
            self.begin_slice(q);
        }
        let queue = &self.queues[q];
        if queue.slice.is_used(self.tick) {
            self.expire(true, EndReason::TimeOut);
        } else if queue.is_idle_class() {
            self.expire(true, EndReason::BudgetExhausted);
        } else if sync && queue.backlog.is_empty() {
            self.begin_idling();
        }
    }

    /// The active queue is empty: the disk idles for its process (`cfq_arm_slice_timer`).
    fn begin_idling(&mut self) {
        let (Some(q), Some(task)) = (self.active, self.active_task) else { return };
        let flash_with_queue = !self.rotational && self.queueing.is_queueing();
        let off = self.tuned.slice_idle == 0 || !self.queues[q].window.is_open();
        if flash_with_queue || off || self.counts.in_driver() > 0 || self.tasks.has_exited(task) {
            return;
        }
        let seeky = self.tasks.seeks(task).is_surely_seeky();
        let most = if seeky { self.ticks.span(SEEKY_IDLE) } else { u64::MAX };
        let until = self.ticks.start(self.tick.saturating_add(self.tuned.slice_idle.min(most)));
        self.idling.begin(until);
        self.note(q, Decision::IdleStart { until });
    }

    /// The idle timer expires (`cfq_idle_slice_timer`). While no queue is busy the turn goes on.
    pub(super) fn idled_long_enough(&mut self) {
        self.stop_timer(IdleEnd::TimeOut);
        let Some(q) = self.active else { return };
        let queue = &self.queues[q];
        if queue.slice.is_used(self.tick) {
            self.expire(false, EndReason::TimeOut);
        } else if self.tree.busy() > 0 && queue.backlog.is_empty() {
            self.expire(false, EndReason::NoMoreRequests);
        }
    }
}
