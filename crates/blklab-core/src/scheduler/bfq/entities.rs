//! The queues as entities of B-WF2Q+ ([`wf2q`](crate::scheduler::shared::wf2q)).

use super::Bfq;
use super::parts::QueueId;
use crate::scheduler::journal::{Decision, Journal};

impl Bfq {
    #[inline]
    pub(super) fn total_busy(&self) -> u32 {
        self.wf2q.busy_total()
    }

    #[inline]
    pub(super) fn budget(&self, q: QueueId) -> i32 {
        self.wf2q.budget(q)
    }

    #[inline]
    pub(super) fn set_budget(&mut self, q: QueueId, sectors: i32) {
        self.wf2q.set_budget(q, sectors);
    }

    #[inline]
    pub(super) fn service(&self, q: QueueId) -> i32 {
        self.wf2q.service(q)
    }

    #[inline]
    pub(super) fn reset_service(&mut self, q: QueueId) {
        self.wf2q.reset_service(q);
    }

    pub(super) fn group(&self, q: QueueId) -> u32 {
        self.wf2q.group(q).0.into()
    }

    /// The weight that is compared with a queue of another group.
    pub(super) fn group_weight_or_own(&self, q: QueueId) -> u32 {
        self.wf2q.group_weight(self.wf2q.group(q)).unwrap_or_else(|| self.wf2q.weight(q))
    }

    pub(super) fn requeue(&mut self, q: QueueId, expiration: bool) {
        self.wf2q.requeue(q, expiration, self.clock.run);
    }

    /// The queue gets its first request.
    pub(super) fn add_busy(&mut self, q: QueueId) {
        let queue = &mut self.queues[q.index()];
        let expected = queue.turn.becomes_busy();
        self.wf2q.add_busy(q, queue.backlog.in_flight() > 0, expected, self.clock.run);
        self.wakers.became_busy(q);
    }

    /// The queue has no requests left.
    pub(super) fn remove_busy(&mut self, q: QueueId, expiration: bool) {
        let queue = &mut self.queues[q.index()];
        queue.turn.becomes_idle();
        self.wf2q.remove_busy(q, queue.backlog.in_flight() > 0, expiration, self.clock.run);
    }

    /// Charges the sectors to the queue (`bfq_bfqq_served`).
    pub(super) fn serve(&mut self, q: QueueId, sectors: i32) {
        let sectors = sectors.max(0) as u32;
        let queue = &mut self.queues[q.index()];
        queue.soft_rt.served(sectors, self.clock.jiffies);
        queue.raising.served(sectors);
        self.wf2q.served(q, sectors);
    }

    /// Release the queue if no process, no request and no planned merge needs it.
    #[inline]
    pub(super) fn free_if_unused(&mut self, q: QueueId) {
        // The queue may be free already, and must not be released twice.
        self.reap();
        if self.sharing.has_no_process(q) {
            self.free_without_processes(q);
        }
    }

    fn free_without_processes(&mut self, q: QueueId) {
        let is_unused = self.sharing.is_unused(q) && self.wf2q.allocated(q) == 0;
        if is_unused && self.queues[q.index()].used {
            self.wf2q.release(q);
        }
        self.reap();
    }

    /// Frees the queues that B-WF2Q+ has freed (`bfq_put_queue`).
    #[inline]
    pub(super) fn reap(&mut self) {
        if self.wf2q.has_freed() {
            self.reap_all();
        }
    }

    #[cold]
    fn reap_all(&mut self) {
        while let Some(q) = self.wf2q.pop_freed() {
            self.burst.queue_gone(q, self.sharing.owner(q).is_some());
            self.wakers.queue_gone(q);
            self.queues[q.index()].used = false;
        }
    }

    /// Notes a decision if the journal is kept.
    #[inline]
    pub(super) fn note(&mut self, q: QueueId, decision: Decision) {
        if self.journal.is_kept() {
            let process = self.process_of(q);
            Journal::note(&mut self.journal, self.clock.run, process, decision);
        }
    }
}
