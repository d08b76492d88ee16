//! Budgets in the order of service: B-WF2Q+ orders the queues by what
//! [`budgets`](super::parts::budgets) gives them.

use super::Bfq2008;
use super::parts::QueueId;
use crate::request::{RequestId, RequestSlab};
use crate::scheduler::journal::EndReason;

impl Bfq2008 {
    #[inline]
    pub(super) fn budget_left(&self, q: QueueId) -> i32 {
        self.wf2q.budget(q) - self.wf2q.service(q)
    }

    /// The queue's budget, and at least the sectors of its next request.
    pub(super) fn set_budget_for_next(&mut self, q: QueueId, requests: &RequestSlab) {
        let queue = &self.queues[q.index()];
        let Some(next) = queue.backlog.next() else { return };
        let budget = queue.allowance.sectors().max(requests[next].sectors as i32);
        self.wf2q.set_budget(q, budget);
    }

    /// The queue's next request changes. During the queue's own turn nothing changes: a queue is
    /// served for the budget with which it was chosen (`bfq_updated_next_req`).
    pub(super) fn next_has_changed(&mut self, q: QueueId, requests: &RequestSlab) {
        if self.queues[q.index()].backlog.next().is_some() && !self.service.is_of(q) {
            self.set_budget_for_next(q, requests);
            self.wf2q.requeue(q, false, self.now);
        }
    }

    /// Charges the queue for its whole budget: where shares in sectors cannot be kept, time is
    /// shared (`bfq_bfqq_charge_full_budget`).
    pub(super) fn charge_full_budget(&mut self, q: QueueId) {
        let rest = self.budget_left(q).max(0);
        self.wf2q.served(q, rest as u32);
    }

    /// The budget of the next turn, from the way this one ended.
    pub(super) fn recalculate_budget(&mut self, q: QueueId, reason: EndReason, requests: &RequestSlab) {
        let queue = &mut self.queues[q.index()];
        if self.budgets.recalculate(&mut queue.allowance, queue.sync, reason) {
            self.set_budget_for_next(q, requests);
        }
    }

    /// Measures the disk's rate when a turn ends. True if the queue was fast enough to use up its
    /// budget before the timeout (`bfq_update_peak_rate`).
    pub(super) fn measure(&mut self, q: QueueId, without_idling: bool) -> bool {
        let queue = &self.queues[q.index()];
        if !queue.sync || queue.turn.is_new() {
            return false;
        }
        let until = if without_idling { self.idle_timer.began() } else { self.now };
        let us = until.saturating_sub(self.service.timed_from()).0 / 1000;
        let (service, budget) = (self.wf2q.service(q).max(0), self.wf2q.budget(q).max(0));
        self.budgets.measure(service as u64, us, budget as u64)
    }

    /// Starts the timeout of a turn: its first request has completed.
    pub(super) fn start_timeout(&mut self, q: QueueId) {
        self.service.starts(self.now);
        let queue = &mut self.queues[q.index()];
        queue.turn.starts(self.tick + self.tuned.timeout[usize::from(queue.sync)]);
    }

    #[inline]
    pub(super) fn is_timed_out(&self, q: QueueId) -> bool {
        self.queues[q.index()].turn.is_over(self.tick)
    }

    /// True if the rest of the budget suffices for `id`.
    #[inline]
    pub(super) fn fits_budget(&self, q: QueueId, id: RequestId, requests: &RequestSlab) -> bool {
        i64::from(requests[id].sectors) <= i64::from(self.budget_left(q))
    }
}
