//! Turns: which queue is in service, what is dispatched, and how the turn ends.

use super::Bfq2008;
use super::parts::QueueId;
use crate::request::{ProcessId, RequestId, RequestSlab};
use crate::scheduler::journal::{Decision, EndReason, IdleEnd};
use crate::scheduler::shared::wf2q::Class;
use crate::units::Nanos;

impl Bfq2008 {
    /// Fills the dispatch list, as far as the queue in service and the queues after it may dispatch
    /// (`bfq_dispatch_requests`).
    pub(super) fn fill(&mut self, requests: &RequestSlab) {
        if self.wf2q.busy_total() == 0 {
            return;
        }
        while let Some(q) = self.select(requests) {
            let queue = &self.queues[q.index()];
            let most = match (queue.sync, queue.class) {
                (false, _) => self.tuned.max_budget_async_rq,
                (true, Class::Idle) => 1,
                (true, _) => self.tuned.quantum,
            };
            let alone = self.wf2q.busy_total() == 1;
            let dispatched = queue.backlog.dispatched();
            let full = dispatched >= most && (!alone || dispatched >= most.saturating_mul(4));
            if full || self.counts.has_sync_flight() && !queue.sync {
                return;
            }
            self.stop_idling(IdleEnd::GivenUp);
            self.dispatch_some(q, most, requests);
        }
    }

    /// The queue in service if it may continue, else the next one; `None` while the disk idles
    /// (`bfq_select_queue`).
    fn select(&mut self, requests: &RequestSlab) -> Option<QueueId> {
        let Some(q) = self.service.queue() else { return self.begin_turn() };
        let reason = if self.is_timed_out(q) {
            // The charge comes before the measurement: such a turn looks faster than it was.
            self.charge_full_budget(q);
            EndReason::TimeOut
        } else if let Some(next) = self.queues[q.index()].backlog.next() {
            if self.fits_budget(q, next, requests) {
                return Some(q);
            }
            EndReason::BudgetExhausted
        } else {
            let queue = &self.queues[q.index()];
            if self.idle_timer.is_on() || queue.backlog.dispatched() > 0 && queue.window.is_open() {
                return None;
            }
            EndReason::NoMoreRequests
        };
        self.expire(q, false, reason, requests);
        self.begin_turn()
    }

    /// Starts the turn of the next queue by B-WF2Q+ (`bfq_set_active_queue`).
    fn begin_turn(&mut self) -> Option<QueueId> {
        let q = self.wf2q.next(self.now)?;
        self.wf2q.reset_service(q);
        self.wf2q.reset_service_above(q);
        let queue = &mut self.queues[q.index()];
        queue.turn.begins();
        queue.backlog.turn_begins();
        queue.allowance.turn_begins();
        let (process, timeout) = (queue.process, self.tuned.timeout[usize::from(queue.sync)]);
        self.service.begin(q);
        if self.journal.is_kept() {
            let budget = self.wf2q.budget(q).max(0) as u32;
            let slice = self.ticks.start(timeout);
            self.journal.note(self.now, process, Decision::SliceStart { budget, slice });
        }
        Some(q)
    }

    /// The oldest request if it has expired; checked once per turn (`bfq_check_fifo`).
    fn expired(&mut self, q: QueueId) -> Option<RequestId> {
        let queue = &mut self.queues[q.index()];
        let limit = self.tuned.fifo_expire[usize::from(queue.sync)];
        self.requests.expired(&mut queue.backlog, self.tick, limit)
    }

    /// Dispatches some requests of the queue in service (`__bfq_dispatch_requests`).
    fn dispatch_some(&mut self, q: QueueId, most: u32, requests: &RequestSlab) {
        let mut dispatched = 0;
        while dispatched < most {
            let expired = self.expired(q);
            let Some(id) = expired.or(self.queues[q.index()].backlog.next()) else { break };
            if expired.is_some() {
                self.note(self.queues[q.index()].process, Decision::Expired);
            }
            if !self.fits_budget(q, id, requests) {
                // The next budget must suffice for this request, even if the FIFO chose it.
                self.queues[q.index()].backlog.set_next(id);
                return self.expire(q, false, EndReason::BudgetExhausted, requests);
            }
            self.wf2q.served(q, requests[id].sectors);
            self.service.chosen(self.requests.origin(id).task, requests[id].sectors);
            self.remove(id, requests);
            self.outgoing.insert(id, requests);
            let queue = &mut self.queues[q.index()];
            self.requests.choose(&mut queue.backlog, id);
            self.counts.chosen(queue.sync);
            dispatched += 1;
        }
        let queue = &self.queues[q.index()];
        let enough = !queue.sync && dispatched >= self.tuned.max_budget_async_rq;
        if self.wf2q.busy_total() > 1 && (enough || queue.class == Class::Idle) {
            self.expire(q, false, EndReason::BudgetExhausted, requests);
        }
    }

    /// Ends the turn of the queue in service (`bfq_bfqq_expire`).
    ///
    /// A queue that timed out is charged for its whole budget; so is an asynchronous queue, and a
    /// fast queue whose idle timer expired.
    pub(super) fn expire(
        &mut self,
        q: QueueId,
        without_idling: bool,
        reason: EndReason,
        requests: &RequestSlab,
    ) {
        let fast = self.measure(q, without_idling);
        let charged_as = if fast && reason == EndReason::TooIdle { EndReason::TimeOut } else { reason };
        if charged_as == EndReason::TimeOut || !self.queues[q.index()].sync {
            self.charge_full_budget(q);
        }
        self.recalculate_budget(q, charged_as, requests);
        self.leave_service(q, reason);
    }

    /// `__bfq_bfqq_expire`
    fn leave_service(&mut self, q: QueueId, reason: EndReason) {
        self.stop_idling(IdleEnd::GivenUp);
        let queue = &self.queues[q.index()];
        self.note(queue.process, Decision::SliceEnd { reason, service: self.service.sectors() });
        if self.queues[q.index()].backlog.is_empty() {
            self.wf2q.remove_busy(q, true, true, self.now);
        } else {
            self.wf2q.requeue(q, true, self.now);
        }
        self.service.end();
        self.wf2q.end_service();
    }

    /// The process exits: if it is in service, its turn ends (`bfq_exit_bfqq`).
    pub(super) fn exit(&mut self, process: ProcessId) {
        let [_, own] = self.tasks.exit(process);
        if let Some(q) = own
            && self.service.is_of(q)
        {
            self.leave_service(q, EndReason::Released);
            self.kick = if self.counts.queued() > 0 { self.now } else { Nanos::NEVER };
        }
    }
}
