//! The budgets of queues in B-WF2Q+, set and charged by the rules of
//! [`budgets`](super::parts::budgets).

use super::Bfq;
use super::parts::QueueId;
use super::parts::budgets::Slice;
use crate::request::RequestId;
use crate::scheduler::journal::EndReason;

/// An asynchronous sector counts this many times.
const ASYNC_CHARGE_FACTOR: i32 = 3;

impl Bfq {
    #[inline]
    pub(super) fn budget_left(&self, q: QueueId) -> i32 {
        self.budget(q) - self.service(q)
    }

    /// The sectors that a request charges to its queue's budget (`bfq_serv_to_charge`).
    #[inline]
    pub(super) fn charge_for(&self, id: RequestId, q: QueueId) -> i32 {
        let sectors = self.requests.sectors(id) as i32;
        if self.queues[q.index()].kind.sync { sectors } else { self.charge_async(sectors, q) }
    }

    fn charge_async(&self, sectors: i32, q: QueueId) -> i32 {
        let plain = self.queues[q.index()].is_raised() || self.is_asymmetric(q);
        if plain { sectors } else { sectors * ASYNC_CHARGE_FACTOR }
    }

    /// The queue's next request changes: the budget must suffice for it (`bfq_updated_next_req`).
    #[inline]
    pub(super) fn budget_for_next(&mut self, q: QueueId) {
        let Some(next) = self.queues[q.index()].backlog.next() else { return };
        if self.in_service == Some(q) {
            return;
        }
        let max = self.queues[q.index()].turn.max_budget();
        let wanted = max.max(self.charge_for(next, q)).max(self.service(q));
        if self.budget(q) != wanted {
            self.set_budget(q, wanted);
            self.requeue(q, false);
        }
    }

    /// The budget of a queue that becomes busy. True if the queue continues with its unused budget,
    /// because the request came within `in_time` of the last completion.
    pub(super) fn budget_for_activation(&mut self, q: QueueId, in_time: bool) -> bool {
        let left = self.budget_left(q);
        let queue = &mut self.queues[q.index()];
        let max = queue.turn.max_budget();
        if queue.turn.is_expected() && in_time && left > 0 {
            // It is still expected: activation moves the queue's timestamps back.
            self.set_budget(q, left.min(max));
            self.reset_service(q);
            return true;
        }
        queue.turn.begin_anew();
        let next = queue.backlog.next().expect("a request has come");
        self.reset_service(q);
        let budget = max.max(self.charge_for(next, q));
        self.set_budget(q, budget);
        false
    }

    /// The next budget, from the way the last slice ended (`__bfq_bfqq_recalc_budget`).
    pub(super) fn recalculate_budget(&mut self, q: QueueId, reason: EndReason) {
        let queue = &self.queues[q.index()];
        let slice = Slice {
            sync: queue.kind.sync,
            raised: queue.is_raised(),
            max_budget: queue.turn.max_budget(),
            service: self.service(q),
            in_flight: queue.backlog.in_flight(),
        };
        let Some(max) = self.budgets.after(slice, reason) else { return };
        let queue = &mut self.queues[q.index()];
        queue.turn.set_max_budget(max);
        if let Some(next) = queue.backlog.next() {
            let budget = max.max(self.charge_for(next, q));
            self.set_budget(q, budget);
        }
    }

    /// Charges a slow queue for time: the largest budget per default `timeout_sync`
    /// (`bfq_bfqq_charge_time`).
    pub(super) fn charge_time(&mut self, q: QueueId, time_ms: u64) {
        let for_time = self.budgets.sectors_for_time(time_ms, self.tuning.ticks.hz());
        let total = for_time.max(self.service(q));
        if total > self.budget(q) {
            self.set_budget(q, total);
        }
        self.serve(q, total - self.service(q));
    }

    /// The queue's time in service, in ms, and whether it was slow: it seeks, or it has got less
    /// than half of the largest budget after 20 ms or more (`bfq_bfqq_is_slow`).
    pub(super) fn slowness(&self, q: QueueId, without_idling: bool) -> (bool, u64) {
        let queue = &self.queues[q.index()];
        if !queue.kind.sync {
            return (false, 0);
        }
        let until = if without_idling { self.idle_timer.began() } else { self.clock.now };
        self.budgets.slowness(until, self.service(q), queue.seeks.seeky(), self.tuning.rotational)
    }

    /// A queue comes into service: its timeout starts (`bfq_set_budget_timeout`).
    pub(super) fn start_budget_timeout(&mut self, q: QueueId) {
        let soft_rt = self.queues[q.index()].raising.is_soft_rt(&self.spans);
        let coeff = if soft_rt { 1 } else { self.wf2q.weight(q) / self.wf2q.orig_weight(q) };
        self.budgets.slice_begins(self.clock.now);
        self.queues[q.index()].turn.begins(&self.clock, self.tuning.timeout * i64::from(coeff));
    }

    #[inline]
    pub(super) fn budget_time_is_over(&self, q: QueueId) -> bool {
        self.queues[q.index()].turn.is_over(&self.clock)
    }

    /// The timeout has passed; and, if the disk idles for the queue, at most two thirds of the
    /// budget are used (`bfq_may_expire_for_budg_timeout`).
    pub(super) fn may_expire_for_timeout(&self, q: QueueId) -> bool {
        (!self.queues[q.index()].turn.waits() || self.has_a_third_left(q)) && self.budget_time_is_over(q)
    }

    pub(super) fn has_a_third_left(&self, q: QueueId) -> bool {
        self.budget_left(q) >= self.budget(q) / 3
    }
}
