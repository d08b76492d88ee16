//! Which queue is active, and what it dispatches.

use super::Cfq2008;
use super::queue::QueueId;
use crate::request::{RequestId, RequestSlab};
use crate::scheduler::journal::{Decision, EndReason, IdleEnd};

impl Cfq2008 {
    /// Fills the dispatch list, as far as the active queue and the queues after it may dispatch
    /// (`cfq_dispatch_requests`).
    pub(super) fn fill(&mut self, requests: &RequestSlab) {
        if self.tree.busy() == 0 {
            return;
        }
        while let Some(q) = self.select() {
            let queue = &self.queues[q];
            let most = if queue.is_idle_class() { 1 } else { self.tuned.quantum };
            let dispatched = queue.backlog.dispatched();
            let alone = self.tree.busy() == 1;
            let full = dispatched >= most && (!alone || dispatched >= most.saturating_mul(4));
            if full || self.counts.has_sync_flight() && !queue.sync {
                return;
            }
            self.stop_idling(IdleEnd::Request);
            self.dispatch_some(q, most, requests);
        }
    }

    /// The active queue if it may continue, else the next one; `None` while it may still get a request
    /// that is worth the wait (`cfq_select_queue`).
    fn select(&mut self) -> Option<QueueId> {
        let Some(q) = self.active else { return self.begin_turn() };
        let queue = &self.queues[q];
        let reason = if queue.slice.is_used(self.tick) {
            EndReason::TimeOut
        } else if !queue.backlog.is_empty() {
            return Some(q);
        } else if self.idling.is_on() || queue.backlog.dispatched() > 0 && queue.window.is_open() {
            return None;
        } else {
            EndReason::NoMoreRequests
        };
        self.expire(false, reason);
        self.begin_turn()
    }

    /// The oldest request if it has expired; checked once per turn (`cfq_check_fifo`).
    fn expired(&mut self, q: QueueId) -> Option<RequestId> {
        let queue = &mut self.queues[q];
        let limit = self.tuned.fifo_expire[usize::from(queue.sync)];
        self.requests.expired(&mut queue.backlog, self.tick, limit)
    }

    /// Dispatches up to `most` requests of the active queue (`__cfq_dispatch_requests`).
    fn dispatch_some(&mut self, q: QueueId, most: u32, requests: &RequestSlab) {
        let mut dispatched = 0;
        while dispatched < most {
            let expired = self.expired(q);
            let Some(id) = expired.or(self.queues[q].backlog.next()) else { break };
            if expired.is_some() {
                self.note(q, Decision::Expired);
            }
            let task = self.requests.origin(id).task;
            self.send(id, requests);
            self.active_task.get_or_insert(task);
            dispatched += 1;
        }
        let queue = &mut self.queues[q];
        let enough = !queue.sync && dispatched >= self.lengths.async_requests(queue.priority.level());
        if self.tree.busy() > 1 && (enough || queue.is_idle_class()) {
            queue.slice.ends_in_a_tick(self.tick);
            self.expire(false, EndReason::BudgetExhausted);
        }
    }
}
