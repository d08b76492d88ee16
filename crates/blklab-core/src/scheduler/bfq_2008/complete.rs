//! Completion of a request, and the idling that may follow.

use super::Bfq2008;
use crate::request::{RequestId, RequestSlab};
use crate::scheduler::journal::{Decision, EndReason, IdleEnd};
use crate::scheduler::shared::linux_2_6_28::requests::Origin;
use crate::units::Nanos;

/// The longest idling for a process that seeks: its next request is elsewhere anyway
/// (`BFQ_MIN_TT`).
const SEEKY_IDLE: Nanos = Nanos::from_millis(2);

impl Bfq2008 {
    /// A request completes (`bfq_completed_request`).
    pub(super) fn ended(&mut self, id: RequestId, requests: &RequestSlab) {
        let Origin { queue: q, task, sync, .. } = self.requests.origin(id);
        self.requests.free(id);
        self.queueing.completed(self.counts.in_driver(), self.counts.queued());
        self.counts.completed(sync);
        self.queues[q.index()].backlog.completed();
        if sync {
            self.tasks.completed(task, self.tick);
        }
        if !self.service.is_of(q) {
            return;
        }
        if self.queues[q.index()].turn.is_new() {
            self.start_timeout(q);
        }
        if self.is_timed_out(q) {
            self.expire(q, false, EndReason::TimeOut, requests);
        } else if sync && self.counts.in_driver() == 0 && self.queues[q.index()].backlog.is_empty() {
            self.begin_idling();
        }
    }

    /// Starts idling for the queue in service (`bfq_arm_slice_timer`).
    fn begin_idling(&mut self) {
        let Some(queue) = self.service.queue().map(|q| &self.queues[q.index()]) else { return };
        let Some(task) = self.service.task() else { return };
        if self.tuned.slice_idle == 0 || !queue.window.is_open() || self.tasks.has_exited(task) {
            return;
        }
        let seeky = self.tasks.seeks(task).is_surely_seeky();
        let most = if seeky { self.ticks.span(SEEKY_IDLE) } else { u64::MAX };
        let until = self.ticks.start(self.tick.saturating_add(self.tuned.slice_idle.min(most)));
        self.idle_timer.start(self.now, until);
        self.note(queue.process, Decision::IdleStart { until });
    }

    /// Stops idling.
    pub(super) fn stop_idling(&mut self, why: IdleEnd) {
        if !self.idle_timer.stop() {
            return;
        }
        if let Some(q) = self.service.queue() {
            self.note(self.queues[q.index()].process, Decision::IdleEnd { why });
        }
    }

    /// The idle timer expires, and no request has come (`bfq_idle_slice_timer`).
    pub(super) fn idled_long_enough(&mut self, requests: &RequestSlab) {
        self.stop_idling(IdleEnd::TimeOut);
        let Some(q) = self.service.queue() else { return };
        let reason = if self.is_timed_out(q) { EndReason::TimeOut } else { EndReason::TooIdle };
        self.expire(q, true, reason, requests);
    }
}
