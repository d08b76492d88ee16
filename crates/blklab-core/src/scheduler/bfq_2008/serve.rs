//! Turns: which queue is in service, what is dispatched, and how the turn ends.

use super::Bfq2008;
use super::state::Task;
use crate::request::{ProcessId, RequestId, RequestSlab};
use crate::scheduler::journal::{Decision, EndReason, IdleEnd};
use crate::scheduler::shared::wf2q::{Class, LeafId};
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
            let full = queue.dispatched >= most && (!alone || queue.dispatched >= most.saturating_mul(4));
            if full || self.sync_flight > 0 && !queue.sync {
                return;
            }
            self.stop_idling(IdleEnd::GivenUp);
            self.dispatch_some(q, most, requests);
        }
    }

    /// The queue in service if it may continue, else the next one; `None` while the disk idles
    /// (`bfq_select_queue`).
    fn select(&mut self, requests: &RequestSlab) -> Option<LeafId> {
        let Some(q) = self.in_service else { return self.begin_turn() };
        let reason = if self.is_timed_out(q) {
            // The charge comes before the measurement: such a turn looks faster than it was.
            self.charge_full_budget(q);
            EndReason::TimeOut
        } else if let Some(next) = self.queues[q.index()].next {
            if self.fits_budget(q, next, requests) {
                return Some(q);
            }
            EndReason::BudgetExhausted
        } else {
            let queue = &self.queues[q.index()];
            if self.is_idling() || queue.dispatched > 0 && queue.idles {
                return None;
            }
            EndReason::NoMoreRequests
        };
        self.expire(q, false, reason, requests);
        self.begin_turn()
    }

    /// Starts the turn of the next queue by B-WF2Q+ (`bfq_set_active_queue`).
    fn begin_turn(&mut self) -> Option<LeafId> {
        let q = self.wf2q.next(self.now)?;
        self.wf2q.reset_service(q);
        self.wf2q.reset_service_above(q);
        let queue = &mut self.queues[q.index()];
        queue.budget_new = true;
        queue.fifo_checked = false;
        queue.budgets_assigned = (queue.budgets_assigned * 7 + 256) / 8;
        let (process, timeout) = (queue.process, self.tuned.timeout[usize::from(queue.sync)]);
        self.in_service = Some(q);
        self.in_service_task = None;
        self.served = 0;
        if self.journal.is_kept() {
            let budget = self.wf2q.budget(q).max(0) as u32;
            let slice = self.ticks.start(timeout);
            self.journal.note(self.now, process, Decision::SliceStart { budget, slice });
        }
        Some(q)
    }

    /// The oldest request if it has expired; checked once per turn (`bfq_check_fifo`).
    fn expired(&mut self, q: LeafId) -> Option<RequestId> {
        let queue = &mut self.queues[q.index()];
        if std::mem::replace(&mut queue.fifo_checked, true) {
            return None;
        }
        let limit = self.tuned.fifo_expire[usize::from(queue.sync)];
        let oldest = queue.fifo.first()?;
        (self.tick >= self.slots[oldest.index()].since.saturating_add(limit)).then_some(oldest)
    }

    /// Dispatches some requests of the queue in service (`__bfq_dispatch_requests`).
    fn dispatch_some(&mut self, q: LeafId, most: u32, requests: &RequestSlab) {
        let mut dispatched = 0;
        while dispatched < most {
            let expired = self.expired(q);
            let Some(id) = expired.or(self.queues[q.index()].next) else { break };
            if expired.is_some() {
                self.note(self.queues[q.index()].process, Decision::Expired);
            }
            if !self.fits_budget(q, id, requests) {
                // The next budget must suffice for this request, even if the FIFO chose it.
                self.queues[q.index()].next = Some(id);
                return self.expire(q, false, EndReason::BudgetExhausted, requests);
            }
            self.wf2q.served(q, requests[id].sectors);
            self.served += requests[id].sectors;
            self.remove(id, requests);
            self.send(id, requests);
            let queue = &mut self.queues[q.index()];
            queue.dispatched += 1;
            self.sync_flight += u32::from(queue.sync);
            self.in_service_task.get_or_insert(self.slots[id.index()].task);
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
        q: LeafId,
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
    fn leave_service(&mut self, q: LeafId, reason: EndReason) {
        self.stop_idling(IdleEnd::GivenUp);
        let queue = &self.queues[q.index()];
        self.note(queue.process, Decision::SliceEnd { reason, service: self.served });
        if self.queues[q.index()].is_empty() {
            self.wf2q.remove_busy(q, true, true, self.now);
        } else {
            self.wf2q.requeue(q, true, self.now);
        }
        self.in_service = None;
        self.in_service_task = None;
        self.wf2q.end_service();
    }

    /// The process exits: if it is in service, its turn ends (`bfq_exit_bfqq`).
    pub(super) fn exit(&mut self, process: ProcessId) {
        let Some(task) = self.tasks.get_mut(Task::index_of(process)) else { return };
        task.exited = true;
        let own = task.queues[1];
        if let Some(q) = own
            && self.in_service == Some(q)
        {
            self.leave_service(q, EndReason::Released);
            self.kick = if self.queued > 0 { self.now } else { Nanos::NEVER };
        }
    }
}
